"""The worst files that were ever dropped into a conf root, for tests on a real Airflow (S1, S2)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.support.integration.compiled_confs import staging_query

HEAD = "version: 1\nrunner: {kind: command, argv: ['true']}\n"
EXITS = "import sys\nsys.exit(1)\n"


def _own(**airflow: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(staging_query("hostile.bad", schedule="0 0 * * *").document))
    document["metaData"]["customJson"] = json.dumps({"airflow": airflow})
    return document


def _meta(**meta: Any) -> dict[str, Any]:
    document = _own()
    document["metaData"] |= meta
    return document


#: What each bad conf says, by its name.
CONFS: dict[str, dict[str, Any]] = {
    "weight": _own(task_defaults={"priority_weight": 3_000_000_000}),
    "pool": _own(task_defaults={"pool": "x" * 300}),
    "queue": _own(task_defaults={"queue": "x" * 300}),
    "owner": _own(owner="x" * 3_000),
    "team": _meta(team="a\ud800"),
    "version": _meta(version="1\0"),
    "run_id": _meta(
        executionInfo={
            "offlineSchedule": "0 0 * * *",
            "outputTableInfo": {"partitionFormat": f"yyyy-MM-dd'{'x' * 300}'"},
        }
    ),
}
JOBS = {
    "exits": "task_defaults: {on_failure_callback: hostile_exits.function}\n",
    "binary": "task_defaults: {pool: !!binary aGVsbG8=}\n",
    "set": "task_defaults: {email: !!set {a, b}}\n",
    "owner": f"owner: {'x' * 3_000}\n",
}
ODD_NAME = b"odd\xff__1"
#: How what is said of each of them begins.
SAID = (
    *(f"staging_query/hostile.{name}__1 " for name in CONFS),
    *(f"job/hostile.{name} " for name in JOBS),
    "staging_query/hostile.all/ ",
    "staging_query/hostile.odd",
)


def drop_worst_files(root: Path, *, dags: Path) -> tuple[Path, ...]:
    """Put them below a conf root, and the module that one of them names into the dags folder; what to remove afterwards."""
    folders = root / "compiled" / "staging_queries" / "hostile", root / "jobs" / "hostile"
    for folder in folders:
        folder.mkdir(parents=True)
    for name, document in CONFS.items():
        team = document["metaData"]["team"] if name == "team" else "hostile"
        document["metaData"] |= {"name": f"hostile.{name}__1", "team": team}
        (folders[0] / f"{name}__1").write_text(json.dumps(document))
    for name, text in JOBS.items():
        (folders[1] / f"{name}.yaml").write_text(HEAD + text)
    (folders[1] / "program.py").write_text(f"# airflow DAG\nopen({str(root / 'executed')!r}, 'w').close()\n")
    Path(os.fsdecode(os.fsencode(folders[0]) + b"/" + ODD_NAME)).write_text("{}")
    (folders[0] / "all").symlink_to("/usr")
    module = dags / "hostile_exits.py"
    module.write_text(EXITS)
    return (*folders, module)
