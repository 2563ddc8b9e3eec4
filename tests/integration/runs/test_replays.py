"""Replays through Airflow's own backfill: any range, any number of times, whatever else goes on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.deployment import Deployment

pytestmark = pytest.mark.soak

REPLAYED = staging_query("replays.daily")
WAITING = staging_query("replays.waiting", reads="replays.never_lands")
FIRST, LAST = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 6, 3, tzinfo=UTC)
LABELS = ["2026-06-01", "2026-06-02", "2026-06-03"]


@pytest.fixture(scope="module")
def replays(deployment: Deployment) -> Iterator[Deployment]:
    """Fifty runs of another DAG are running all the while: they wait for labels that never come."""
    api = deployment.real.api
    assert deployment.real.server.environment["AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE"] == "500"
    deployment.deploy(REPLAYED, WAITING)
    for number in range(50):
        api.trigger(WAITING.dag_id, partition_key=f"2026-0{number // 25 + 4}-{number % 25 + 1:02d}")
    wait_until(
        lambda: len(api.tasks(WAITING.dag_id, state="deferred")) == 50, timeout=120, why="fifty runs wait for labels"
    )
    yield deployment
    deployment.abandon(REPLAYED, WAITING)


def _wait_until_over(deployment: Deployment, *, count: int) -> None:
    """Airflow looks every half minute whether a backfill is over; until then it takes no other one of the same DAG."""
    api = deployment.real.api
    wait_until(
        lambda: [bool(each["completed_at"]) for each in api.backfills(REPLAYED.dag_id)] == [True] * count,
        timeout=120,
        why=f"{count} backfills of {REPLAYED.dag_id} are over",
    )


def test_a_range_is_replayed_three_times_while_fifty_runs_of_another_dag_wait(replays: Deployment) -> None:
    api = replays.real.api
    command = ("backfill", "create", "--dag-id", REPLAYED.dag_id, "--from-date", LABELS[0], "--to-date", LABELS[-1])
    for times, more in enumerate([(), ("--reprocess-behavior", "completed")], start=1):
        done = replays.real.server.run(*command, *more)
        assert done.returncode == 0, done.stdout + done.stderr
        _wait_until_over(replays, count=times)
    api.backfill(REPLAYED.dag_id, start=FIRST, end=LAST, reprocess="completed")

    runs = replays.ends_of(replays.runs(REPLAYED, run_type="backfill"))
    assert sorted(run.partition_key or "" for run in runs) == sorted(LABELS * 3)
    assert {run.state for run in runs} == {"success"}
    assert replays.landed(REPLAYED) == set(LABELS)
    assert len({run.run_id for run in runs}) == 9
    for run in runs:
        assert [event["partition_key"] for event in replays.events(run)] == [run.partition_key]
    assert len(api.runs(WAITING.dag_id, state="running")) == 50
    _wait_until_over(replays, count=3)  # none is left behind, which would block the next
