"""Jobs that are stopped, and workers that are killed (C28)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psutil
import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, shell, staging_query
from tests.support.integration.deployment import Deployment

pytestmark = pytest.mark.soak

SLEEPS = """
sleep 1000 &
echo "$$ $!" > "$CHRONON_WAREHOUSE/stopping_{kind}.pids.new"
mv "$CHRONON_WAREHOUSE/stopping_{kind}.pids.new" "$CHRONON_WAREHOUSE/stopping_{kind}.pids"
while true; do wait; sleep 1; done
"""
POLITE = staging_query("stopping.polite", airflow={"runner": shell(SLEEPS.replace("{kind}", "polite"))})
STUBBORN = staging_query(
    "stopping.stubborn",
    airflow={"runner": shell("trap '' TERM\n" + SLEEPS.replace("{kind}", "stubborn"))},
)
LOCAL = {"runner": {"kind": "local", "threads": 1}}
QUICK = staging_query("stopping.local", airflow=LOCAL, query="SELECT 'old' AS v, {{ start_date }} AS ds")
SLOW = staging_query(
    "stopping.local",
    airflow=LOCAL,
    query="SELECT CAST(sum(a.id * b.id) AS STRING) AS v, {{ start_date }} AS ds "
    "FROM range(1000000) AS a(id), range(1000000) AS b(id)",
)
MENDED = staging_query("stopping.local", airflow=LOCAL, query="SELECT 'new' AS v, {{ start_date }} AS ds")
LABEL = "2026-06-01"


@pytest.fixture(scope="module")
def stopping(deployment: Deployment) -> Iterator[Deployment]:
    deployment.deploy(POLITE, STUBBORN, QUICK)
    yield deployment
    deployment.withdraw(POLITE, STUBBORN, QUICK)


def _pids(file: Path) -> list[int]:
    wait_until(file.exists, timeout=60, why="the command has started")
    return [int(pid) for pid in file.read_text().split()]


@pytest.mark.parametrize(("conf", "kind"), [(POLITE, "polite"), (STUBBORN, "stubborn")], ids=["polite", "stubborn"])
def test_a_stopped_job_ends_with_all_it_started(stopping: Deployment, conf: CompiledConf, kind: str) -> None:
    api = stopping.real.api
    run = api.trigger(conf.dag_id, partition_key=LABEL)
    pids = _pids(stopping.real.warehouse / f"stopping_{kind}.pids")
    try:
        assert all(psutil.pid_exists(pid) for pid in pids)
        api.mark_task(stopping.task(run, "backfill"), "failed")
        wait_until(
            lambda: not any(psutil.pid_exists(pid) for pid in pids),
            timeout=60,
            why="the command and its child are gone",
        )
        assert stopping.end_of(run).state == "failed"
    finally:
        for pid in filter(psutil.pid_exists, pids):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("conf", "kind"), [(POLITE, "polite"), (STUBBORN, "stubborn")], ids=["polite", "stubborn"])
def test_a_job_whose_supervisor_was_killed_ends_with_all_it_started(
    stopping: Deployment, conf: CompiledConf, kind: str
) -> None:
    # Airflow would start a second writer beside it
    api, file = stopping.real.api, stopping.real.warehouse / f"stopping_{kind}.pids"
    file.unlink(missing_ok=True)
    run = api.trigger(conf.dag_id, partition_key=LABEL)
    pids = _pids(file)
    try:
        runner = psutil.Process(pids[0]).parent()
        assert runner is not None
        supervisor = runner.parent()
        assert supervisor is not None
        supervisor.kill()
        wait_until(
            lambda: not any(psutil.pid_exists(pid) for pid in (*pids, runner.pid)),
            timeout=60,
            why="the command, its child and the process that ran it are gone",
        )
    finally:
        for pid in filter(psutil.pid_exists, pids):
            os.kill(pid, signal.SIGKILL)
        api.mark_task(stopping.task(run, "backfill"), "failed")
        assert stopping.end_of(run).state == "failed"


def test_a_killed_worker_leaves_the_old_partition_and_the_next_run_replaces_it(stopping: Deployment) -> None:
    api = stopping.real.api
    partition = stopping.real.warehouse / QUICK.table / f"ds={LABEL}"

    def value() -> list[tuple[str]]:
        return duckdb.sql(f"SELECT v FROM '{partition}/*.parquet'").fetchall()

    assert stopping.end_of(api.trigger(QUICK.dag_id, partition_key=LABEL)).state == "success"
    assert value() == [("old",)]

    stopping.drop(SLOW)
    run = api.trigger(QUICK.dag_id, partition_key=LABEL)
    wait_until(
        lambda: list((stopping.real.warehouse / QUICK.table).glob("_chronon-*")),
        timeout=60,
        why="the engine is at work",
    )
    task = stopping.wait_for_task(run, "backfill", "running")
    assert task.pid is not None
    os.kill(task.pid, signal.SIGKILL)
    assert stopping.end_of(run).state == "failed"
    assert value() == [("old",)]

    stopping.drop(MENDED)
    assert stopping.end_of(api.trigger(QUICK.dag_id, partition_key=LABEL)).state == "success"
    assert value() == [("new",)]
    assert {path.name for path in partition.iterdir()} == {"part-0.parquet", "_SUCCESS"}
