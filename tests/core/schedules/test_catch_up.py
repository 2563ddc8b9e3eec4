"""What becomes of missed fires (H8 to H11 for confs), and properties of every legal schedule."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE
from airflow_chronon.core.partitions.grid import LEGAL_INTERVALS, PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.chronon import CronSchedule, parse_schedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeSchedule, Run, RunSchedule
from tests.support.confs import at


def cron(text: str) -> CronSchedule:
    schedule = parse_schedule(text)
    assert schedule is not None
    return schedule


def schedule_of(grid: PartitionGrid, catch_up: CatchUp, **modes: str) -> RunSchedule:
    """A run schedule of crons by mode; an upload writes only the newest."""
    spec = PartitionSpec(grid, partition_format(default_pattern(grid)))
    built = {Mode(name): ModeSchedule(cron(text), only_newest=name == "upload") for name, text in modes.items()}
    return RunSchedule(spec, built, catch_up, tuple(built))


def hourly(catch_up: CatchUp) -> RunSchedule:
    return schedule_of(PartitionGrid(HOUR), catch_up, backfill="15 * * * *")


def keys(schedule: RunSchedule, runs: Iterator[Run] | list[Run]) -> list[str]:
    return [schedule.key_of(run)[-8:] for run in runs]


class TestWithoutCatchUp:  # H8
    def test_after_an_outage_there_is_one_run_for_the_newest_closed_partition(self) -> None:
        schedule = hourly(CatchUp())
        missed = schedule.missed(at("2026-06-10 03:00"), at("2026-06-10 09:20"))
        assert keys(schedule, missed) == ["10-08-00"]

    def test_a_new_conf_runs_its_newest_closed_partition_at_once(self) -> None:
        schedule = hourly(CatchUp())
        assert keys(schedule, schedule.missed(None, at("2026-06-10 09:20"))) == ["10-08-00"]

    def test_before_its_fire_a_closed_partition_does_not_run(self) -> None:
        schedule = hourly(CatchUp())
        assert keys(schedule, schedule.missed(None, at("2026-06-10 09:14"))) == ["10-07-00"]

    def test_the_skip_date_avoids_the_run_at_once(self) -> None:
        schedule = hourly(CatchUp(skip_to=at("2026-06-10 09:00")))
        now = at("2026-06-10 09:20")
        assert list(schedule.missed(None, now)) == []
        run = schedule.next_run(None, now)
        assert run is not None and schedule.key_of(run) == "2026-06-10-09-00"

    def test_lateness_under_one_interval_never_skips(self) -> None:
        schedule = hourly(CatchUp())
        run = schedule.next_run(at("2026-06-10 08:00"), at("2026-06-10 10:14:59"))
        assert run is not None and schedule.key_of(run) == "2026-06-10-08-00"


class TestWithCatchUp:  # H9, H10, H11
    START = at("2026-06-10")
    NOW = at("2026-06-10 06:20")

    def test_every_missed_partition_runs_oldest_first(self) -> None:
        schedule = hourly(CatchUp(enabled=True, start=self.START))
        assert keys(schedule, schedule.missed(None, self.NOW)) == [f"10-0{hour}-00" for hour in range(6)]
        assert keys(schedule, schedule.missed(at("2026-06-10 04:00"), self.NOW)) == ["10-04-00", "10-05-00"]

    def test_the_cap_keeps_the_newest(self) -> None:
        schedule = hourly(CatchUp(enabled=True, max_runs=2, start=self.START))
        assert keys(schedule, schedule.missed(None, self.NOW)) == ["10-04-00", "10-05-00"]

    def test_the_skip_date_drops_what_is_older(self) -> None:
        schedule = hourly(CatchUp(enabled=True, skip_to=at("2026-06-10 03:00"), start=self.START))
        assert keys(schedule, schedule.missed(None, self.NOW)) == ["10-03-00", "10-04-00", "10-05-00"]

    def test_the_skip_date_filters_before_the_cap_counts(self) -> None:
        late = CatchUp(enabled=True, max_runs=4, skip_to=at("2026-06-10 04:00"), start=self.START)
        assert keys(hourly(late), hourly(late).missed(None, self.NOW)) == ["10-04-00", "10-05-00"]

    def test_a_skip_date_inside_a_partition_begins_with_the_next(self) -> None:
        schedule = hourly(CatchUp(enabled=True, skip_to=at("2026-06-10 03:30"), start=self.START))
        assert keys(schedule, schedule.missed(None, self.NOW)) == ["10-04-00", "10-05-00"]

    def test_a_start_in_the_future_waits_for_it(self) -> None:
        schedule = hourly(CatchUp(enabled=True, start=at("2026-06-11")))
        assert list(schedule.missed(None, self.NOW)) == []
        run = schedule.next_run(None, self.NOW)
        assert run is not None and schedule.key_of(run) == "2026-06-11-00-00"

    def test_after_the_end_date_nothing_comes(self) -> None:
        schedule = hourly(CatchUp(enabled=True, start=self.START, end=at("2026-06-10 03:00")))
        assert keys(schedule, schedule.missed(None, self.NOW)) == ["10-00-00", "10-01-00", "10-02-00"]
        assert schedule.next_run(at("2026-06-10 03:00"), self.NOW) is None

    def test_a_weekly_schedule_catches_up_week_by_week(self) -> None:
        schedule = schedule_of(
            PartitionGrid(DAY), CatchUp(enabled=True, start=at("2026-06-03")), backfill="0 6 * * mon"
        )
        runs = list(schedule.missed(None, at("2026-06-22 07:00")))
        assert [schedule.key_of(run) for run in runs] == ["2026-06-07", "2026-06-14", "2026-06-21"]
        assert runs[0].window.start == at("2026-06-03")


SUB_DAILY = {  # an interval and a cron of that cadence, its phase anywhere
    15 * MINUTE: "7/15 * * * *",
    30 * MINUTE: "5,35 * * * *",
    HOUR: "50 * * * *",
    2 * HOUR: "10 1-23/2 * * *",
    3 * HOUR: "15 1-22/3 * * *",
    6 * HOUR: "0 4-22/6 * * *",
    12 * HOUR: "30 11,23 * * *",
}
DAILY = (
    "0 0 * * *",
    "0 2 * * *",
    "59 23 * * *",
    "0 6 * * mon",
    "30 1 * * mon-fri",
    "0 6 1 * *",
    "0 6 l * *",
    "0 6 1,15 * wed",
    "0 0 * jan,jun *",
)


@st.composite
def schedules(draw: st.DrawFn) -> RunSchedule:
    """Any legal schedule with catch-up: sub-daily, daily, weekly, monthly, with one mode or two."""
    start = draw(st.integers(at("2026-01-01"), at("2026-03-01")))
    catch_up = CatchUp(enabled=True, start=start)
    interval = draw(st.sampled_from([*SUB_DAILY, DAY, DAY, DAY]))
    grid = PartitionGrid(interval, draw(st.integers(0, interval // MINUTE - 1)) * MINUTE)
    modes = draw(st.sampled_from([["backfill"], ["upload"], ["backfill", "upload"]]))
    texts = [SUB_DAILY[interval]] if interval in SUB_DAILY else list(DAILY)
    picked = {mode: draw(st.sampled_from(texts)) for mode in modes}
    return schedule_of(grid, catch_up, **picked)


def until(schedule: RunSchedule) -> int:
    """A while after the start: long enough for coarse schedules, short enough for fine ones."""
    assert schedule.catch_up.start is not None
    return schedule.catch_up.start + (4 * DAY if schedule.spec.grid.interval < DAY else 200 * DAY)


def all_runs(schedule: RunSchedule) -> list[Run]:
    assert schedule.catch_up.start is not None
    return list(schedule.runs_between(schedule.catch_up.start, until(schedule)))


SLOW = settings(max_examples=60)


class TestProperties:
    @given(schedules())
    @SLOW
    def test_runs_tile_the_timeline_from_the_start_with_no_gap_and_no_overlap(self, schedule: RunSchedule) -> None:
        runs = all_runs(schedule)
        if not runs:
            return
        assert runs[0].window.start == schedule.first_start
        for earlier, later in itertools.pairwise(runs):
            assert earlier.window.end == later.window.start
            assert earlier.fire < later.fire

    @given(schedules())
    @SLOW
    def test_the_windows_of_each_mode_tile_it_too(self, schedule: RunSchedule) -> None:
        for mode, of in schedule.modes.items():
            windows = [run.modes[mode].window for run in all_runs(schedule) if mode in run.modes]
            if of.only_newest:
                assert all(window.end - window.start == schedule.spec.grid.interval for window in windows)
            elif windows:
                assert windows[0].start == schedule.first_start
                assert all(a.end == b.start for a, b in itertools.pairwise(windows))

    @given(schedules())
    @SLOW
    def test_every_fire_of_every_mode_writes_the_newest_partition_that_it_closes(
        self, schedule: RunSchedule
    ) -> None:  # C8
        runs = all_runs(schedule)
        for run in runs:
            assert run.fire == min(of.fire for of in run.modes.values())
            for mode, of in run.modes.items():
                assert schedule.spec.grid.floor(of.fire) == of.window.end == run.window.end
                assert schedule.modes[mode].schedule.first_at_or_after(of.fire) == of.fire
        if runs and schedule.first_start is not None:
            for mode, mode_schedule in schedule.modes.items():
                fired = {run.modes[mode].fire for run in runs if mode in run.modes}
                fire = mode_schedule.schedule.first_at_or_after(schedule.first_start + schedule.spec.grid.interval)
                while fire < runs[-1].fire:
                    assert fire in fired
                    fire = mode_schedule.schedule.first_at_or_after(fire + 1)

    @given(schedules())
    @SLOW
    def test_driven_step_by_step_it_makes_the_same_runs(self, schedule: RunSchedule) -> None:
        last: int | None = None
        for expected in all_runs(schedule):
            run = schedule.next_run(last, expected.fire)
            assert run == expected
            last = run.end

    @given(schedules(), st.data())
    @SLOW
    def test_after_any_interruptions_and_catch_up_no_partition_is_missing(
        self, schedule: RunSchedule, data: st.DataObject
    ) -> None:
        assert schedule.catch_up.start is not None
        end = until(schedule) - 1
        ticks = sorted(data.draw(st.lists(st.integers(schedule.catch_up.start, end), max_size=6)))
        last: int | None = None
        done: list[Run] = []
        for now in [*ticks, end]:
            for run in schedule.missed(last, now):
                done.append(run)
                last = run.end
                if data.draw(st.booleans()):
                    break  # interrupted in mid catch-up
        done += schedule.missed(last, end)
        assert done == all_runs(schedule)
        if schedule.modes.keys() == {Mode.BACKFILL} and done:
            written = [label for run in done for label in schedule.spec.labels(*_window(run))]
            assert schedule.first_start is not None
            assert written == list(schedule.spec.labels(schedule.first_start, done[-1].end))

    @given(schedules(), st.data())
    @SLOW
    def test_without_catch_up_an_outage_gives_exactly_one_run_the_newest(
        self, schedule: RunSchedule, data: st.DataObject
    ) -> None:
        lossy = replace(schedule, catch_up=CatchUp(start=schedule.catch_up.start))
        runs = [run for run in all_runs(schedule) if run.fire < until(schedule)]
        if len(runs) < 2:
            return
        last = data.draw(st.sampled_from(runs[:-1]))
        assert list(lossy.missed(last.end, until(schedule) - 1)) == [runs[-1]]

    @given(schedules(), st.booleans(), st.data())
    @SLOW
    def test_whatever_the_clock_does_no_unclosed_partition_runs_and_none_runs_twice(
        self, schedule: RunSchedule, catch_up: bool, data: st.DataObject
    ) -> None:
        assert schedule.catch_up.start is not None
        schedule = replace(schedule, catch_up=replace(schedule.catch_up, enabled=catch_up))
        last: int | None = None
        for now in data.draw(
            st.lists(st.integers(schedule.catch_up.start, until(schedule)), max_size=12)
        ):  # in any order
            run = schedule.next_run(last, now)
            if run is None or run.fire > now:
                continue
            assert run.window.end <= run.fire <= now
            assert last is None or run.window.end > last
            last = run.window.end

    @given(schedules(), st.integers(1, 8), st.data())
    @SLOW
    def test_the_cap_keeps_exactly_the_newest_and_counts_after_the_skip_date(
        self, schedule: RunSchedule, cap: int, data: st.DataObject
    ) -> None:
        assert schedule.catch_up.start is not None
        now = until(schedule) - 1
        skip_to = data.draw(st.none() | st.integers(schedule.catch_up.start, now))
        due = [run for run in all_runs(schedule) if run.fire <= now]
        newest_start = schedule.spec.grid.interval
        kept = [run for run in due if skip_to is None or run.end - newest_start >= skip_to][-cap:]
        capped = replace(schedule, catch_up=replace(schedule.catch_up, max_runs=cap, skip_to=skip_to))
        assert list(capped.missed(None, now)) == kept

    @given(schedules(), st.data())
    @SLOW
    def test_the_run_of_an_end_is_found_again_and_no_other(self, schedule: RunSchedule, data: st.DataObject) -> None:
        runs = all_runs(schedule)
        ends = {run.end: run for run in runs}
        if not runs:
            return
        assert schedule.first_start is not None
        for end in range(
            schedule.first_start + schedule.spec.grid.interval, runs[-1].end + 1, schedule.spec.grid.interval
        ):
            assert schedule.run_ending(end) == ends.get(end)
        assert [schedule.made(run.window) for run in runs] == runs  # what is recorded of a run is the run


def _window(run: Run) -> tuple[int, int]:
    window = run.modes[Mode.BACKFILL].window
    return window.start, window.end


@pytest.mark.parametrize("interval", [interval for interval in LEGAL_INTERVALS if interval < DAY])
def test_every_legal_interval_has_a_cron_of_its_cadence(interval: int) -> None:
    text = f"*/{interval // MINUTE} * * * *" if interval < HOUR else f"0 */{interval // HOUR} * * *"
    schedule = schedule_of(PartitionGrid(interval), CatchUp(enabled=True, start=at("2026-06-01")), backfill=text)
    runs = list(schedule.runs_between(at("2026-06-02"), at("2026-06-03")))
    assert len(runs) == DAY // interval
    assert [run.window.end for run in runs] == [run.fire for run in runs]
