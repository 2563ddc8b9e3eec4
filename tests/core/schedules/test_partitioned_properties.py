"""What the runs of every legal schedule of a conf write (C8 to C11)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE
from airflow_chronon.core.partitions.grid import LEGAL_INTERVALS
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from tests.support.both_schedules import all_runs, conf_schedules
from tests.support.confs import at
from tests.support.schedules import schedule_of

SLOW = settings(max_examples=60)


@given(conf_schedules())
@SLOW
def test_the_windows_of_each_mode_tile_the_timeline_too(schedule: PartitionedSchedule) -> None:
    for mode, of in schedule.modes.items():
        windows = [run.modes[mode].window for run in all_runs(schedule) if mode in run.modes]
        if of.only_newest:
            assert all(window.end - window.start == schedule.spec.grid.interval for window in windows)
        elif windows:
            assert windows[0].start == schedule.first_start
            assert all(a.end == b.start for a, b in pairwise(windows))


@given(conf_schedules())
@SLOW
def test_every_fire_of_every_mode_writes_the_newest_partition_that_it_closes(
    schedule: PartitionedSchedule,
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


@given(conf_schedules())
@SLOW
def test_a_backfill_writes_every_partition_since_the_start_once(schedule: PartitionedSchedule) -> None:  # C9, C28
    runs = all_runs(schedule)
    if schedule.modes.keys() == {Mode.BACKFILL} and runs:
        windows = [run.modes[Mode.BACKFILL].window for run in runs]
        written = [label for window in windows for label in schedule.spec.labels(window.start, window.end)]
        assert schedule.first_start is not None
        assert written == list(schedule.spec.labels(schedule.first_start, runs[-1].end))


@given(conf_schedules())
@SLOW
def test_the_run_of_an_end_is_found_again_and_no_other(schedule: PartitionedSchedule) -> None:
    runs, interval = all_runs(schedule), schedule.spec.grid.interval
    ends = {run.end: run for run in runs}
    if not runs:
        return
    assert schedule.first_start is not None
    for end in range(schedule.first_start + interval, runs[-1].end + 1, interval):
        assert schedule.run_ending(end) == ends.get(end)
    assert [schedule.made(run.window) for run in runs] == runs  # what is recorded of a run is the run


@pytest.mark.parametrize("interval", [interval for interval in LEGAL_INTERVALS if interval < DAY])
def test_every_legal_interval_has_a_cron_of_its_cadence(interval: int) -> None:
    text = f"*/{interval // MINUTE} * * * *" if interval < HOUR else f"0 */{interval // HOUR} * * *"
    schedule = schedule_of(text, interval, enabled=True, start=at("2026-06-01"))
    runs = list(schedule.runs_between(at("2026-06-02"), at("2026-06-03")))
    assert len(runs) == DAY // interval
    assert [run.window.end for run in runs] == [run.fire for run in runs]
