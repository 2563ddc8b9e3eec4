"""Why a closed partition has no run: derived from the grid, the schedule and what held when its fire came (H20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Protocol

from airflow_chronon.core.instants import Instant, iso
from airflow_chronon.core.runs import CatchUp, Run, RunSchedule


class Skip(Enum):
    """Why nothing ran; the value is how people and JSON read it."""

    GRID_CHANGED = "grid changed"
    BEFORE_START = "before the start"
    AFTER_END = "after the end"
    SCHEDULE_OFF = "schedule off"
    ONLY_NEWEST = "the schedule writes only the newest partition"
    SKIPPED_TO_DATE = "skipped to a date"
    CATCH_UP_OFF = "catch-up off"
    CAPPED = "capped"


@dataclass(frozen=True)
class Reason:
    """A reason with the setting that makes it."""

    skip: Skip
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.skip.value}: {self.detail}" if self.detail else self.skip.value


class ScheduleEra(Protocol):
    """The schedule that held since an instant, as the reconciler's journal remembers it."""

    @property
    def since(self) -> Instant: ...

    @property
    def schedule(self) -> RunSchedule: ...


@dataclass(frozen=True)
class Era:
    """A schedule and since when it holds."""

    since: Instant
    schedule: RunSchedule


@dataclass(frozen=True)
class SkipQuestion:
    """What is known when the reason is asked for."""

    now: Instant
    last_end: Instant | None  #: end of the newest scheduled run; None: nothing was scheduled yet
    kept_grid: str | None = None  #: what the table was first written on, when that is known (C22)


class Skips:
    """The reasons of one conf's partitions, all as of one moment.

    ``eras``, oldest first, are the schedules that held; without them the present one is taken to have held always.
    """

    def __init__(self, schedule: RunSchedule, question: SkipQuestion, *, eras: Sequence[ScheduleEra] = ()) -> None:
        self._schedule, self._question, self._eras = schedule, question, eras
        self._kept_since: dict[int, Instant | None] = {}

    def reason(self, start: Instant) -> Reason | None:
        """Why the closed partition that starts at ``start`` has no run; None when its run comes, or it is a hole."""
        schedule, question, eras = self._schedule, self._question, self._eras
        grid = schedule.spec.grid
        if question.kept_grid is not None and question.kept_grid != str(grid):
            return Reason(Skip.GRID_CHANGED, f"the table is on {question.kept_grid}, the conf on {grid}")
        outside = _outside(start, schedule)
        if outside is not None:
            return outside
        closed_under = _schedule_at(start + grid.interval, schedule, eras)
        if closed_under is None or not closed_under.modes:
            return Reason(Skip.SCHEDULE_OFF, _since(eras, start + grid.interval))
        run = covering_run(start, closed_under)
        if run is None:
            return Reason(Skip.ONLY_NEWEST)
        fired_under = _schedule_at(run.fire, schedule, eras)
        if fired_under is None or not fired_under.modes:
            return Reason(Skip.SCHEDULE_OFF, _since(eras, run.fire))
        if run.fire > question.now or self.is_to_come(run):
            return None
        limits = self._beyond_limits(start, run, fired_under) if fired_under.catch_up.enabled else None
        if (
            schedule.catch_up.enabled
        ):  # what was missed before a flip is due; what a cap dropped then stays dropped (H13)
            return self._beyond_limits(start, run, schedule) or limits
        return limits or Reason(Skip.CATCH_UP_OFF)

    def is_to_come(self, run: Run) -> bool:
        """Whether Airflow will still create this run by itself."""
        last_end = self._question.last_end
        if last_end is not None and run.end <= last_end:
            return False
        return self._next is not None and run.end >= self._next.end

    @cached_property
    def _next(self) -> Run | None:
        return self._schedule.next_run(self._question.last_end, self._question.now)

    def _beyond_limits(self, start: Instant, run: Run, schedule: RunSchedule) -> Reason | None:
        """The cap keeps the newest so many of what was missed (H10); a partition within it is a hole, and no reason."""
        catch_up = schedule.catch_up
        if catch_up.skip_to is not None and start < catch_up.skip_to:
            return Reason(Skip.SKIPPED_TO_DATE, f"skip_to_date is {iso(catch_up.skip_to)}")
        kept_since = self._oldest_kept(schedule)
        if kept_since is None or run.end >= kept_since:
            return None
        return Reason(Skip.CAPPED, f"max_catchup_runs is {catch_up.max_runs}")

    def _oldest_kept(self, schedule: RunSchedule) -> Instant | None:
        """The end of the oldest run that the cap keeps as of now; None without a cap."""
        if schedule.catch_up.max_runs is None:
            return None
        if id(schedule) not in self._kept_since:
            as_if_new = replace(schedule, catch_up=replace(schedule.catch_up, enabled=True))
            oldest = as_if_new.next_run(None, self._question.now)
            self._kept_since[id(schedule)] = None if oldest is None else oldest.end
        return self._kept_since[id(schedule)]


def covering_run(start: Instant, schedule: RunSchedule) -> Run | None:
    """The scheduled run that writes the partition, start and end dates aside; None when no run does (C9)."""
    free = replace(schedule, catch_up=CatchUp())
    run = free.run_after(start)
    if run is None:
        return None
    writes = any(of.window.start <= start < of.window.end for of in run.modes.values())
    return run if writes else None


def _outside(start: Instant, schedule: RunSchedule) -> Reason | None:
    catch_up, interval = schedule.catch_up, schedule.spec.grid.interval
    if schedule.first_start is not None and start < schedule.first_start:
        return Reason(Skip.BEFORE_START, f"start_date is {iso(catch_up.start or 0)}")
    if catch_up.end is not None and start + interval > catch_up.end:
        return Reason(Skip.AFTER_END, f"end_date is {iso(catch_up.end)}")
    if catch_up.skip_to is not None and start < catch_up.skip_to:
        return Reason(Skip.SKIPPED_TO_DATE, f"skip_to_date is {iso(catch_up.skip_to)}")
    return None


def _schedule_at(instant: Instant, present: RunSchedule, eras: Sequence[ScheduleEra]) -> RunSchedule | None:
    """The schedule that held at an instant; before the first era, the first one."""
    held = [era for era in eras if era.since <= instant]
    if held:
        return _unless_off(held[-1])
    return _unless_off(eras[0]) if eras else present


def _unless_off(era: ScheduleEra) -> RunSchedule | None:
    return era.schedule if getattr(era, "enabled", True) else None


def _since(eras: Sequence[ScheduleEra], instant: Instant) -> str:
    held = [era.since for era in eras if era.since <= instant]
    return f"since {iso(held[-1])}" if held else ""
