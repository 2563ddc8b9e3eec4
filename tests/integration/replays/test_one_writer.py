"""One writer per partition, and the grid of a table's first write, on a real Airflow."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

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


def test_two_branches_on_two_grids_write_a_table_one_after_the_other(lab: Lab) -> None:  # C24, C28
    name, one_slot = "t.writers.branches__1", json.dumps({"airflow": {"max_active_runs": 1}})
    table = lab.table(name)
    hourly = lab.deploy(staging_query(name, schedule="@never", interval="1h", customJson=one_slot))
    coarse = lab.deploy_on("try", unscheduled(name, "3h"))
    lab.wait_for(hourly, coarse)
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=12)
    start -= timedelta(hours=start.hour % 3)
    keys = [f"{start + timedelta(hours=hours):%Y-%m-%d-%H-%M}" for hours in range(4)]
    with lab.holding(table):
        first = lab.airflow.api.trigger(hourly, partition_key=keys[1])
        wait_until(lambda: lab.told(table), timeout=120, why="the first works")
        waiting = lab.airflow.api.trigger(coarse, partition_key=keys[0])  # from keys[0] to keys[3]
        wait_until(lambda: lab.task_state(waiting) == "deferred", timeout=120, why="the other branch waits")
        free = lab.airflow.api.trigger(coarse, partition_key=keys[3])  # half open: it touches the other two
        wait_until(lambda: len(lab.told(table)) == 2, timeout=120, why="another partition is free")
        again = lab.airflow.api.trigger(hourly, partition_key=keys[2])  # its one slot is taken
        assert [entry["run"] for entry in lab.told(table)] == [first.run_id, free.run_id]
    assert [lab.ended(run).state for run in (first, waiting, free, again)] == ["success"] * 4
    assert f"waiting for {first.run_id} of {hourly}" in lab.log_of(waiting)
    at_work = [entry for entry in lab.told(table) if entry["run"] != free.run_id]
    assert [entry["what"] for entry in at_work] == ["begins", "ends"] * 3
    assert at_work[0]["run"] == first.run_id


def test_two_branches_that_fire_every_minute_and_replays_never_write_a_partition_twice_at_a_time(
    lab: Lab,
) -> None:  # C24, C28
    name, one_slot = "t.writers.minutes__1", json.dumps({"airflow": {"max_active_runs": 1}})
    table = lab.table(name)
    lab.slow(table, 4)
    each = lab.deploy(staging_query(name, schedule="* * * * *", customJson=one_slot))
    pairs = lab.deploy_on("try", staging_query(name, schedule="*/2 * * * *"))
    lab.wait_for(each, pairs)
    runs = []
    begun = time.monotonic()
    while time.monotonic() - begun < 150:
        now = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=2)
        even = now - timedelta(minutes=now.minute % 2)
        runs.append(lab.airflow.api.trigger(each, partition_key=f"{now - timedelta(minutes=1):%Y-%m-%d-%H-%M}"))
        runs.append(lab.airflow.api.trigger(pairs, partition_key=f"{even - timedelta(minutes=2):%Y-%m-%d-%H-%M}"))
        span = {"start_ds": f"{even - timedelta(minutes=4):%Y-%m-%d-%H-%M}", "end_ds": f"{even:%Y-%m-%d-%H-%M}"}
        runs.append(lab.airflow.api.trigger(each, params=span))
        time.sleep(45)
    lab.withdraw(staging_query(name))
    lab.withdraw(staging_query(name), branch="try")
    assert {lab.ended(run, timeout=600).state for run in runs} == {"success"}
    told = lab.told(table)
    assert {entry["branch"] for entry in told} == {"", "try"} and len(told) >= 2 * len(runs)
    at_work: list[dict[str, Any]] = []
    for entry in told:
        if entry["what"] == "begins":
            both = [other for other in at_work if _minutes(other) & _minutes(entry)]
            assert not both, f"{entry} while {both} work"
            at_work.append(entry)
        else:
            at_work.remove(next(each for each in at_work if each["pid"] == entry["pid"]))
    logs = [lab.log_of(run) for run in runs]
    assert any("which writes the same partitions" in log for log in logs)


def _minutes(entry: dict[str, Any]) -> set[datetime]:
    """The minutes that a job writes: one of the branch has partitions of two."""
    starts = [datetime.strptime(label, "%Y-%m-%d-%H-%M").replace(tzinfo=UTC) for label in entry["labels"]]
    length = 2 if entry["branch"] else 1
    return {start + timedelta(minutes=minute) for start in starts for minute in range(length)}


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
