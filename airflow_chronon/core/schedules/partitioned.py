"""Which runs a schedule makes over a grid, and what each of them writes (C8 to C11, C29, H8 to H11).

One :class:`RunSchedule` per conf: its grid, its modes and its catch-up policy. Everything here is integer arithmetic over
instants that come in as arguments; the timetable, ``explain`` and the sensors all ask the same object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec
from airflow_chronon.core.schedules.chronon import CronSchedule
from airflow_chronon.core.schedules.modes import Mode


@dataclass(frozen=True)
class ModeRun:
    """One mode within one run."""

    fire: Instant
    window: TimeWindow  #: what it writes, whole partitions


@dataclass(frozen=True)
class Run:
    """One run of a conf: it is named by its newest partition."""

    fire: Instant  #: the first fire of its modes
    window: TimeWindow  #: from the end of the previous run to the end of the newest partition
    modes: Mapping[Mode, ModeRun]

    @property
    def end(self) -> Instant:
        return self.window.end


@dataclass(frozen=True)
class ModeSchedule:
    """When one mode fires, and whether it writes only the newest partition."""

    schedule: CronSchedule
    only_newest: bool = False


@dataclass(frozen=True)
class CatchUp:
    """What happens to fires that were missed (H8 to H11) and where the schedule begins and ends (C29, H15)."""

    enabled: bool = False
    max_runs: int | None = None  #: keep the newest so many of what was missed
    skip_to: Instant | None = None  #: drop partitions that start before it
    start: Instant | None = None  #: the earliest partition start
    end: Instant | None = None  #: no partition ends after it


@dataclass(frozen=True)
class RunSchedule:
    """The runs of one conf version.

    Without modes it never fires, yet any label can be replayed (C12).
    """

    spec: PartitionSpec
    modes: Mapping[Mode, ModeSchedule] = field(default_factory=dict)
    catch_up: CatchUp = CatchUp()
    all_modes: tuple[Mode, ...] = ()  #: what a replay runs; the enabled modes unless more are given

    @cached_property
    def first_start(self) -> Instant | None:
        """The earliest start of a partition that is written."""
        start = self.catch_up.start
        return None if start is None else self.spec.grid.ceil(start)

    def run_after(self, end: Instant) -> Run | None:
        """The first run whose newest partition ends after ``end``; None when there is none."""
        grid = self.spec.grid
        if self.first_start is not None:
            end = max(end, self.first_start)
        boundary = grid.floor(end) + grid.interval
        if not self.modes:
            return None
        fires = {mode: of.schedule.first_at_or_after(boundary) for mode, of in self.modes.items()}
        ends = {mode: grid.floor(fire) for mode, fire in fires.items()}
        next_end = min(ends.values())
        if self.catch_up.end is not None and next_end > self.catch_up.end:
            return None
        return self._run(next_end, {mode: fires[mode] for mode in fires if ends[mode] == next_end})

    def first_after(self, end: Instant) -> Run | None:
        """The first run after ``end`` that the skip date keeps (H11)."""
        skip_to = self.catch_up.skip_to
        return self.run_after(end if skip_to is None else max(end, self.spec.grid.ceil(skip_to)))

    def last_run(self, now: Instant) -> Run | None:
        """The newest run whose fire has come by ``now``; None when there is none yet."""
        if not self.modes:
            return None
        limit = now + 1
        if self.catch_up.end is not None:
            limit = min(limit, self.spec.grid.floor(self.catch_up.end) + self.spec.grid.interval)
        return self._newest_fired_before(limit)

    def run_ending(self, end: Instant) -> Run | None:
        """The scheduled run whose newest partition ends at ``end``; None when no schedule fires for it."""
        run = self.run_after(end - self.spec.grid.interval)
        return run if run is not None and run.end == end else None

    def made(self, window: TimeWindow) -> Run:
        """The scheduled run that was made over ``window``, maybe under another schedule: it stays what it was (C22, C28).

        The backfill wrote the window then, where it does not write only the newest partition; a mode that reaches back
        beyond today's runs (C10) may have reached beyond that one too.
        """
        run = self.run_ending(window.end)
        if run is not None and run.window == window:
            return run
        newest = self.partition(window.end - self.spec.grid.interval)
        run = run or self.replay(newest)
        modes, planned, backfill = dict(run.modes), run.modes.get(Mode.BACKFILL), self.modes.get(Mode.BACKFILL)
        if planned is not None and not (backfill is not None and backfill.only_newest):
            reaches_beyond = planned.window.start < run.window.start
            start = min(window.start, planned.window.start) if reaches_beyond else window.start
            modes[Mode.BACKFILL] = replace(planned, window=TimeWindow(start, window.end))
        return replace(run, window=window, modes=modes)

    def runs_between(self, start: Instant, end: Instant) -> Iterator[Run]:
        """Every run whose first fire lies in ``[start, end)``, oldest first."""
        run = self.run_after(self.spec.grid.floor(start) - self.spec.grid.interval)
        while run is not None and run.fire < end:
            if run.fire >= start:
                yield run
            run = self.run_after(run.end)

    def next_run(self, last_end: Instant | None, now: Instant) -> Run | None:
        """The run to create next, after one that ended at ``last_end`` (None: the schedule is new), as of ``now``.

        Its fire may lie ahead. Without catch-up it is the newest run that is due, else the first one to come (H8). With
        catch-up it is the oldest missed one within the skip date and the cap (H9 to H11).
        """
        newest = self.last_run(now)
        if newest is None:  # nothing is due yet: the first run of all, or the one after the last
            return self.first_after(last_end if last_end is not None else self._before_start(now))
        if last_end is not None and newest.end <= last_end:
            return self.first_after(last_end)
        if not self.catch_up.enabled:
            return newest if self._is_kept(newest) else self.first_after(newest.end)
        return self._oldest_missed(last_end, newest)

    def missed(self, last_end: Instant | None, now: Instant) -> Iterator[Run]:
        """Every run that is created at ``now``, oldest first."""
        run = self.next_run(last_end, now)
        while run is not None and run.fire <= now:
            yield run
            run = self.run_after(run.end)

    def replay(self, window: TimeWindow) -> Run:
        """A replay or a manual run over whole partitions: every mode, whatever the schedule (C9)."""
        grid = self.spec.grid
        newest = TimeWindow(window.end - grid.interval, window.end)
        modes = {mode: ModeRun(window.end, window if mode is Mode.BACKFILL else newest) for mode in self.all_modes}
        return Run(window.end, window, modes)

    @property
    def is_on(self) -> bool:
        """Whether it fires at all."""
        return bool(self.modes)

    def covering_run(self, start: Instant, *, mode: Mode | None = None) -> Run | None:
        """The scheduled run in which ``mode`` writes the partition, start and end dates aside; None when none does (C9, C10).

        By default the mode that fills the conf's own table.
        """
        mode = self.main_mode if mode is None else mode
        of = self.modes.get(mode)
        if of is None:
            return None
        fire = of.schedule.first_at_or_after(start + self.spec.grid.interval)
        run = self.without_bounds().run_ending(self.spec.grid.floor(fire))
        return run if run is not None and run.modes[mode].window.start <= start else None

    @property
    def main_mode(self) -> Mode:
        """The mode that fills the conf's own table: the backfill, or the upload where it is all there is (C11)."""
        return Mode.BACKFILL if Mode.BACKFILL in self.all_modes else next(iter(self.all_modes), Mode.BACKFILL)

    def fills(self, run: Run) -> bool:
        """Whether a run fills partitions of the conf's own table: one of its uploads alone does not (C10)."""
        return self.main_mode in run.modes

    def starts_of(self, run: Run) -> Sequence[Instant]:
        """The partitions that a fire writes: a replay is one run per partition (C9)."""
        of = run.modes.get(Mode.BACKFILL)
        window = of.window if of is not None else self.partition(run.end - self.spec.grid.interval)
        return self.spec.grid.starts(window.start, window.end)

    def starts(self, start: Instant, end: Instant) -> Sequence[Instant]:
        """The starts of the partitions that overlap ``[start, end)``, oldest first."""
        return self.spec.grid.starts(start, end)

    def end_of(self, start: Instant) -> Instant:
        """Where the partition that starts at ``start`` ends."""
        return start + self.spec.grid.interval

    def label(self, start: Instant) -> PartitionKey:
        """The label of the partition that starts at ``start``."""
        return self.spec.label(start)

    def with_catch_up(self, catch_up: CatchUp) -> RunSchedule:
        """The same schedule with another policy for what was missed."""
        return replace(self, catch_up=catch_up)

    def without_bounds(self) -> RunSchedule:
        """The same schedule without start, end or skip date: what it does in any week."""
        return replace(self, catch_up=CatchUp())

    def partition(self, start: Instant) -> TimeWindow:
        """The window of the partition that starts at ``start``."""
        return TimeWindow(start, start + self.spec.grid.interval)

    def key_of(self, run: Run) -> PartitionKey:
        """The label that names a run: its newest partition's."""
        return self.spec.label(run.end - self.spec.grid.interval)

    def _newest_fired_before(self, limit: Instant) -> Run | None:
        """The newest run with a fire strictly before ``limit``."""
        grid = self.spec.grid
        end = max(grid.floor(of.schedule.last_before(limit)) for of in self.modes.values())
        if self.first_start is not None and end <= self.first_start:
            return None
        return self.run_after(end - grid.interval)

    def _run(self, end: Instant, fires: Mapping[Mode, Instant]) -> Run:
        grid, oldest = self.spec.grid, self.first_start
        modes = {}
        previous_ends = []
        for mode, of in self.modes.items():
            previous = grid.floor(of.schedule.last_before(end))
            previous_ends.append(previous)
            if mode in fires:
                start = end - grid.interval if of.only_newest else previous
                modes[mode] = ModeRun(fires[mode], TimeWindow(start if oldest is None else max(start, oldest), end))
        start = max(previous_ends)
        window = TimeWindow(start if oldest is None else max(start, oldest), end)
        return Run(min(run.fire for run in modes.values()), window, modes)

    def _is_kept(self, run: Run) -> bool:
        skip_to = self.catch_up.skip_to
        return skip_to is None or run.end - self.spec.grid.interval >= skip_to

    def _oldest_missed(self, last_end: Instant | None, newest: Run) -> Run | None:
        first = self.first_after(last_end if last_end is not None else self._before_start(newest.window.start))
        limit = self.catch_up.max_runs
        if first is None or first.end > newest.end or limit is None:
            return first
        run, kept = newest, 1
        while kept < limit and run.end > first.end:
            previous = self._newest_fired_before(run.end)
            if previous is None:
                break
            run, kept = previous, kept + 1
        return run

    def _before_start(self, otherwise: Instant) -> Instant:
        """Where a new schedule begins: its start, or ``otherwise`` when it has none (catch-up always has one, C29)."""
        return otherwise if self.first_start is None else self.first_start
