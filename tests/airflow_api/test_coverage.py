"""What Airflow's runs cover of a conf whose uploads come daily and whose backfill comes weekly (C10)."""

from __future__ import annotations

import pytest

from airflow_chronon.airflow_api.coverage import known_runs
from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.core.calendar.instants import DAY
from airflow_chronon.core.records.pending import pending_ranges
from airflow_chronon.core.records.record import PendingBackfill
from airflow_chronon.core.runs.states import Known, partition_rows
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import at, events, group_by, plan_of

MIXED = plan_of(
    group_by("t.g.x__1", sources=[events("data.e")], schedule="0 6 * * MON", online="0 6 * * *"),
    settings=Settings.model_validate({"catchup": True, "start_date": "2026-06-01"}),
)
NOW = at("2026-06-17 12:00")  # a Wednesday
WEEK = [f"2026-06-{day:02}" for day in range(8, 15)]  # Monday's run of the 15th is named by its Sunday


def ran(*, lost: str = "", until: int = NOW) -> list[RunRecord]:
    """The scheduled runs, all but a lost one."""
    runs = MIXED.schedule
    return [
        RunRecord(MIXED.dag_id, f"scheduled__{key}", "scheduled", "success", key, run.end - DAY, window=run.window)
        for run in runs.runs_between(at("2026-06-02"), until)
        if (key := runs.key_of(run)) != lost
    ]


def pending(*past: RunRecord) -> list[str]:
    _, found = pending_ranges(PendingBackfill(NOW), MIXED.schedule, known_runs(past, MIXED.schedule, now=NOW))
    return [label for label_range in found for label in label_range.labels]


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ("", []),  # the days since Monday have their uploads, and their backfill is to come
        ("2026-06-14", WEEK),
        ("2026-06-10", ["2026-06-10"]),  # an upload, in a week that Monday's backfill has filled
        ("2026-06-15", ["2026-06-15"]),
    ],
)
def test_a_lost_run_is_replayed_over_all_that_its_modes_would_have_written(lost: str, expected: list[str]) -> None:
    # C28, H13
    assert pending(*ran(lost=lost)) == expected


def test_what_was_replayed_of_a_lost_run_is_no_longer_pending() -> None:  # H13
    replays = [RunRecord(MIXED.dag_id, f"backfill__{key}", "backfill", "failed", key, at(key)) for key in WEEK[:3]]
    assert pending(*ran(lost="2026-06-14"), *replays) == WEEK[3:]


def test_days_whose_uploads_ran_are_due_at_the_fire_of_their_backfill() -> None:  # H20
    now = at("2026-06-12 12:00")
    runs = known_runs(ran(until=now), MIXED.schedule, now=now)
    starts = MIXED.schedule.starts(at("2026-06-07"), at("2026-06-12"))
    rows = partition_rows(MIXED.schedule, starts, Known(landed=frozenset({"2026-06-07"}), runs=runs), now=now)
    found = [(row.state.value, row.reason) for row in rows]
    assert found == [("landed", ""), *[("due", "fires at 2026-06-15T06:00:00Z")] * 4]
    assert rows[0].run_id == "scheduled__2026-06-07"


def test_a_week_that_a_backfill_filled_belongs_to_its_run() -> None:  # H20
    runs = known_runs(ran(), MIXED.schedule, now=NOW)
    rows = partition_rows(MIXED.schedule, map(at, WEEK), Known(landed=frozenset(WEEK[1:]), runs=runs), now=NOW)
    assert {row.run_id for row in rows} == {"scheduled__2026-06-14"}
    assert rows[0].reason == "its run ended well, and it is not there"
