"""Replays through Airflow's own backfill: any range, any number of times, whatever else goes on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import pytest
from airflow_api import Json, wait_until
from compiled_confs import staging_query
from deployment import Deployment

REPLAYED = staging_query("replays.daily")
WAITING = staging_query("replays.waiting", reads="replays.never_lands")
FIRST, LAST = datetime(2026, 6, 1, tzinfo=timezone.utc), datetime(2026, 6, 3, tzinfo=timezone.utc)
LABELS = ["2026-06-01", "2026-06-02", "2026-06-03"]


@pytest.fixture(scope="module")
def replays(deployment: Deployment) -> Iterator[Deployment]:
    deployment.deploy(REPLAYED, WAITING)
    yield deployment
    deployment.withdraw(REPLAYED, WAITING)


def _completed(deployment: Deployment, *, count: int) -> list[Json]:
    """The backfills once there are so many and all of them are over."""
    return wait_until(
        lambda: (
            found
            if len(found := deployment.real.api.backfills(REPLAYED.dag_id)) == count
            and all(backfill["completed_at"] for backfill in found)
            else []
        ),
        timeout=120,
        why=f"{count} backfills of {REPLAYED.dag_id} are over",
    )


def test_a_range_is_replayed_any_number_of_times_and_leaves_no_backfill_behind(replays: Deployment) -> None:
    command = ("backfill", "create", "--dag-id", REPLAYED.dag_id, "--from-date", LABELS[0], "--to-date", LABELS[-1])
    for times, more in enumerate([(), ("--reprocess-behavior", "completed")], start=1):
        done = replays.real.server.run(*command, *more)
        assert done.returncode == 0, done.stdout + done.stderr
        _completed(replays, count=times)
    replays.real.api.backfill(REPLAYED.dag_id, start=FIRST, end=LAST, reprocess="completed")
    _completed(replays, count=3)

    runs = replays.runs(REPLAYED, run_type="backfill")
    assert sorted(run.partition_key or "" for run in runs) == sorted(LABELS * 3)
    assert {run.state for run in runs} == {"success"}
    assert replays.landed(REPLAYED) == set(LABELS)
    assert len({run.run_id for run in runs}) == 9
    for run in runs:
        assert [event["partition_key"] for event in replays.events(run)] == [run.partition_key]


def test_fifty_waiting_runs_do_not_hold_up_a_replay_of_another_dag(replays: Deployment) -> None:
    api = replays.real.api
    assert replays.real.server.environment["AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE"] == "500"
    for number in range(50):
        api.trigger(WAITING.dag_id, partition_key=f"2026-0{number // 25 + 4}-{number % 25 + 1:02d}")
    try:
        wait_until(
            lambda: len(api.tasks(WAITING.dag_id, state="deferred")) == 50, timeout=120, why="fifty runs wait for labels"
        )
        before = {backfill["id"] for backfill in api.backfills(REPLAYED.dag_id)}
        day = datetime(2026, 6, 20, tzinfo=timezone.utc)
        api.backfill(REPLAYED.dag_id, start=day, end=day)
        _completed(replays, count=len(before) + 1)
        (run,) = (run for run in replays.runs(REPLAYED) if run.partition_key == "2026-06-20")
        assert run.state == "success"
        assert len(api.runs(WAITING.dag_id, state="running")) == 50
    finally:
        replays.withdraw(WAITING)
        api.delete_dag(WAITING.dag_id)
