"""Which runs a schedule makes over a grid, and what each of them writes (C8 to C11, C29, H8 to H11).

One :class:`PartitionedSchedule` per conf: its grid, its modes and its catch-up policy. Everything here is integer arithmetic over
instants that come in as arguments; the timetable, ``explain`` and the sensors all ask the same object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from shlex import quote
from typing import ClassVar

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec
from airflow_chronon.core.partitions.limits import MOST_OF_A_RUN
from airflow_chronon.core.partitions.parse import IllegalPartition, check_closed, read_key, read_range
from airflow_chronon.core.schedules.base import CatchUp, Schedule
from airflow_chronon.core.schedules.chronon import CronSchedule, IllegalSchedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.request import RunRequest
from airflow_chronon.errors import ChrononError, Fault


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
    def interval(self) -> TimeWindow:
        return self.window

    @property
    def end(self) -> Instant:
        return self.window.end


@dataclass(frozen=True)
class ModeSchedule:
    """When one mode fires, and whether it writes only the newest partition."""

    schedule: CronSchedule
    only_newest: bool = False


@dataclass(frozen=True)
class PartitionedSchedule(Schedule[Run]):
    """The runs of one conf version.

    Without modes it never fires, yet any label can be replayed (C12).
    """

    spec: PartitionSpec
    modes: Mapping[Mode, ModeSchedule] = field(default_factory=dict)
    catch_up: CatchUp = field(default_factory=CatchUp)
    all_modes: tuple[Mode, ...] = ()  #: what a replay runs; the enabled modes unless more are given
    end_field: ClassVar[str] = "end_date"

    def __post_init__(self) -> None:
        if self.catch_up.enabled and self.catch_up.start is None:
            problem = "catch-up needs to know where the schedule begins"
            raise IllegalSchedule(Fault("C29", "catchup", problem, "set start_date"))

    @property
    def is_on(self) -> bool:
        return bool(self.modes)

    @cached_property
    def first_start(self) -> Instant | None:
        """The earliest start of a partition that is written."""
        start = self.catch_up.start
        return None if start is None else self.spec.grid.ceil(start)

    def run_after(self, end: Instant) -> Run | None:
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

    def newest_before(self, instant: Instant) -> Run | None:
        if not self.modes:
            return None
        grid = self.spec.grid
        if self.catch_up.end is not None:
            instant = min(instant, grid.floor(self.catch_up.end) + grid.interval)
        end = max(grid.floor(of.schedule.last_before(instant)) for of in self.modes.values())
        if self.first_start is not None and end <= self.first_start:
            return None
        return self.run_after(end - grid.interval)

    def missed_after(self, last_end: Instant | None, now: Instant) -> Instant:
        """A new conf runs its newest closed partition at once (H8)."""
        if last_end is not None:
            return last_end
        return 0 if self.first_start is None else self.first_start

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

    def replay(self, window: TimeWindow) -> Run:
        """A replay or a manual run over whole partitions: every mode, whatever the schedule (C9)."""
        grid = self.spec.grid
        newest = TimeWindow(window.end - grid.interval, window.end)
        modes = {mode: ModeRun(window.end, window if mode is Mode.BACKFILL else newest) for mode in self.all_modes}
        return Run(window.end, window, modes)

    def requested(self, request: RunRequest, *, now: Instant) -> Run | None:
        """The run that an Airflow run is for (C9, C27, H7); see :meth:`Schedule.requested`."""
        if request.partition_key and (request.start_ds or request.end_ds):
            problem = f"both a partition key {request.partition_key!r} and start_ds or end_ds are given"
            raise IllegalPartition(Fault("C27", "params", problem, "give the key, or the range, not both"))
        if request.partition_key:
            return self._run_of_key(request, now)
        if request.end_ds and not request.start_ds:
            problem = f"end_ds {request.end_ds!r} is given without start_ds"
            raise IllegalPartition(Fault("H7", "end_ds", problem, "give start_ds too"))
        if request.start_ds:
            window = self.read_range(*request.ends, now=request.asked_at or now)
            return self.replay(self._bounded(window, request, field="start_ds"))
        if request.interval is not None:
            window = self._whole_partitions(request.interval, now)
            return self.replay(self._bounded(window, request, field="data interval"))
        return None

    def recorded(self, request: RunRequest, *, now: Instant) -> Run | None:
        """The run of a record; one that cannot be failed in its own first task, and wrote nothing."""
        try:
            return self.requested(request, now=now)
        except ChrononError:
            return None

    def read_range(self, start: str, end: str, *, now: Instant | None = None) -> TimeWindow:
        """The partitions from ``start`` to ``end``; see :func:`read_range`."""
        return read_range(start, end, self.spec, now=now).window

    def range_notes(self, start: str, end: str, *, now: Instant | None = None) -> tuple[str, ...]:
        return read_range(start, end, self.spec, now=now).notes

    def notes_on(self, request: RunRequest, *, now: Instant) -> tuple[str, ...]:
        """How the range of a request is read, in words; for a request that can be (C27)."""
        return self.range_notes(*request.ends, now=request.asked_at or now) if request.start_ds else ()

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

    @property
    def grid(self) -> PartitionGrid:
        return self.spec.grid

    @property
    def contract(self) -> str:
        return self.spec.contract

    @property
    def start_text(self) -> str:
        return f"start_date is {iso(self.catch_up.start or 0)}"

    def floor(self, instant: Instant) -> Instant:
        return self.spec.grid.floor(instant)

    def ceil(self, instant: Instant) -> Instant:
        return self.spec.grid.ceil(instant)

    def start_of(self, run: Run) -> Instant:
        return run.end - self.spec.grid.interval

    def starts(self, start: Instant, end: Instant) -> Sequence[Instant]:
        return range(self.spec.grid.ceil(start), end, self.spec.grid.interval)

    def end_of(self, start: Instant) -> Instant:
        return start + self.spec.grid.interval

    def label(self, start: Instant) -> PartitionKey:
        return self.spec.label(start)

    def start_of_key(self, key: str, *, now: Instant) -> Instant:
        """The start of the partition that a label names. Raises ``ChrononError`` (C27)."""
        start = read_key(key, self.spec)
        check_closed(self.partition(start), self.spec, now=now, field="partition_key")
        return start

    def with_catch_up(self, catch_up: CatchUp) -> PartitionedSchedule:
        return replace(self, catch_up=catch_up)

    def without_bounds(self) -> PartitionedSchedule:
        """The same schedule without start, end or skip date: what it does in any week."""
        return replace(self, catch_up=CatchUp())

    def partition(self, start: Instant) -> TimeWindow:
        """The window of the partition that starts at ``start``."""
        return TimeWindow(start, start + self.spec.grid.interval)

    def _run_of_key(self, request: RunRequest, now: Instant) -> Run:
        window = self.partition(read_key(request.partition_key, self.spec))
        if request.is_scheduled:
            made = request.interval
            if made is not None and made.end == window.end and self.grid.is_boundary(made.start):
                return self.made(made)
            run = self.run_ending(window.end)
            if run is not None:
                return run
        check_closed(window, self.spec, now=now, field="partition_key")
        return self.replay(window)

    def _whole_partitions(self, window: TimeWindow, now: Instant) -> TimeWindow:
        for instant in (window.start, window.end):
            if not self.grid.is_boundary(instant):
                below = self.grid.floor(instant)
                nearest = f"the nearest are {iso(below)} and {iso(below + self.grid.interval)}"
                problem = f"the data interval {window} is not whole partitions: {iso(instant)} is not a boundary of {self.grid}"
                raise IllegalPartition(Fault("C27", "data interval", problem, nearest))
        check_closed(window, self.spec, now=now, field="data interval")
        return window

    def _bounded(self, window: TimeWindow, request: RunRequest, *, field: str) -> TimeWindow:
        """Refuse a window of more partitions than one run may cover (S7)."""
        starts = self.grid.starts(window.start, window.end)
        if len(starts) > MOST_OF_A_RUN:
            first, last = (quote(self.label(each)) for each in (starts[0], starts[MOST_OF_A_RUN - 1]))
            problem = f"the run would cover {len(starts)} partitions, and one run covers at most {MOST_OF_A_RUN}"
            command = f"airflow-chronon backfill {request.dag_id} --start-ds {first} --end-ds {last}"
            raise IllegalPartition(
                Fault("S7", field, problem, f"give a shorter range, or replay it in pieces, first {command}")
            )
        return window

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
