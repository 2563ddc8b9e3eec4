"""Catch-up on a real Airflow, by a flip or from a past start: exactly the partitions that were missed (H9 to H11, H13)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR, iso
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import Deployment

pytestmark = pytest.mark.soak

Settings = dict[str, Any]
TODAY = int(time.time()) // DAY * DAY
THREE_HOURLY: Settings = {"schedule": "15 1-22/3 * * *", "interval": "3h", "offset": "1h"}
WEEKLY: Settings = {"schedule": "0 6 * * MON"}
TWO_DAYS_AGO, WEEKS_AGO = TODAY - 2 * DAY, TODAY - 24 * DAY


@pytest.mark.parametrize(
    ("name", "conf", "start", "bounds"),
    [
        pytest.param("capped__1", THREE_HOURLY, TWO_DAYS_AGO, {"max_catchup_runs": 6}, id="3h@1h, capped"),
        pytest.param("skips__1", THREE_HOURLY, TWO_DAYS_AGO, {"skip_to_date": iso(TODAY - DAY)}, id="3h@1h, skipping"),
        pytest.param("weekly__1", WEEKLY, WEEKS_AGO, {}, id="weekly, from the start"),
        pytest.param("weekly_capped__1", WEEKLY, WEEKS_AGO, {"max_catchup_runs": 1}, id="weekly, capped"),
        pytest.param(
            "weekly_skips__1", WEEKLY, WEEKS_AGO, {"skip_to_date": iso(TODAY - 16 * DAY)}, id="weekly, skipping"
        ),
    ],
)
def test_a_flip_replays_what_was_missed_and_nothing_else(
    reconciled_airflow: RealAirflow, name: str, conf: Settings, start: int, bounds: Settings
) -> None:  # H13
    here = Deployment.beside(reconciled_airflow, branch=f"flip-{name.partition('__')[0]}")
    fast: Settings = {"enabled": True, "start_date": iso(start), "runner": {"kind": "command", "argv": ["true"]}}
    here.write(f"t.{name}", settings=fast, **conf)
    dag_id = f"{here.branch}--staging_query.t.{name}"
    here.wait_for(dag_id)
    assert here.reconcile().returncode == 0
    wait_until(lambda: reconciled_airflow.api.runs(dag_id), timeout=240, why="the newest partition has its run")
    (newest,) = reconciled_airflow.api.runs(dag_id)
    assert newest.run_type == "scheduled" and newest.partition_key is not None

    here.write(f"t.{name}", settings={**fast, **bounds, "catchup": True}, **conf)
    expected = missed(conf, start, bounds, before=newest.partition_key)
    assert expected
    here.reconciled_until(
        lambda: {run.partition_key for run in reconciled_airflow.api.runs(dag_id)} >= set(expected),
        why="what was missed has runs",
    )
    here.reconciled_until(lambda: here.records()[dag_id].pending is None, why="nothing is pending any more")
    keys = sorted(run.partition_key or "" for run in reconciled_airflow.api.runs(dag_id) if run.run_type != "scheduled")
    assert keys == expected


@pytest.mark.parametrize(
    ("name", "conf", "start", "bounds"),
    [
        pytest.param("late__1", THREE_HOURLY, TWO_DAYS_AGO, {}, id="3h@1h"),
        pytest.param(
            "late_skips__1", THREE_HOURLY, TWO_DAYS_AGO, {"skip_to_date": iso(TODAY - DAY)}, id="3h@1h, skipping"
        ),
        pytest.param("weekly_late__1", WEEKLY, WEEKS_AGO, {"max_catchup_runs": 2}, id="weekly, capped"),
    ],
)
def test_a_new_schedule_with_a_past_start_catches_up_by_itself(
    reconciled_airflow: RealAirflow, name: str, conf: Settings, start: int, bounds: Settings
) -> None:  # H9, H10
    here = Deployment.beside(reconciled_airflow, branch=f"past-{name.partition('__')[0]}")
    fast: Settings = {"enabled": True, "runner": {"kind": "command", "argv": ["true"]}}
    here.write(f"t.{name}", settings={**fast, **bounds, "start_date": iso(start), "catchup": True}, **conf)
    dag_id = f"{here.branch}--staging_query.t.{name}"
    here.wait_for(dag_id)
    assert here.reconcile().returncode == 0

    def keys() -> list[str]:
        return sorted(run.partition_key or "" for run in reconciled_airflow.api.runs(dag_id))

    newest = {id(THREE_HOURLY): newest_three_hours(), id(WEEKLY): last_sunday()}[id(conf)]
    wait_until(lambda: newest in keys(), timeout=240, why="the newest partition has its run")
    capped_days = 7 * (int(str(bounds.get("max_catchup_runs", 10))) - 1)
    skipping = {name: value for name, value in bounds.items() if name == "skip_to_date"}
    before = missed(conf, start, skipping, before=newest)
    fires = before if conf is THREE_HOURLY else before[-capped_days:][6::7]  # a scheduled weekly run is one run
    assert keys() == [*fires, newest]
    assert "replay " not in here.reconcile("--dry-run").stdout


def newest_three_hours() -> str:
    """The newest partition of 3h@1h whose fire, a quarter of an hour after its end, has come."""
    now = int(time.time()) - 15 * 60
    return label((now - HOUR) // (3 * HOUR) * 3 * HOUR + HOUR - 3 * HOUR, "%Y-%m-%d-%H-%M")


def last_sunday() -> str:
    """The newest partition of the newest fire on a Monday at six."""
    day = (int(time.time()) - 6 * HOUR) // DAY
    monday = day - (day + 3) % 7  # the epoch was a Thursday
    return label((monday - 1) * DAY, "%Y-%m-%d")


def label(instant: int, shape: str) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime(shape)


def missed(conf: Settings, start: int, bounds: Settings, *, before: str) -> list[str]:
    """The labels that a plain reader of the schedule expects: whole fires before the newest, skipped first, then capped."""
    is_weekly = conf is WEEKLY
    shape, interval, offset = ("%Y-%m-%d", DAY, 0) if is_weekly else ("%Y-%m-%d-%H-%M", 3 * HOUR, HOUR)
    newest = int(datetime.strptime(before, shape).replace(tzinfo=UTC).timestamp())
    end = newest - 6 * DAY if is_weekly else newest  # the newest fire wrote seven days itself
    skip_to = bounds.get("skip_to_date")
    labels = [
        label(at, shape) for at in range(start + offset, end, interval) if skip_to is None or iso(at) >= str(skip_to)
    ]
    cap = bounds.get("max_catchup_runs")
    return labels if cap is None else labels[-int(str(cap)) * (7 if is_weekly else 1) :]
