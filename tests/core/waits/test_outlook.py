"""What will become of partitions that are not there (C30)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.chronon import parse_schedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeSchedule, PartitionedSchedule
from airflow_chronon.core.waits.outlook import (
    Forecast,
    Outlook,
    RunEnd,
    TableWriter,
    WriterHistory,
    best,
    forecast,
    runs_to_ask,
)
from tests.support.confs import at

DAG = "staging_query.t.s.hourly__1"


def schedule_of(
    text: str, interval: int, offset: int = 0, catch_up: CatchUp | None = None, *, newest: bool = False
) -> PartitionedSchedule:
    grid = PartitionGrid(interval, offset)
    spec = PartitionSpec(grid, partition_format(default_pattern(grid)))
    parsed = parse_schedule(text)
    assert parsed is not None
    return PartitionedSchedule(
        spec, {Mode.BACKFILL: ModeSchedule(parsed, newest)}, catch_up or CatchUp(), (Mode.BACKFILL,)
    )


HOURLY = schedule_of("5 * * * *", HOUR)
WEEKLY = schedule_of("0 6 * * MON", DAY)


def writer_of(schedule: PartitionedSchedule | None) -> TableWriter:
    return TableWriter(DAG, Mode.BACKFILL, schedule)


def outlook(schedule: PartitionedSchedule, start: str, history: WriterHistory, now: str) -> Outlook:
    return forecast(writer_of(schedule), at(start), history, now=at(now)).outlook


class TestAPartitionThatIsToCome:
    def test_has_a_fire_that_has_not_run_yet(self) -> None:
        ran = WriterHistory(at("2026-06-01 10:00"))
        assert outlook(HOURLY, "2026-06-01 11:00", ran, "2026-06-01 10:30") is Outlook.TO_COME

    def test_is_of_a_writer_without_a_scheduled_run_yet(self) -> None:
        assert outlook(HOURLY, "2020-01-01", WriterHistory(None), "2026-06-01 10:30") is Outlook.TO_COME

    def test_is_due_and_its_run_is_created_any_moment(self) -> None:
        ran = WriterHistory(at("2026-06-01 10:00"))
        assert outlook(HOURLY, "2026-06-01 10:00", ran, "2026-06-01 11:06") is Outlook.TO_COME

    def test_has_an_unfinished_run(self) -> None:
        ran = WriterHistory(at("2026-06-01 10:00"), {"scheduled__2026-06-01-09-00": RunEnd.UNFINISHED})
        assert outlook(HOURLY, "2026-06-01 09:00", ran, "2026-06-01 10:30") is Outlook.TO_COME

    @pytest.mark.parametrize("ends", [{}, {"scheduled__2026-06-01-07-00": RunEnd.SKIPPED}])
    def test_may_be_written_by_a_replay_under_way(self, ends: dict[str, RunEnd]) -> None:
        ran = WriterHistory(at("2026-06-01 10:00"), ends, is_replaying=True)
        assert outlook(HOURLY, "2026-06-01 07:00", ran, "2026-06-01 10:30") is Outlook.TO_COME

    @pytest.mark.parametrize("schedule", [None, replace(HOURLY, modes={})])
    def test_is_anything_of_a_writer_that_is_off_or_not_known(self, schedule: PartitionedSchedule | None) -> None:
        found = forecast(writer_of(schedule), at("2026-06-01"), WriterHistory(None), now=at("2026-06-02"))
        assert found.outlook is Outlook.TO_COME
        assert "by hand" in found.note  # C12, C24: with a warning


@pytest.mark.parametrize(
    ("end", "expected"),
    [(RunEnd.LANDED, Outlook.GONE), (RunEnd.FAILED, Outlook.FAILED), (RunEnd.SKIPPED, Outlook.PASSED_OVER)],
)
def test_the_end_of_its_run_tells_what_became_of_a_partition(end: RunEnd, expected: Outlook) -> None:
    ran = WriterHistory(at("2026-06-01 10:00"), {"scheduled__2026-06-01-09-00": end})
    assert outlook(HOURLY, "2026-06-01 09:00", ran, "2026-06-01 10:30") is expected


def test_the_run_of_a_week_tells_of_each_of_its_days() -> None:  # C9
    monday = at("2026-06-08")
    runs, is_outside = runs_to_ask(writer_of(WEEKLY), [at("2026-06-03"), at("2026-06-06")], monday)
    assert list(runs) == ["scheduled__2026-06-07"] and not is_outside
    ran = WriterHistory(monday, {"scheduled__2026-06-07": RunEnd.FAILED})
    assert outlook(WEEKLY, "2026-06-03", ran, "2026-06-09") is Outlook.FAILED


class TestAPartitionThatNobodyWillWrite:
    def test_was_skipped_in_an_outage_without_catch_up(self) -> None:  # H8
        ran = WriterHistory(at("2026-06-01 10:00"), first_start=at("2026-05-01"))
        found = forecast(writer_of(HOURLY), at("2026-06-01 05:00"), ran, now=at("2026-06-01 10:30"))
        assert (found.outlook, found.is_before_first, found.key) == (Outlook.NEVER, False, "2026-06-01-05-00")

    def test_lies_before_all_that_its_writer_wrote(self) -> None:
        ran = WriterHistory(at("2026-06-01 10:00"), first_start=at("2026-06-01 09:00"))
        found = forecast(writer_of(HOURLY), at("2026-06-01 05:00"), ran, now=at("2026-06-01 10:30"))
        assert (found.outlook, found.is_before_first) == (Outlook.NEVER, True)

    def test_is_left_out_by_a_schedule_that_writes_only_the_newest(self) -> None:  # C9
        newest = schedule_of("0 6 * * MON", DAY, newest=True)
        assert outlook(newest, "2026-06-03", WriterHistory(at("2026-06-08")), "2026-06-09") is Outlook.NEVER
        assert outlook(newest, "2026-06-10", WriterHistory(at("2026-06-08")), "2026-06-09") is Outlook.NEVER

    def test_lies_after_the_end_of_its_writer(self) -> None:  # H15
        ended = replace(HOURLY, catch_up=CatchUp(end=at("2026-06-01 10:00")))
        assert (
            outlook(ended, "2026-06-01 11:00", WriterHistory(at("2026-06-01 10:00")), "2026-06-01 13:00")
            is Outlook.NEVER
        )

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            (CatchUp(enabled=True, start=at("2026-06-01")), Outlook.TO_COME),  # owed: the reconciler replays it (H13)
            (CatchUp(enabled=True, start=at("2026-06-01 06:00")), Outlook.NEVER),  # C29
            (CatchUp(enabled=True, start=at("2026-06-01"), skip_to=at("2026-06-01 06:00")), Outlook.NEVER),  # H11
            (CatchUp(enabled=True, start=at("2026-06-01"), max_runs=3), Outlook.NEVER),  # H10
            (CatchUp(enabled=True, start=at("2026-06-01"), max_runs=30), Outlook.TO_COME),
        ],
    )
    def test_is_beyond_what_a_schedule_catches_up(self, policy: CatchUp, expected: Outlook) -> None:
        schedule = replace(HOURLY, catch_up=policy)
        assert (
            outlook(schedule, "2026-06-01 05:00", WriterHistory(at("2026-06-01 10:00")), "2026-06-01 10:30") is expected
        )


def test_what_the_first_run_leaves_out_was_never_there() -> None:  # H9: the start date lies within the day of its run
    begins = schedule_of("0 0 * * *", HOUR, catch_up=CatchUp(start=at("2026-06-01 03:00")))
    midnight = at("2026-06-02")
    run = writer_of(begins).run_of(at("2026-06-01 02:00"))
    assert run is not None and run.end == midnight
    ran = WriterHistory(
        midnight, {writer_of(begins).run_id(run): RunEnd.LANDED}, first_start=at("2026-06-01 02:00") + 1
    )
    before, within = (
        forecast(writer_of(begins), at(f"2026-06-01 {hour}"), ran, now=midnight) for hour in ("02:00", "03:00")
    )
    assert (before.outlook, before.is_before_first) == (Outlook.NEVER, True)
    assert within.outlook is Outlook.GONE


@pytest.mark.parametrize("order", [1, -1])
def test_of_writers_that_never_will_one_that_had_begun_counts(order: int) -> None:
    later, hole = (
        Forecast(Outlook.NEVER, each, at("2026-06-01"), is_before_first=each == "later") for each in ("later", "hole")
    )
    assert best([later, hole][::order]).dag_id == "hole"


def test_of_several_writers_the_most_hopeful_counts() -> None:
    found = [Forecast(each, DAG, at("2026-06-01")) for each in (Outlook.NEVER, Outlook.FAILED, Outlook.PASSED_OVER)]
    assert best(found).outlook is Outlook.FAILED


SCHEDULES = [HOURLY, schedule_of("15 1-22/3 * * *", 3 * HOUR, HOUR), schedule_of("0 2 * * *", DAY), WEEKLY]
T0 = at("2026-06-01")


@given(
    schedule=st.sampled_from(SCHEDULES),
    catches_up=st.booleans(),
    cap=st.none() | st.integers(1, 6),
    up=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), min_size=1, max_size=4),
    late=st.integers(0, 500),
)
def test_what_is_to_come_comes_and_what_never_will_does_not(
    schedule: PartitionedSchedule, catches_up: bool, cap: int | None, up: list[tuple[int, int]], late: int
) -> None:
    """A scheduler that was up for some hours, again and again, and is up from now on: every forecast comes true (H8 to H10)."""
    policy = CatchUp(enabled=catches_up, max_runs=cap, start=T0) if catches_up else CatchUp()
    schedule = replace(schedule, catch_up=policy)
    made: list = []

    def tick(now: int) -> None:
        while (run := schedule.next_run(made[-1].end if made else None, now)) is not None and run.fire <= now:
            made.append(run)

    now = T0 + 40 * DAY
    for start, length in sorted(up):
        for hour in range(start, start + length):
            tick(now + hour * HOUR)
    now += (max(start + length for start, length in up) + late) * HOUR
    writer = writer_of(schedule)
    ends = {writer.run_id(run): RunEnd.LANDED for run in made}
    history = WriterHistory(made[-1].end if made else None, ends)
    grid = schedule.spec.grid
    asked = range(grid.floor(now) - 30 * grid.interval, grid.floor(now) + 10 * grid.interval, grid.interval)
    forecasts = {start: forecast(writer, start, history, now=now).outlook for start in asked}
    before = list(made)
    for hour in range(24 * 30):
        tick(now + hour * HOUR)

    def covered(runs: list, start: int) -> bool:
        return any(run.modes[Mode.BACKFILL].window.start <= start < run.end for run in runs)

    for start, found in forecasts.items():
        if covered(before, start):
            assert found is Outlook.GONE
        elif covered(made, start):
            assert found is Outlook.TO_COME
        elif not made or history.newest_end is None or (catches_up and cap is not None):
            continue  # C30: before the first run everything is to come; within a cap the reconciler may owe it (H13)
        else:
            assert found is Outlook.NEVER, (start, now)


@given(
    schedule=st.sampled_from(SCHEDULES),
    minutes=st.integers(0, 60 * 24 * 20),
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
def test_the_runs_before_an_instant_are_those_of_the_schedule(
    schedule: PartitionedSchedule, minutes: int, counts: list[int]
) -> None:
    end = T0 + minutes * 60
    batches = list(writer_of(schedule).run_ids_before(end, sorted(counts)))
    found = [(run_id, run_end) for batch in batches for run_id, run_end in batch.items()]
    expected = [run for run in schedule.runs_between(T0 - 400 * DAY, end + 40 * DAY) if run.end < end][-max(counts) :]
    assert found == [(writer_of(schedule).run_id(run), run.end) for run in reversed(expected)]
