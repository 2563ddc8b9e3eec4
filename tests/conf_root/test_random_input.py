"""Real confs with random values at random places: messages, never a traceback (S1)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.json import verdict_json
from tests.support.command_line import DATA

VALUES: tuple[Any, ...] = (
    *(
        None,
        0,
        1,
        -1,
        3.5,
        float("nan"),
        float("inf"),
        10**18,
        -(10**18),
        10**400,
        True,
        "",
        "x",
        "\ud800",
        "ö" * 300,
        "a\nb",
        [],
        [1],
    ),
    *(
        ["x"],
        [[]],
        {},
        "../x",
        "@daily",
        "0 * * * *",
        "0 0 L * *",
        "* * * * * *",
        "0 0 * * L5",
        "2026-01-01",
        "0001-01-01",
        "9999-12-31",
    ),
    *(
        "yyMMdd",
        "MMM",
        "'",
        "{}",
        "[" * 50_000,
        '{"airflow": {"catchup": true, "start_date": "0001-01-01"}}',
        '{"airflow": []}',
        "3",
    ),
    *(
        '{"airflowDependencies": [{"spec": "a.b/ds={{ macros.ds_add(ds, 99999999999) }}"}]}',
        '{"airflowDependencies": [3]}',
    ),
    *(
        {"length": 1, "timeUnit": 0},
        {"length": 400, "timeUnit": 1},
        {"length": -180_000, "timeUnit": 1},
        {"length": 10**30, "timeUnit": 1},
    ),
)


FIELDS = (
    *(
        "partitionLag",
        "startPartition",
        "endPartition",
        "partitionFormat",
        "partitionInterval",
        "partitionOffset",
        "customJson",
    ),
    *(
        "version",
        "environments",
        "startOffset",
        "endOffset",
        "startCutOff",
        "endCutOff",
        "offlineSchedule",
        "windows",
        "triggerExpr",
    ),
    *(
        "subPartitionsToWaitFor",
        "isCumulative",
        "timePartitioned",
        "partitionColumn",
        "online",
        "onlineSchedule",
        "table",
    ),
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container and key below a JSON value."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in ((node, key), *places(node[key]))]


def spoiled(source: list[Path], random: Random) -> tuple[str, str]:
    """A real conf with random values at random places: its path and its text."""
    path = random.choice(source)
    document = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(random.randint(1, 3)):
        found = places(document)
        node, key = random.choice(found)
        if random.random() < 0.5:
            node[key] = copy.deepcopy(random.choice(VALUES))
        else:
            objects = [node for node, _ in found if isinstance(node, dict)]
            random.choice(objects)[random.choice(FIELDS)] = copy.deepcopy(random.choice(VALUES))
    return str(path.relative_to(DATA / "main")), json.dumps(document)


def test_random_values_at_random_places_give_messages_never_a_traceback(tmp_path: Path) -> None:
    source = sorted(
        path for folder in ("group_bys", "joins", "staging_queries") for path in (DATA / "main" / folder).rglob("*__*")
    )
    outcomes = set()
    for seed in range(300):
        name, text = spoiled(source, Random(seed))
        root = tmp_path / str(seed)
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
        verdicts = read_conf_root(root, environ={}).judge()
        assert len(verdicts) == 1, seed
        (verdict,) = verdicts.values()
        outcomes.add(type(verdict))
        if isinstance(verdict, RejectedConf):
            assert all(fault.message and fault.rule for fault in verdict.faults), seed
        runs = (
            verdict.schedule.runs_between(1_780_272_000, 1_780_272_000 + 86400)
            if isinstance(verdict, ConfPlan)
            else None
        )
        json.dumps(verdict_json(verdict, runs))
    assert {ConfPlan, RejectedConf} <= outcomes
