"""The processes of docker-compose.yaml without Docker: each with the environment of its service, on PostgreSQL and Redis."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator

import psutil
import pytest

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import AirflowClient, wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.compose_file import AIRFLOW_SERVICES, replicas
from tests.support.integration.compose_processes import ComposeProcesses, compose_processes
from tests.support.integration.deployment import SETTINGS, day_label

pytestmark = pytest.mark.soak

FIRST = staging_query("first", schedule="0 0 * * *")
SECOND = staging_query("second", schedule="0 0 * * *", reads=FIRST.table)
RECONCILER = "chronon_reconciler"


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeProcesses]:
    base = tmp_path_factory.mktemp("compose")
    root = base / "dags" / "chronon"
    for conf in (FIRST, SECOND):
        path = root / "compiled" / conf.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(conf.document))
    (root / "chronon.yaml").write_text(SETTINGS)
    for loader in (ROOT / "dags").glob("*.py"):
        shutil.copy(loader, base / "dags" / loader.name)
    with compose_processes(base) as running:
        yield running


@pytest.fixture(scope="module")
def api(processes: ComposeProcesses) -> Iterator[AirflowClient]:
    with processes.client("editor") as client:
        yield client


def test_every_service_of_airflow_runs_as_often_as_the_file_says(processes: ComposeProcesses) -> None:
    names = [each.service for each in processes.containers]
    assert {name: names.count(name) for name in names} == {
        name: replicas(name) for name in AIRFLOW_SERVICES if name != "migrate"
    }
    assert names.count("scheduler") == names.count("triggerer") == names.count("worker") == 2


def test_the_health_check_of_each_container_passes(processes: ComposeProcesses) -> None:
    processes.wait_until_healthy(*processes.containers)


def test_a_chain_lands_through_the_workers(processes: ComposeProcesses, api: AirflowClient) -> None:
    for conf in (FIRST, SECOND):
        [run] = wait_until(
            lambda conf=conf: [run for run in api.runs(conf.dag_id) if run.state in ("success", "failed")],
            timeout=900,
            why=f"a run of {conf.dag_id} ends",
        )
        assert (run.state, run.partition_key) == ("success", day_label(days_ago=1)), api.task_states(run)
        assert (processes.volume("warehouse") / conf.table / f"ds={run.partition_key}" / "_SUCCESS").exists()


def test_the_reconciler_does_its_work_by_its_own_account(processes: ComposeProcesses, api: AirflowClient) -> None:
    wait_until(lambda: api.dag(RECONCILER), timeout=120, why="the reconciler is a DAG")
    api.unpause(RECONCILER)
    asked = api.trigger(RECONCILER)
    run = wait_until(
        lambda: found if (found := api.run(RECONCILER, asked.run_id)).state in ("success", "failed") else None,
        timeout=900,
        why="the reconcile ends",
    )
    assert run.state == "success", api.task_states(run)
    records = {path.stem for path in processes.volume("state").rglob("records/*.json")}
    assert {FIRST.dag_id, SECOND.dag_id} <= records


def test_a_worker_knows_neither_the_database_nor_a_key(processes: ComposeProcesses) -> None:  # S10
    workers = [each for each in processes.containers if each.service == "worker"]
    for worker in workers:
        environment = psutil.Process(processes.running[worker.name].pid).environ()
        assert not {name for name in environment if "DATABASE" in name or "FERNET" in name or "JWT" in name}
        # where none is set Airflow opens one of its own: there is nothing in it
        with contextlib.closing(sqlite3.connect(worker.home / "airflow.db")) as own:
            assert own.execute("SELECT name FROM sqlite_master").fetchall() == []
