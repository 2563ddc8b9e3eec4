"""When a job runs and over which window (H2 to H4, H8 to H15).

A job has no grid: its runs are the intervals between its own fires, however long they are. Everything here is integer
arithmetic over instants that come in as arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_chronon.core.calendar.changed import changed_cron
from airflow_chronon.core.calendar.cron import NEVER, Cron
from airflow_chronon.core.calendar.instants import DAY, LONGEST_WINDOW, Instant, TimeWindow, iso, parse_instant
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.partitions.limits import limited
from airflow_chronon.core.partitions.parse import IllegalPartition
from airflow_chronon.core.schedules.base import CatchUp, Schedule
from airflow_chronon.core.schedules.job_runs import JobRun, illegal_key, refuse_key_and_window, run_by_hand
from airflow_chronon.core.schedules.request import RunRequest
from airflow_chronon.errors import ChrononError, Fault

if TYPE_CHECKING:
    from typing import Self  # typing has it from Python 3.11

_DAY_TEXT = re.compile(r"\d{4}-\d\d-\d\d")


class IllegalJobSchedule(ChrononError):
    """An offset or a lookback that breaks H2 or H3."""


class NoSuchInterval(ChrononError):
    """A logical date at which no interval of the schedule begins."""


@dataclass(frozen=True)
class IntervalSchedule(Schedule[JobRun]):
    """The fires of one job and what becomes of those that were missed. Raises :class:`IllegalJobSchedule`.

    ``catch_up.start`` and ``catch_up.end`` are instants as written, on a fire or not: the first interval begins at the
    start, and no fire comes after the end (H4, H15). Without a start it begins when the deployment first sees the job.
    """

    cron: Cron
    catch_up: CatchUp = field(default_factory=CatchUp)
    offset: int = 0  #: seconds by which the window lies before the interval (H2)
    lookback: int | None = None  #: seconds that the window reaches back from the fire (H3)
    enabled: bool = True
    #: Lower bound without catch-up: earlier fires are neither missed nor pending (H8, H14).
    active_since: Instant | None = None
    end_field: ClassVar[str] = "end_time"

    def __post_init__(self) -> None:
        faults = schedule_faults(self.offset, self.lookback)
        if faults:
            raise IllegalJobSchedule(faults[0])

    def with_past(self, held: Sequence[tuple[Instant, Schedule[Any] | None]]) -> Self:
        """The schedule with the crons that held before: each interval of the past is that of its own cron (H20)."""
        crons = [(since, each.cron) for since, each in held if isinstance(each, IntervalSchedule)]
        before = [(until, cron) for (_, cron), (until, _) in pairwise(crons)]
        return replace(self, cron=changed_cron(self.cron, before))

    def seen(self, *, first: Instant, active_since: Instant) -> Self:
        """The schedule as the deployment knows it (H8, H14, H15).

        ``first`` is when it first saw the job, the start of a schedule that names none; ``active_since`` when it first saw it or
        last saw it enabled, whichever came later.
        """
        start = first if self.catch_up.start is None else self.catch_up.start
        return replace(self, active_since=active_since, catch_up=replace(self.catch_up, start=start))

    def run(self, logical_date: Instant, fire: Instant) -> JobRun:
        """The run over the interval ``[logical_date, fire)``, whatever the cron says today (H2, H3)."""
        if self.lookback is not None:
            window = TimeWindow(fire - self.lookback, fire)
        else:
            window = TimeWindow(logical_date - self.offset, fire - self.offset)
        return JobRun(fire, logical_date, window)

    def run_at(self, fire: Instant) -> JobRun:
        """The run of a fire; the first one begins at the start (H4)."""
        previous, start = self.cron.last_before(fire), self.catch_up.start
        return self.run(previous if start is None or start >= fire else max(previous, start), fire)

    def run_of(self, logical_date: Instant) -> JobRun:
        """The run whose interval begins at ``logical_date``: a fire, or the schedule's start.

        For replays: intervals before the start, after the end and of a schedule that is off are good. Raises
        :class:`NoSuchInterval`, which names the nearest logical dates.
        """
        if logical_date != self._own_start and self.cron.boundary_at_or_after(logical_date) != logical_date:
            raise self._no_such_interval(logical_date)
        fire, start = self.cron.first_at_or_after(logical_date + 1), self.catch_up.start
        if fire == NEVER:
            raise self._no_such_interval(logical_date)
        if start is not None and logical_date < start < fire:
            problem = f"the interval that begins at {iso(logical_date)} reaches over the schedule's start {iso(start)}"
            raise NoSuchInterval(Fault("H4", "", problem, f"use {iso(start)}, where the first interval begins"))
        return self.run(logical_date, fire)

    @property
    def _own_start(self) -> Instant | None:
        """The start, if an interval begins there; a start years before the first fire is none (H1)."""
        start = self.catch_up.start
        end = NEVER if start is None else self.end_of(start)
        return None if end == NEVER or self.run_at(end).logical_date != start else start

    def _no_such_interval(self, instant: Instant) -> NoSuchInterval:
        following = self.cron.boundary_at_or_after(instant + 1)
        found = [iso(self.cron.last_before(instant)), *([] if following == NEVER else [iso(following)])]
        problem = f"no interval of {self.cron.text!r} begins at {iso(instant)}"
        return NoSuchInterval(Fault("C27", "", problem, f"use {' or '.join(found)}"))

    def requested(self, request: RunRequest, *, now: Instant) -> JobRun | None:
        """The run that an Airflow run is for (H2, H7, H18); see :meth:`Schedule.requested`."""
        if not request.partition_key:
            return run_by_hand(request)
        refuse_key_and_window(request)
        return self._run_as_made(request) or self.run_of(self.start_of_key(request.partition_key, now=now))

    def recorded(self, request: RunRequest, *, now: Instant) -> JobRun | None:
        """The run of a record, maybe under an earlier cron; None for one over a window given by hand, or over none."""
        run = self._run_as_made(request)
        if run is not None or not request.partition_key:
            return run
        try:
            logical_date = parse_instant(request.partition_key)
        except ValueError:
            return None
        return self.run(logical_date, self.end_of(logical_date))

    def _run_as_made(self, request: RunRequest) -> JobRun | None:
        """A scheduled run: its interval holds, whatever the cron says today."""
        made = request.interval
        return None if made is None or iso(made.start) != request.partition_key else self.run(made.start, made.end)

    @property
    def is_on(self) -> bool:
        return self.enabled

    @property
    def first_start(self) -> Instant | None:
        return self.catch_up.start

    def read_range(self, start: str, end: str, *, now: Instant | None = None) -> TimeWindow:
        """From the logical date ``start`` to the end of the interval that begins at ``end``.

        A day as a start means its first logical date, or the next one after it; as an end, its last. Raises
        ``ChrononError`` for an instant at which no interval begins, with the two nearest, and for a range without any or of
        too many.
        """
        first, last = self._bound(start, "start_ds"), self._bound(end, "end_ds")
        if last < first:
            raise _illegal_range("end_ds", f"{end!r} is before start_ds {start!r}", "swap them")
        found = limited(self.starts(first, last + 1), what="intervals")
        if not found:
            problem = f"no interval of {self.cron.text!r} begins from {start!r} to {end!r}"
            following = self.end_of(first)
            remedy = "none begins after it" if following == NEVER else f"the next one begins at {iso(following)}"
            raise _illegal_range("end_ds", problem, remedy)
        window = TimeWindow(found[0], self.end_of(found[-1]))
        if now is not None and window.end > now:
            problem = f"its last interval ends at {iso(window.end)}, which has not come at {iso(now)}"
            raise _illegal_range("end_ds", problem, "end earlier")
        return window

    def _bound(self, text: str, field: str) -> Instant:
        cleaned = text.strip()
        try:
            instant = parse_instant(cleaned)
        except ValueError:
            remedy = "write it like 2026-01-15T03:00:00Z, or a day"
            raise _illegal_range(field, f"{text!r} is not a logical date", remedy) from None
        if _DAY_TEXT.fullmatch(cleaned):
            return instant + DAY - 1 if field == "end_ds" else instant
        return self.run_of(instant).logical_date

    def covering_run(self, start: Instant) -> JobRun | None:
        """The run over the interval that begins at ``start``; None when none does."""
        try:
            return self.run_of(start)
        except NoSuchInterval:
            return None

    def fills(self, run: JobRun) -> bool:
        """Every run of a job is for its interval."""
        return True

    def starts_of(self, run: JobRun) -> Sequence[Instant]:
        """The logical date of a run: it is for one interval."""
        return (run.logical_date,)

    @property
    def grid(self) -> None:
        """A job has none."""

    @property
    def start_text(self) -> str:
        """It may be when the job was first seen, which no setting names."""
        return f"its first interval begins at {iso(self.catch_up.start or 0)}"

    def starts(self, start: Instant, end: Instant) -> Iterator[Instant]:
        """The logical dates in ``[start, end)``, oldest first.

        The schedule's own start is one of them. The fire before it is not: its interval would reach over the start.
        """
        first = self._own_start
        fire = self.cron.boundary_at_or_after(start)
        if first is not None and start <= first < min(fire, end):
            yield first
        while fire < end:
            following = self.cron.first_at_or_after(fire + 1)
            if following == NEVER:
                return
            if first is None or fire > first or following <= first:
                yield fire
            elif first < end:
                yield first
            fire = following

    def end_of(self, start: Instant) -> Instant:
        """Where the interval that begins at ``start`` ends: at the next fire; at :data:`NEVER` when there is none."""
        return self.cron.first_at_or_after(start + 1)

    def label(self, start: Instant) -> PartitionKey:
        return PartitionKey(iso(start))

    def start_of_key(self, key: str, *, now: Instant) -> Instant:
        """The logical date that a key names. Raises ``ChrononError`` (C27)."""
        try:
            instant = parse_instant(key)
        except ValueError:
            raise illegal_key(f"{key!r} is not a logical date", "write it like 2026-01-15T03:00:00Z") from None
        if iso(instant) != key:
            raise illegal_key(f"{key!r} is not how a logical date is written", f"write {iso(instant)}")
        fire = self.run_of(instant).fire
        if fire > now:
            ended = self.cron.last_before(now + 1)
            problem = f"the interval of {key} ends at {iso(fire)}, which has not come at {iso(now)}"
            newest = f"the newest one that has ended is {iso(self.cron.last_before(ended))}"
            raise illegal_key(problem, newest if self.cron.fires_at(ended) else "none has ended yet")
        return instant

    def with_catch_up(self, catch_up: CatchUp) -> IntervalSchedule:
        return replace(self, catch_up=catch_up)

    def run_after(self, fire: Instant) -> JobRun | None:
        if not self.enabled:
            return None
        start, end = self.catch_up.start, self.catch_up.end
        following = self.cron.first_at_or_after((fire if start is None else max(fire, start)) + 1)
        return None if following == NEVER or (end is not None and following > end) else self.run_at(following)

    def newest_before(self, instant: Instant) -> JobRun | None:
        if not self.enabled:
            return None
        start, end = self.catch_up.start, self.catch_up.end
        fire = self.cron.last_before(instant if end is None else min(instant, end + 1))
        is_none = (start is not None and fire <= start) or not self.cron.fires_at(fire)  # the years may begin later
        return None if is_none else self.run_at(fire)

    def missed_after(self, last_end: Instant | None, now: Instant) -> Instant:
        """A new job waits for its first fire after it became active, or after ``now`` when that is not known (H8, H14)."""
        return max((each for each in (last_end, self.active_since) if each is not None), default=now)

    def back(self, run: JobRun, count: int, *, not_before: JobRun) -> JobRun:
        """Without a walk: a year of missed minutes has half a million runs."""
        return self.run_at(self.cron.back(run.fire, count, not_before=not_before.fire))

    def floor(self, instant: Instant) -> Instant:
        """The instant itself: under an earlier cron, intervals ended anywhere."""
        return instant

    def ceil(self, instant: Instant) -> Instant:
        """The first logical date at or after ``instant``."""
        start = self.catch_up.start
        return start if start is not None and start >= instant else self.cron.boundary_at_or_after(instant)

    def start_of(self, run: JobRun) -> Instant:
        return run.logical_date


def _illegal_range(field: str, problem: str, remedy: str) -> IllegalPartition:
    return IllegalPartition(Fault("C27", field, problem, remedy))


def schedule_faults(offset: int, lookback: int | None) -> list[Fault]:
    """What H2 and H3 have against an offset and a lookback, in seconds; the field is the key of the job file."""
    faults = []
    if not 0 <= offset <= LONGEST_WINDOW:
        problem = f"an offset of {offset} seconds is not within 0 to {LONGEST_WINDOW}"
        faults.append(
            Fault("H2", "start_time_offset_seconds", problem, "write how far the window lies back, as seconds")
        )
    if lookback is not None and not 0 < lookback <= LONGEST_WINDOW:
        problem = f"a lookback of {lookback} seconds is not within 1 to {LONGEST_WINDOW}"
        faults.append(
            Fault("H3", "lookback_seconds", problem, "write how far the window reaches back, or leave it out")
        )
    if offset and lookback is not None:
        problem = f"a window is moved (by {offset} seconds) or widened (to {lookback} seconds), not both"
        remedy = "leave out start_time_offset_seconds, or lookback_seconds"
        faults.append(Fault("H3", "lookback_seconds", problem, remedy))
    return faults
