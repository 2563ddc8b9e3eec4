"""Which partitions a run is for (C9, C10, C27, H7)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, TimeWindow, parse_instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.schedules.chronon import parse_schedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeSchedule, PartitionedSchedule, Run
from airflow_chronon.core.schedules.request import RunRequest
from airflow_chronon.errors import ChrononError

NOW = parse_instant("2026-06-10T00:30:00Z")


def schedule(interval: int, offset: int = 0, **crons: str) -> PartitionedSchedule:
    grid = PartitionGrid(interval, offset)
    modes = {}
    for name, text in crons.items():
        cron = parse_schedule(text)
        assert cron is not None
        modes[Mode(name)] = ModeSchedule(cron, name != "backfill")
    return PartitionedSchedule(
        PartitionSpec(grid, partition_format(default_pattern(grid))), modes, all_modes=tuple(modes)
    )


WEEKLY = schedule(DAY, backfill="0 6 * * mon", upload="0 2 * * *")
BLOCKS = schedule(3 * HOUR, HOUR, backfill="15 1-22/3 * * *")


def window(start: str, end: str) -> TimeWindow:
    return TimeWindow(parse_instant(start), parse_instant(end))


def asked(of: PartitionedSchedule, **request: object) -> Run | None:
    return of.requested(RunRequest(**request), now=NOW)  # type: ignore[arg-type]


def test_a_replay_of_a_label_runs_every_mode_over_that_partition():
    # C9: partition by partition, whatever the schedule
    run = asked(WEEKLY, partition_key="2026-06-03")
    assert run is not None
    day = window("2026-06-03T00:00:00Z", "2026-06-04T00:00:00Z")
    assert {mode: of.window for mode, of in run.modes.items()} == {Mode.BACKFILL: day, Mode.UPLOAD: day}


def test_a_scheduled_run_covers_what_its_fire_covers():
    # C9, C10: on Mondays the backfill writes the week that has passed
    run = asked(WEEKLY, partition_key="2026-06-07", is_scheduled=True)
    assert run is not None
    assert run.modes[Mode.BACKFILL].window == window("2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z")
    assert run.modes[Mode.UPLOAD].window == window("2026-06-07T00:00:00Z", "2026-06-08T00:00:00Z")
    tuesday = asked(WEEKLY, partition_key="2026-06-08", is_scheduled=True)
    assert tuesday is not None
    assert set(tuesday.modes) == {Mode.UPLOAD}


def test_a_scheduled_run_from_before_a_change_of_schedule_still_has_its_partition():
    # the schedule of today does not fire for it any more
    monthly = schedule(DAY, backfill="0 0 1 * *")
    run = asked(monthly, partition_key="2026-06-03", is_scheduled=True)
    assert run is not None
    assert run.window == window("2026-06-03T00:00:00Z", "2026-06-04T00:00:00Z")


WEEK, SUNDAY = (
    window("2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z"),
    window("2026-06-07T00:00:00Z", "2026-06-08T00:00:00Z"),
)
MONDAYS, DAYS, MONTHS = "0 6 * * mon", "0 6 * * *", "0 0 1 * *"


@pytest.mark.parametrize(
    ("crons", "made", "expected"),
    [
        ({"backfill": DAYS}, WEEK, {"backfill": WEEK}),
        ({"backfill": MONTHS}, WEEK, {"backfill": WEEK}),  # today nothing fires for it
        ({"backfill": MONDAYS}, SUNDAY, {"backfill": SUNDAY}),
        ({"backfill": MONDAYS}, WEEK, {"backfill": WEEK}),
        ({"backfill": DAYS, "upload": DAYS}, WEEK, {"backfill": WEEK, "upload": SUNDAY}),  # C11
        ({"backfill": MONDAYS, "upload": DAYS}, WEEK, {"backfill": WEEK, "upload": SUNDAY}),
        ({"backfill": MONDAYS, "upload": DAYS}, SUNDAY, {"backfill": WEEK, "upload": SUNDAY}),  # C10
    ],
)
def test_a_scheduled_run_keeps_what_it_was_made_for_when_the_schedule_changes(crons, made, expected):
    # C22, C28: a retry writes the partitions that the first try was for
    run = asked(schedule(DAY, **crons), partition_key="2026-06-07", is_scheduled=True, interval=made)
    assert run is not None
    assert (run.window, {mode.value: of.window for mode, of in run.modes.items()}) == (made, expected)


def test_a_backfill_of_only_the_newest_partition_stays_one_whatever_its_run_was_made_for():
    # C9: a run's interval reaches back to the fire before, also when only its newest partition is written
    cron = parse_schedule(DAYS)
    assert cron is not None
    newest = PartitionedSchedule(WEEKLY.spec, {Mode.BACKFILL: ModeSchedule(cron, True)}, all_modes=(Mode.BACKFILL,))
    run = asked(newest, partition_key="2026-06-07", is_scheduled=True, interval=WEEK)
    assert run is not None
    assert run.modes[Mode.BACKFILL].window == SUNDAY


def test_a_range_is_inclusive_at_both_ends_and_one_label_is_enough():
    # C27
    run = asked(BLOCKS, start_ds="2026-06-01-01-00", end_ds="2026-06-01-07-00")
    assert run is not None
    assert run.window == window("2026-06-01T01:00:00Z", "2026-06-01T10:00:00Z")
    single = asked(BLOCKS, start_ds="2026-06-01-01-00")
    assert single is not None
    assert single.window == window("2026-06-01T01:00:00Z", "2026-06-01T04:00:00Z")


def test_the_upload_of_a_range_is_its_newest_partition():
    # C11
    run = asked(WEEKLY, start_ds="2026-06-01", end_ds="2026-06-03")
    assert run is not None
    assert run.modes[Mode.UPLOAD].window == window("2026-06-03T00:00:00Z", "2026-06-04T00:00:00Z")


def test_an_interval_of_whole_partitions_is_taken():
    run = asked(BLOCKS, interval=window("2026-06-01T01:00:00Z", "2026-06-01T07:00:00Z"))
    assert run is not None
    assert run.window == window("2026-06-01T01:00:00Z", "2026-06-01T07:00:00Z")


def test_the_key_wins_over_an_interval_that_contradicts_it():
    run = asked(
        BLOCKS, partition_key="2026-06-01-04-00", interval=window("2026-06-02T01:00:00Z", "2026-06-02T04:00:00Z")
    )
    assert run is not None
    assert run.window.start == parse_instant("2026-06-01T04:00:00Z")


def test_nothing_asked_is_no_window():
    # H7
    assert asked(BLOCKS) is None


@pytest.mark.parametrize(
    ("request_", "rule", "says"),
    [
        ({"partition_key": "2026-06-01-01-00", "start_ds": "2026-06-01"}, "C27", "not both"),
        ({"partition_key": "2026-06-01-01-00", "end_ds": "2026-06-01"}, "C27", "not both"),
        ({"end_ds": "2026-06-01"}, "H7", "without start_ds"),
        ({"start_ds": "2026-06-03", "end_ds": "2026-06-01"}, "C27", "is before start_ds"),
        ({"partition_key": "2026-06-01-02-00"}, "C7", "2026-06-01-01-00 or 2026-06-01-04-00"),
        ({"partition_key": "2026-06-09-22-00"}, "C27", "has not closed"),
        ({"start_ds": "2026-06-09-22-00"}, "C27", "has not closed"),
        ({"interval": window("2026-06-01T01:00:00Z", "2026-06-01T05:00:00Z")}, "C27", "is not a boundary of 3h@1h"),
        ({"interval": window("2026-06-09T22:00:00Z", "2026-06-10T01:00:00Z")}, "C27", "has not closed"),
        ({"partition_key": "9999-12-31-22-00"}, "C27", "not within the years 1970 to 2199"),
        ({"start_ds": "9999-12-31-23-30"}, "C27", "not within the years 1970 to 2199"),
        ({"start_ds": "0001-01-01"}, "C27", "not within the years 1970 to 2199"),
        ({"start_ds": "0001-01-01-00-30", "end_ds": "2026-06-01"}, "C27", "not within the years 1970 to 2199"),
    ],
)
def test_what_contradicts_itself_is_refused_in_one_sentence(request_, rule, says):
    with pytest.raises(ChrononError) as refusal:
        asked(BLOCKS, **request_)
    assert refusal.value.fault.rule == rule
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert BLOCKS.recorded(RunRequest(**request_), now=NOW) is None  # it failed in its first task, and wrote nothing


def test_a_range_means_in_every_task_what_had_closed_when_it_was_asked_for():
    # C27: a day as the end must not grow between the wait and the write
    request = RunRequest(start_ds="2026-06-09", end_ds="2026-06-09", asked_at=parse_instant("2026-06-09T08:10:00Z"))
    run = BLOCKS.requested(request, now=NOW)
    assert run is not None
    assert run.window == window("2026-06-08T22:00:00Z", "2026-06-09T07:00:00Z")
    assert any("left out of 2026-06-09" in note for note in BLOCKS.notes_on(request, now=NOW))


def test_a_minute_within_a_partition_asks_for_it_and_says_so():
    # C27
    run = asked(BLOCKS, start_ds="2026-06-01-02-00")
    assert run is not None
    assert run.window == window("2026-06-01T01:00:00Z", "2026-06-01T04:00:00Z")
    request = RunRequest(start_ds="2026-06-01-02-00")
    assert BLOCKS.notes_on(request, now=NOW) == ("2026-06-01-02-00 lies in 2026-06-01-01-00",)


MINUTES = schedule(MINUTE, backfill="* * * * *")


@pytest.mark.parametrize(
    ("request_", "count"),
    [
        ({"start_ds": "1970-01-01", "end_ds": "2026-06-01"}, 29_672_640),
        ({"start_ds": "2026-03-01-00-00", "end_ds": "2026-04-04-17-20"}, 50_001),
        ({"interval": window("1970-01-01T00:00:00Z", "2026-06-02T00:00:00Z")}, 29_672_640),
    ],
)
def test_a_run_of_too_many_partitions_is_refused_with_the_command_of_its_first_piece(request_, count):
    # S7
    with pytest.raises(ChrononError) as refusal:
        asked(MINUTES, **request_, dag_id="staging_query.t.s.minutes__1")
    fault = refusal.value.fault
    assert fault.rule == "S7" and f"{count} partitions, and one run covers at most 50000" in fault.message
    command = "airflow-chronon backfill staging_query.t.s.minutes__1 --start-ds "
    assert command in fault.remedy
    first, last = fault.remedy.partition(command)[2].split(" --end-ds ")
    piece = MINUTES.read_range(first, last, now=NOW)
    assert len(MINUTES.starts(piece.start, piece.end)) == 50_000


def test_a_month_of_minutes_is_one_run():
    # S7
    run = asked(MINUTES, start_ds="2026-05-01", end_ds="2026-05-31")
    assert run is not None and run.window == window("2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z")
