"""The worst files beside a victim on a real Airflow: its next run succeeds, every process stays healthy (S1, S2)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.deployment import Deployment, day_label

pytestmark = pytest.mark.soak

VICTIM = staging_query("hostile.victim", schedule="0 0 * * *")
LATER = staging_query("hostile.later")
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


@pytest.fixture
def dropped(deployment: Deployment) -> Iterator[list[str]]:
    """The hostile files, in the folder; what is said of each begins so."""
    root = deployment.real.conf_root
    folders = [root / "compiled" / "staging_queries" / "hostile", root / "jobs" / "hostile"]
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
    (deployment.real.dags / "hostile_exits.py").write_text(EXITS)
    shutil.copy(ROOT / "dags" / ".airflowignore", deployment.real.dags)
    deployment.real.parse_soon()
    yield [
        *(f"staging_query/hostile.{name}__1 " for name in CONFS),
        *(f"job/hostile.{name} " for name in JOBS),
        "staging_query/hostile.all/ ",
        "staging_query/hostile.odd",
    ]
    for folder in folders:
        shutil.rmtree(folder)
    (deployment.real.dags / "hostile_exits.py").unlink()
    deployment.real.parse_soon()


def test_the_worst_files_stop_nobody(deployment: Deployment, dropped: list[str]) -> None:  # S1 S2
    deployment.deploy(VICTIM)

    def all_named() -> list[str]:
        said = deployment.import_errors()
        return said if all(any(line.startswith(each) for line in said) for each in dropped) else []

    lines = wait_until(all_named, timeout=90, why="every hostile file is named among the import errors")
    assert len([line for line in lines if "hostile." in line]) == len(dropped)
    assert deployment.end_of(deployment.run_of(VICTIM, day_label(days_ago=1))).state == "success"
    deployment.deploy(LATER)  # the loader still takes what is new
    deployment.real.server.check_alive()
    deployment.real.server.wait_until_healthy()
    assert not (deployment.real.conf_root / "executed").exists()
    deployment.withdraw(VICTIM, LATER)
