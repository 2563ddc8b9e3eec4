"""Why a closed partition, or a job's interval, has no run: derived from the schedule and what held when its fire came (H20)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from airflow_chronon.core.calendar.instants import Instant, iso
from airflow_chronon.core.schedules.base import AnySchedule, ScheduledRun
from airflow_chronon.core.schedules.revision import ScheduleRevision


class Skip(Enum):
    """Why nothing ran; the value is how people and JSON read it."""

    GRID_CHANGED = "grid changed"
    BEFORE_START = "before the start"
    AFTER_END = "after the end"
    SCHEDULE_OFF = "schedule off"
    NOT_ACTIVE = "not active"
    NOT_SEEN = "before it was first seen"
    NO_DAG = "no DAG"
    PAUSED = "paused"
    OTHER_TIMES = "the schedule fired at other times"
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


@dataclass(frozen=True)
class SkipFacts:
    """What is known of a conf or job when a reason is asked for."""

    now: Instant
    last_end: Instant | None  #: end of the newest scheduled run; None: nothing was scheduled yet
    kept_grid: str | None = None  #: what the table was first written on, when that is known (C22)
    is_active: bool = True  #: false for a job that is on and that no reconcile has seen: it does not fire yet (H14)
    first_seen: Instant | None = None  #: when a reconcile first saw a job; None for a conf, and when it is not known
    halted: Reason | None = None  #: why nothing fires in Airflow now, whatever the schedule says


class Skips:
    """The reasons of the partitions of a conf, or of the intervals of a job, all as of one moment.

    ``revisions``, oldest first, are the schedules that held; without them the present one is taken to have held always.
    """

    def __init__(self, schedule: AnySchedule, facts: SkipFacts, *, revisions: Sequence[ScheduleRevision] = ()) -> None:
        self._schedule, self._facts, self._revisions = schedule, facts, revisions
        self._kept_since: dict[int, Instant | None] = {}

    def reason(self, start: Instant) -> Reason | None:
        """Why the closed partition that starts at ``start`` has no run; None when its run comes, or it is a hole."""
        schedule, facts, revisions = self._schedule, self._facts, self._revisions
        grid = schedule.contract
        if grid is not None and facts.kept_grid is not None and facts.kept_grid != grid:
            return Reason(Skip.GRID_CHANGED, f"the table is on {facts.kept_grid}, the conf on {grid}")
        coming = schedule.covering_run(start)
        outside = _outside(start, schedule.end_of(start) if coming is None else coming.end, schedule)
        if outside is not None:
            return outside
        if not facts.is_active:
            return Reason(Skip.NOT_ACTIVE, "no reconcile has seen it, so it does not fire yet")
        if coming is not None and self.is_to_come(coming):  # whatever held before: the present schedule runs it
            return _off(revisions, facts.now) if revisions and revisions[-1].is_paused else facts.halted
        closed = schedule.end_of(start)
        closed_under = _schedule_at(closed, schedule, revisions)
        if closed_under is None:
            return _off(revisions, closed)
        run = coming if grid is None else closed_under.covering_run(start)  # a job's past is that of its crons
        fire = closed if run is None else run.fire
        fired_under = _schedule_at(fire, schedule, revisions)
        if fired_under is None:
            return _off(revisions, fire)
        if fired_under is not closed_under:  # that fire never came: the schedule had changed
            run = coming if grid is None else fired_under.covering_run(start)
        if run is None:
            return Reason(Skip.OTHER_TIMES if grid is None else Skip.ONLY_NEWEST)
        limits = self._beyond_limits(start, run, fired_under) if fired_under.catch_up.enabled else None
        if schedule.catch_up.enabled:  # what was missed before a flip is due; what a cap dropped stays dropped (H13)
            return self._beyond_limits(start, run, schedule) or limits
        return limits or self._not_made_up(fire)

    def instants(self, schedules: Iterable[AnySchedule]) -> Iterator[Instant]:
        """The instants with which a reason compares where partitions and their runs lie; ``schedules`` are all that held."""
        facts = self._facts
        yield from (each for each in (facts.last_end, facts.first_seen) if each is not None)
        if self._next is not None:
            yield self._next.end
        for schedule in schedules:
            policy = schedule.catch_up
            found = (schedule.first_start, policy.end, policy.skip_to, self._oldest_kept(schedule))
            yield from (each for each in found if each is not None)

    def _not_made_up(self, fire: Instant) -> Reason:
        first_seen = self._facts.first_seen
        if first_seen is not None and fire <= first_seen:
            return Reason(Skip.NOT_SEEN, f"a reconcile first saw it at {iso(first_seen)}")
        return Reason(Skip.CATCH_UP_OFF)

    def is_to_come(self, run: ScheduledRun) -> bool:
        """Whether Airflow will still create this run by itself."""
        last_end = self._facts.last_end
        if last_end is not None and run.end <= last_end:
            return False
        return self._next is not None and run.end >= self._next.end

    @cached_property
    def _next(self) -> ScheduledRun | None:
        return self._schedule.next_run(self._facts.last_end, self._facts.now)

    def _beyond_limits(self, start: Instant, run: ScheduledRun, schedule: AnySchedule) -> Reason | None:
        """The cap keeps the newest so many of what was missed (H10); a partition within it is a hole, and no reason."""
        catch_up = schedule.catch_up
        if catch_up.skip_to is not None and start < catch_up.skip_to:
            return Reason(Skip.SKIPPED_TO_DATE, f"skip_to_date is {iso(catch_up.skip_to)}")
        kept_since = self._oldest_kept(schedule)
        if kept_since is None or run.end >= kept_since:
            return None
        return Reason(Skip.CAPPED, f"max_catchup_runs is {catch_up.max_runs}")

    def _oldest_kept(self, schedule: AnySchedule) -> Instant | None:
        """The end of the oldest run that the cap keeps as of now; None without a cap."""
        if schedule.catch_up.max_runs is None:
            return None
        if id(schedule) not in self._kept_since:
            oldest = schedule.next_run(None, self._facts.now)  # as if it were new
            self._kept_since[id(schedule)] = None if oldest is None else oldest.end
        return self._kept_since[id(schedule)]


def _outside(start: Instant, run_end: Instant, schedule: AnySchedule) -> Reason | None:
    catch_up = schedule.catch_up
    if schedule.first_start is not None and start < schedule.first_start:
        return Reason(Skip.BEFORE_START, schedule.start_text)
    if catch_up.end is not None and run_end > catch_up.end:  # a week's run ends after its days (C9)
        return Reason(Skip.AFTER_END, f"{schedule.end_field} is {iso(catch_up.end)}")
    if catch_up.skip_to is not None and start < catch_up.skip_to:
        return Reason(Skip.SKIPPED_TO_DATE, f"skip_to_date is {iso(catch_up.skip_to)}")
    return None


def _schedule_at(instant: Instant, present: AnySchedule, revisions: Sequence[ScheduleRevision]) -> AnySchedule | None:
    """The schedule that held at an instant, before the first revision the first one; None when nothing fired then."""
    revision = _revision_at(instant, revisions)
    schedule = present if revision is None else revision.schedule
    is_held = revision is not None and (revision.is_paused or not revision.enabled)
    return None if schedule is None or is_held or not schedule.is_on else schedule


def _revision_at(instant: Instant, revisions: Sequence[ScheduleRevision]) -> ScheduleRevision | None:
    held = [revision for revision in revisions if revision.since <= instant]
    return held[-1] if held else revisions[0] if revisions else None


def _off(revisions: Sequence[ScheduleRevision], instant: Instant) -> Reason:
    revision = _revision_at(instant, revisions)
    since = f"since {iso(revision.since)}" if revision is not None and revision.since <= instant else ""
    is_paused = revision is not None and revision.is_paused and revision.enabled
    return Reason(Skip.PAUSED if is_paused else Skip.SCHEDULE_OFF, since)
