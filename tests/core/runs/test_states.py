"""What became of each partition, and why nothing ran (H20)."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR, TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.states import Known, KnownRun, PartitionRow, State, partition_rows
from airflow_chronon.core.schedules.revision import ScheduleRevision
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import at, plan_of, staging_query

NOW = "2026-06-10 00:30"


def hourly(schedule: str = "0 * * * *", **settings: Any) -> ConfPlan:
    return plan_of(staging_query(schedule=schedule, interval="1h"), settings=Settings(**settings))


def daily(schedule: str = "@daily", **settings: Any) -> ConfPlan:
    return plan_of(staging_query(schedule=schedule), settings=Settings(**settings))


def run(plan: ConfPlan, label: str, state: str = "success", *, scheduled: bool = True, order: float = 0) -> KnownRun:
    start = plan.spec.start_of(label)
    window = TimeWindow(start, start + plan.spec.grid.interval)
    return KnownRun(f"{state} {label} {order}", state, scheduled, window, (order, ""))


def rows(plan: ConfPlan, first: str, last: str, known: Known, now: str = NOW) -> list[PartitionRow]:
    window = range(at(first), at(last) + 1, plan.spec.grid.interval)
    return partition_rows(plan.schedule, window, known, now=at(now))


def states(found: list[PartitionRow]) -> list[str]:
    return [f"{row.state.value}: {row.reason}" if row.reason else row.state.value for row in found]


def test_without_airflow_the_catalog_tells_landed_from_missing() -> None:
    plan = daily()
    found = rows(plan, "2026-06-07", "2026-06-10", Known(landed=frozenset({"2026-06-08"})))
    assert states(found) == ["missing", "landed", "missing", "open"]


def test_runs_decide_over_the_catalog_and_the_newest_run_decides_over_older_ones() -> None:
    plan = daily()
    runs = [
        run(plan, "2026-06-05", "failed", order=2),
        run(plan, "2026-06-05", "success", order=1),
        run(plan, "2026-06-06", "failed", order=1),
        run(plan, "2026-06-06", "success", order=2),
        run(plan, "2026-06-07", "failed", order=9),
        run(plan, "2026-06-07", "running", order=1),
        run(plan, "2026-06-08", "queued"),
        run(plan, "2026-06-09"),
    ]
    landed = frozenset({"2026-06-05", "2026-06-06"})
    found = rows(plan, "2026-06-05", "2026-06-09", Known(landed=landed, runs=runs))
    assert [row.state for row in found] == [State.FAILED, State.LANDED, State.RUNNING, State.QUEUED, State.MISSING]
    assert found[-1].reason == "its run ended well, and it is not there"
    assert found[0].landed is True


def test_catch_up_off_is_the_reason_of_what_an_outage_left_out() -> None:
    plan = hourly()
    runs = [run(plan, "2026-06-09-10-00"), run(plan, "2026-06-09-14-00")]
    found = rows(plan, "2026-06-09 10:00", "2026-06-09 14:00", Known(landed=frozenset(), runs=runs))
    assert states(found[1:4]) == ["skipped: catch-up off"] * 3


def test_what_comes_by_itself_is_due_and_not_skipped() -> None:
    plan = hourly()
    found = rows(plan, "2026-06-09 22:00", "2026-06-09 23:00", Known(landed=frozenset(), runs=[]))
    assert states(found) == ["skipped: catch-up off", "due: fires at 2026-06-10T00:00:00Z"]


def test_a_partition_that_should_be_there_by_now_says_since_when() -> None:
    plan = hourly()
    known = Known(landed=frozenset({"2026-06-09-20-00"}), runs=[], freshness=2 * HOUR)
    found = rows(plan, "2026-06-09 19:00", "2026-06-09 23:00", known)
    assert [row.late_since for row in found] == [None, None, at("2026-06-10"), None, None]  # before its history; there
    assert found[2].as_json()["late_since"] == "2026-06-10T00:00:00Z"


def test_before_the_start_after_the_end_and_skipped_to_a_date_name_their_settings() -> None:
    plan = daily(start_date="2026-06-03", end_date="2026-06-08", catchup=True, skip_to_date="2026-06-05")
    done = [run(plan, f"2026-06-0{day}") for day in range(5, 9)]
    landed = frozenset(f"2026-06-0{day}" for day in range(5, 9))
    found = rows(plan, "2026-06-02", "2026-06-09", Known(landed=landed, runs=done))
    assert states(found) == [
        "skipped: before the start: start_date is 2026-06-03T00:00:00Z",
        *["skipped: skipped to a date: skip_to_date is 2026-06-05T00:00:00Z"] * 2,
        *["landed"] * 4,
        "skipped: after the end: end_date is 2026-06-09T00:00:00Z",
    ]


def test_the_cap_is_the_reason_of_all_but_the_newest_missed() -> None:  # H10
    plan = daily(start_date="2026-06-01", catchup=True, max_catchup_runs=3)
    runs = [run(plan, f"2026-06-0{day}") for day in (7, 8, 9)]
    landed = frozenset(f"2026-06-0{day}" for day in (7, 8, 9))
    found = rows(plan, "2026-06-01", "2026-06-09", Known(landed=landed, runs=runs))
    assert states(found) == ["skipped: capped: max_catchup_runs is 3"] * 6 + ["landed"] * 3


def test_a_partition_that_catch_up_should_have_run_is_a_hole_and_not_explained_away() -> None:
    plan = daily(start_date="2026-06-01", catchup=True)
    runs = [run(plan, "2026-06-09")]
    found = rows(plan, "2026-06-08", "2026-06-08", Known(landed=frozenset(), runs=runs))
    assert found[0].state is State.MISSING
    assert "replay it" in found[0].reason


def test_a_conf_without_a_schedule_says_schedule_off() -> None:  # C12
    found = rows(daily("@never"), "2026-06-08", "2026-06-08", Known(landed=frozenset(), runs=[]))
    assert states(found) == ["skipped: schedule off"]


def test_another_grid_at_the_first_write_is_the_reason_of_everything_without_a_run() -> None:  # C22
    known = Known(landed=frozenset(), runs=[], kept_grid="3h")
    found = rows(hourly(), "2026-06-09 03:00", "2026-06-09 03:00", known)
    assert states(found) == ["skipped: grid changed: the table is on 3h, the conf on 1h"]


@pytest.mark.parametrize(("covers", "expected"), [("elapsed", "missing"), ("newest", "skipped")])
def test_a_coarse_schedule_that_writes_only_the_newest_partition_says_so(covers: str, expected: str) -> None:  # C9
    plan = daily("0 6 * * MON", covers=covers, start_date="2026-05-01", catchup=True)
    runs = [run(plan, "2026-06-07")]
    found = rows(plan, "2026-06-03", "2026-06-03", Known(landed=frozenset(), runs=runs))
    assert found[0].state.value == expected
    if covers == "newest":
        assert found[0].reason == "the schedule writes only the newest partition"


def test_what_held_when_the_fire_came_is_the_reason_and_not_what_holds_now() -> None:
    plan = daily(start_date="2026-06-01")
    off, on = daily("@never", start_date="2026-06-01"), plan
    revisions = [
        ScheduleRevision(at("2026-06-01"), on.schedule),
        ScheduleRevision(at("2026-06-04"), off.schedule),
        ScheduleRevision(at("2026-06-07"), on.schedule),
    ]
    runs = [run(plan, "2026-06-09")]
    found = rows(plan, "2026-06-01", "2026-06-08", Known(landed=frozenset(), runs=runs, revisions=revisions))
    assert states(found) == [
        *["skipped: catch-up off"] * 2,
        *["skipped: schedule off: since 2026-06-04T00:00:00Z"] * 3,
        *["skipped: catch-up off"] * 3,
    ]


def test_catch_up_that_was_switched_off_before_it_came_round_is_the_reason() -> None:  # H20
    on, off = daily(start_date="2026-06-01", catchup=True), daily(start_date="2026-06-01")
    revisions = [
        ScheduleRevision(at("2026-06-01"), on.schedule),
        ScheduleRevision(at("2026-06-08 12:00"), off.schedule),
    ]
    found = rows(
        off, "2026-06-03", "2026-06-05", Known(landed=frozenset(), runs=[run(off, "2026-06-09")], revisions=revisions)
    )
    assert states(found) == ["skipped: catch-up off"] * 3


def test_what_closed_while_the_schedule_was_off_and_is_caught_up_is_due() -> None:  # H14, H20
    on = hourly(start_date="2026-06-09T12:00Z", catchup=True)
    off = hourly(start_date="2026-06-09T12:00Z", catchup=True, enabled=False)
    revisions = [
        ScheduleRevision(at("2026-06-09"), on.schedule),
        ScheduleRevision(at("2026-06-09 21:10"), off.schedule, enabled=False),
        ScheduleRevision(at("2026-06-10 00:20"), on.schedule),
    ]
    known = Known(landed=frozenset(), runs=[run(on, "2026-06-09-20-00")], revisions=revisions)
    assert states(rows(on, "2026-06-09 21:00", "2026-06-09 23:00", known)) == [
        "due: fires at 2026-06-09T22:00:00Z",
        "due: fires at 2026-06-09T23:00:00Z",
        "due: fires at 2026-06-10T00:00:00Z",
    ]


def test_a_conf_that_was_first_off_catches_up_from_its_start() -> None:  # H13, H20
    on, off = hourly(start_date="2026-06-09T22:00Z", catchup=True), hourly("@never")
    revisions = [
        ScheduleRevision(at("2026-06-01"), off.schedule),
        ScheduleRevision(at("2026-06-10 00:20"), on.schedule),
    ]
    found = rows(on, "2026-06-09 21:00", "2026-06-09 23:00", Known(landed=frozenset(), runs=[], revisions=revisions))
    assert [row.state for row in found] == [State.SKIPPED, State.DUE, State.DUE]


def test_a_weekly_run_writes_the_days_on_which_its_schedule_was_off() -> None:  # C9, H20
    on = daily("0 6 * * MON", start_date="2026-05-01")
    off = daily("0 6 * * MON", start_date="2026-05-01", enabled=False)
    revisions = [
        ScheduleRevision(at("2026-05-01"), on.schedule),
        ScheduleRevision(at("2026-06-08 12:00"), off.schedule, enabled=False),
        ScheduleRevision(at("2026-06-09 12:00"), on.schedule),
    ]
    runs = [KnownRun("x", "success", True, TimeWindow(at("2026-06-01"), at("2026-06-08")))]
    found = rows(on, "2026-06-08", "2026-06-09", Known(landed=frozenset(), runs=runs, revisions=revisions))
    assert states(found) == ["due: fires at 2026-06-15T06:00:00Z"] * 2


def test_what_waits_for_a_pause_to_end_is_paused_and_not_due() -> None:  # H14, H20
    plan = hourly(start_date="2026-06-09", catchup=True)
    revisions = [
        ScheduleRevision(at("2026-06-09"), plan.schedule),
        ScheduleRevision(at("2026-06-09 22:30"), plan.schedule, is_paused=True),
    ]
    known = Known(landed=frozenset(), runs=[run(plan, "2026-06-09-21-00")], revisions=revisions)
    expected = "skipped: paused: since 2026-06-09T22:30:00Z"
    assert states(rows(plan, "2026-06-09 22:00", "2026-06-09 23:00", known)) == [expected] * 2


@pytest.mark.parametrize("now", ["2026-06-13 12:30", "2026-06-16 12:30"])  # Friday's change, before and after Monday
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "skipped: catch-up off"),
        (
            {"start_date": "2026-05-01", "catchup": True, "max_catchup_runs": 1},
            "skipped: capped: max_catchup_runs is 1",
        ),
    ],
)
def test_days_of_a_week_whose_fire_never_came_are_explained_by_the_schedule_that_followed(
    settings: dict[str, Any], expected: str, now: str
) -> None:  # C9, H20
    weekly, every_day = daily("0 6 * * MON", **settings), daily("0 6 * * *", **settings)
    revisions = [
        ScheduleRevision(at("2026-05-01"), weekly.schedule),
        ScheduleRevision(at("2026-06-12 12:00"), every_day.schedule),
    ]
    runs = [
        KnownRun("w", "success", True, TimeWindow(at("2026-06-01"), at("2026-06-08"))),
        *(run(every_day, f"2026-06-{day}") for day in range(11, 16) if at(f"2026-06-{day} 23:59") < at(now)),
    ]
    found = rows(
        every_day, "2026-06-08", "2026-06-10", Known(landed=frozenset(), runs=runs, revisions=revisions), now=now
    )
    assert states(found) == [expected] * 3


@pytest.mark.parametrize("now", ["2026-06-12 12:30", "2026-06-16 12:30"])
def test_days_of_a_week_that_the_end_date_cuts_are_never_due(now: str) -> None:  # C9, C29, H20
    plan = daily("0 6 * * MON", start_date="2026-05-01", end_date="2026-06-09", catchup=True)
    runs = [KnownRun("w", "success", True, TimeWindow(at("2026-06-01"), at("2026-06-08")))]
    found = rows(plan, "2026-06-08", "2026-06-10", Known(landed=frozenset(), runs=runs), now=now)
    assert states(found) == ["skipped: after the end: end_date is 2026-06-10T00:00:00Z"] * 3


def test_what_a_cap_dropped_stays_capped_when_the_cap_is_lifted() -> None:  # H10, H20
    capped = daily(start_date="2026-06-01", catchup=True, max_catchup_runs=2)
    lifted = daily(start_date="2026-06-01", catchup=True)
    revisions = [
        ScheduleRevision(at("2026-06-01"), capped.schedule),
        ScheduleRevision(at("2026-06-09 12:00"), lifted.schedule),
    ]
    known = Known(landed=frozenset(), runs=[run(lifted, "2026-06-09")], revisions=revisions)
    assert states(rows(lifted, "2026-06-03", "2026-06-04", known)) == ["skipped: capped: max_catchup_runs is 2"] * 2


def test_every_closed_partition_of_a_year_of_hours_gets_a_state_or_a_reason() -> None:
    plan = hourly(start_date="2025-06-10", catchup=True, max_catchup_runs=2000)
    window = range(at(NOW) // HOUR * HOUR - 365 * DAY, at(NOW) // HOUR * HOUR, HOUR)
    found = partition_rows(plan.schedule, window, Known(landed=frozenset(), runs=[]), now=at(NOW))
    assert len(found) == 8760
    assert sum(row.state is State.DUE for row in found) == 2000
    assert sum(row.reason.startswith("capped") for row in found) == 8760 - 2000
