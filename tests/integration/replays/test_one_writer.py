"""One writer per partition, and the grid of a table's first write, on a real Airflow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.confs import dependency, staging_query
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.replay_lab import Lab, hour, unscheduled

pytestmark = pytest.mark.soak


def test_three_simultaneous_runs_of_one_key_write_one_after_the_other(lab: Lab) -> None:  # C28
    dag_id = lab.deploy(unscheduled("t.writers.three__1", "1h"))
    lab.wait_for(dag_id)
    table = lab.table("t.writers.three__1")
    with lab.holding(table):
        runs = [lab.airflow.api.trigger(dag_id, partition_key=hour(3)) for _ in range(3)]
        other = lab.airflow.api.trigger(dag_id, partition_key=hour(4))
        wait_until(
            lambda: sorted(str(lab.task_state(run)) for run in runs) == ["deferred", "deferred", "running"],
            timeout=180,
            why="one of the three works and two wait without a worker",
        )
        wait_until(lambda: len(lab.told(table)) == 2, timeout=180, why="the run of another key works beside it")
    assert [lab.ended(run).state for run in (*runs, other)] == ["success"] * 4
    same = [entry for entry in lab.told(table) if entry["run"] != other.run_id]
    assert [entry["what"] for entry in same] == ["begins", "ends"] * 3
    assert [entry["run"] for entry in same[::2]] == [entry["run"] for entry in same[1::2]]


def test_a_range_over_a_scheduled_run_in_progress_waits_for_it(lab: Lab) -> None:  # C28, H8
    table = lab.table("t.writers.scheduled__1")
    with lab.holding(table):
        dag_id = lab.deploy(staging_query("t.writers.scheduled__1", schedule="0 * * * *"))
        lab.wait_for(dag_id)
        scheduled = wait_until(
            lambda: next(iter(lab.airflow.api.runs(dag_id, state="running")), None), timeout=90, why="it is scheduled"
        )
        wait_until(lambda: lab.told(table), timeout=90, why="the scheduled run works")
        key = scheduled.partition_key
        assert key is not None
        first = datetime.strptime(key, "%Y-%m-%d-%H-%M").replace(tzinfo=UTC) - timedelta(hours=2)
        span = lab.airflow.api.trigger(dag_id, params={"start_ds": f"{first:%Y-%m-%d-%H-%M}", "end_ds": key})
        wait_until(lambda: lab.task_state(span) == "deferred", timeout=90, why="the range waits")
        assert [entry["run"] for entry in lab.told(table)] == [scheduled.run_id]
    assert lab.ended(span).state == "success"
    assert lab.ended(scheduled).state == "success"
    told = [(entry["what"], entry["run"]) for entry in lab.told(table)]
    assert told[:4] == [
        ("begins", scheduled.run_id),
        ("ends", scheduled.run_id),
        ("begins", span.run_id),
        ("ends", span.run_id),
    ]
    assert len(lab.told(table)[2]["labels"]) == 3


def test_another_grid_under_the_same_version_never_writes_and_deleting_does_not_lift_it(lab: Lab) -> None:  # C22
    name = "t.writers.regridded__1"
    # the DAG of the reconciler, or of any other conf, keeps alive what Airflow remembers of the contracts
    stays = lab.deploy(unscheduled("t.writers.stays__1", "1h"))
    dag_id, table = lab.deploy(unscheduled(name, "1h")), lab.table(name)
    lab.wait_for(dag_id, stays)
    assert lab.ended(lab.airflow.api.trigger(dag_id, partition_key=hour(5))).state == "success"
    grid = lambda: {tag["name"] for tag in lab.airflow.api.dag(dag_id)["tags"]}  # noqa: E731
    uri = "chronon://" + table.replace(".", "/")
    gone = lambda: uri not in {asset["uri"] for asset in lab.airflow.api.assets()}  # noqa: E731
    lab.deploy(unscheduled(name, "3h"))
    wait_until(lambda: "grid:3h" in grid(), timeout=60, why="the other grid is deployed")
    for deleted in (False, True):
        if deleted:
            lab.withdraw(unscheduled(name, "3h"))
            wait_until(lambda: lab.airflow.api.dag(dag_id)["is_stale"], timeout=120, why="no file produces it")
            lab.airflow.api.request("DELETE", f"/dags/{dag_id}")
            wait_until(gone, timeout=120, why="Airflow has dropped the table's asset with its state")
            lab.deploy(unscheduled(name, "3h"))
            lab.wait_for(dag_id)
            wait_until(lambda: "grid:3h" in grid(), timeout=60, why="it is back")
        run = lab.ended(lab.airflow.api.trigger(dag_id, partition_key="2026-06-01-03-00"))
        assert run.state == "failed"
        log = lab.log_of(run)
        assert f"{table} was begun on the grid 1h, and the conf is now on 3h" in log
        assert "bump its version" in log.lower()
    late = "vendor.never_lands"
    lab.deploy(unscheduled(name, "3h", dependencies=[dependency(late, interval="3h")]))
    tasks = lambda: lab.airflow.api.request("GET", f"/dags/{dag_id}/tasks")["tasks"]  # noqa: E731
    waits = lambda: f"wait.{late}" in {task["task_id"] for task in tasks()}  # noqa: E731
    wait_until(waits, timeout=60, why="it reads a table that is not there")
    run = lab.ended(lab.airflow.api.trigger(dag_id, partition_key="2026-06-01-03-00"))
    assert run.state == "failed"  # at once, and not after ten minutes of waiting
    assert f"{table} was begun on the grid 1h" in lab.log_of(run, f"wait.{late}")
    assert lab.task_state(run) == "upstream_failed"
    assert len(lab.told(table)) == 2
    lab.deploy(unscheduled(name, "1h"))
    again = wait_until(
        lambda: lab.airflow.api.trigger(dag_id, partition_key=hour(6)), timeout=90, why="the old grid is back"
    )
    assert lab.ended(again).state == "success"
