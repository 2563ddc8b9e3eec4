"""When a job runs and over which window (H2 to H4, H8 to H15).

A job has no grid: its runs are the intervals between its own fires, however long they are. Everything here is integer
arithmetic over instants that come in as arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from airflow_chronon.core.calendar.cron import Cron
from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow, iso
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.schedules.partitioned import CatchUp
from airflow_chronon.errors import ChrononError, Fault

LONGEST = 500 * 366 * DAY  #: the longest offset and lookback, in seconds: keeps every window within the calendar


class IllegalJobSchedule(ChrononError):
    """An offset, a lookback or a catch-up that breaks H2, H3 or H15."""


class NoSuchInterval(ChrononError):
    """A logical date at which no interval of the schedule begins."""


@dataclass(frozen=True)
class JobRun:
    """One run of a job: it is named by its logical date."""

    fire: Instant  #: F, the end of its interval: when it is due
    logical_date: Instant  #: P, the start of its interval
    window: TimeWindow  #: the data it is for: the interval, moved (H2) or widened (H3)

    @property
    def key(self) -> PartitionKey:
        """The partition key: the logical date as ISO-8601 with ``Z``."""
        return PartitionKey(iso(self.logical_date))

    @property
    def end(self) -> Instant:
        """Where its interval ends: at its fire."""
        return self.fire


@dataclass(frozen=True)
class JobSchedule:
    """The fires of one job and what becomes of those that were missed. Raises :class:`IllegalJobSchedule`.

    ``catch_up.start`` and ``catch_up.end`` are instants as written, on a fire or not: the first interval begins at the
    start, and no fire comes after the end (H4, H15).
    """

    cron: Cron
    catch_up: CatchUp = field(default_factory=CatchUp)
    offset: int = 0  #: seconds by which the window lies before the interval (H2)
    lookback: int | None = None  #: seconds that the window reaches back from the fire (H3)
    enabled: bool = True
    active_since: Instant | None = (
        None  #: without catch-up, no fire at or before this instant counts as missed (H8, H14)
    )

    def __post_init__(self) -> None:
        faults = schedule_faults(self.offset, self.lookback)
        if self.catch_up.enabled and self.catch_up.start is None:
            faults.append(Fault("H15", "catchup", "catch-up needs to know where the schedule begins", "set start_time"))
        if faults:
            raise IllegalJobSchedule(faults[0])

    def seen(self, *, first: Instant, active_since: Instant) -> JobSchedule:
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
        if logical_date != self.catch_up.start and self.cron.first_at_or_after(logical_date) != logical_date:
            near = f"{iso(self.cron.last_before(logical_date))} or {iso(self.cron.first_at_or_after(logical_date))}"
            problem = f"no interval of {self.cron.text!r} begins at {iso(logical_date)}"
            raise NoSuchInterval(Fault("C27", "", problem, f"use {near}"))
        fire, start = self.cron.first_at_or_after(logical_date + 1), self.catch_up.start
        if start is not None and logical_date < start < fire:
            problem = f"the interval that begins at {iso(logical_date)} reaches over the schedule's start {iso(start)}"
            raise NoSuchInterval(Fault("H4", "", problem, f"use {iso(start)}, where the first interval begins"))
        return self.run(logical_date, fire)

    @property
    def is_on(self) -> bool:
        """Whether it fires at all."""
        return self.enabled

    @property
    def first_start(self) -> Instant | None:
        """Where the first interval begins, when that is said."""
        return self.catch_up.start

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

    def starts(self, start: Instant, end: Instant) -> Sequence[Instant]:
        """The logical dates in ``[start, end)``, oldest first.

        The schedule's own start is one of them, and the fire before it is none: its interval would reach over the start.
        """
        return list(self.each_start(start, end))

    def each_start(self, start: Instant, end: Instant) -> Iterator[Instant]:
        """The same, one by one: of a long range the first ones come at once."""
        first = self.catch_up.start
        fire = self.cron.first_at_or_after(start)
        if first is not None and start <= first < min(fire, end):
            yield first
        while fire < end:
            following = self.cron.first_at_or_after(fire + 1)
            if first is None or fire > first or following <= first:
                yield fire
            elif first < end:
                yield first
            fire = following

    def end_of(self, start: Instant) -> Instant:
        """Where the interval that begins at ``start`` ends: at the next fire."""
        return self.cron.first_at_or_after(start + 1)

    def label(self, start: Instant) -> PartitionKey:
        """The partition key of a logical date."""
        return PartitionKey(iso(start))

    def with_catch_up(self, catch_up: CatchUp) -> JobSchedule:
        """The same schedule with another policy for what was missed."""
        return replace(self, catch_up=catch_up)

    def run_after(self, fire: Instant) -> JobRun | None:
        """The first run with a fire after ``fire``, nothing skipped; None when there is none any more."""
        if not self.enabled:
            return None
        start, end = self.catch_up.start, self.catch_up.end
        following = self.cron.first_at_or_after((fire if start is None else max(fire, start)) + 1)
        return None if end is not None and following > end else self.run_at(following)

    def first_after(self, fire: Instant) -> JobRun | None:
        """The first run with a fire after ``fire`` that the skip date keeps (H11)."""
        skip_to, start = self.catch_up.skip_to, self.catch_up.start
        if skip_to is not None and (start is None or skip_to > start):
            fire = max(fire, self.cron.first_at_or_after(skip_to))
        return self.run_after(fire)

    def last_run(self, now: Instant) -> JobRun | None:
        """The newest run whose fire has come by ``now``; None when there is none yet."""
        if not self.enabled:
            return None
        start, end = self.catch_up.start, self.catch_up.end
        fire = self.cron.last_before((now if end is None else min(now, end)) + 1)
        return None if start is not None and fire <= start else self.run_at(fire)

    def runs_between(self, start: Instant, end: Instant) -> Iterator[JobRun]:
        """Every run whose fire lies in ``[start, end)``, oldest first."""
        run = self.run_after(start - 1)
        while run is not None and run.fire < end:
            yield run
            run = self.run_after(run.fire)

    def next_run(self, last_fire: Instant | None, now: Instant) -> JobRun | None:
        """The run to create next, after one that fired at ``last_fire`` (None: the schedule is new), as of ``now``.

        Its fire may lie ahead. Without catch-up it is the newest run that is due, else the first one to come; a new
        schedule waits for its first fire after ``armed``, or after ``now`` when that is not known (H8). With catch-up it
        is the oldest missed run within the skip date and the cap (H9 to H11).
        """
        newest = self.last_run(now)
        if self.catch_up.enabled:
            return self._oldest_missed(last_fire, newest)
        known = [each for each in (last_fire, self.active_since) if each is not None]
        after = max(known, default=now)
        if newest is not None and newest.fire > after and self._is_kept(newest):
            return newest
        return self.first_after(after if newest is None else max(after, newest.fire))

    def missed(self, last_fire: Instant | None, now: Instant) -> Iterator[JobRun]:
        """Every run that is created at ``now``, oldest first."""
        run = self.next_run(last_fire, now)
        while run is not None and run.fire <= now:
            yield run
            run = self.run_after(run.fire)

    def upcoming(self, now: Instant) -> JobRun | None:
        """The first run whose fire lies after ``now``; None when none is to come."""
        return self.first_after(now)

    def _is_kept(self, run: JobRun) -> bool:
        skip_to = self.catch_up.skip_to
        return skip_to is None or run.logical_date >= skip_to

    def _oldest_missed(self, last_fire: Instant | None, newest: JobRun | None) -> JobRun | None:
        start, limit = self.catch_up.start, self.catch_up.max_runs
        assert start is not None  # catch-up always has one (H15)
        first = self.first_after(start if last_fire is None else last_fire)
        if first is None or newest is None or first.fire > newest.fire or limit is None:
            return first
        oldest = self.cron.back(newest.fire, limit - 1, not_before=first.fire)
        return first if oldest == first.fire else self.run_at(oldest)


def schedule_faults(offset: int, lookback: int | None) -> list[Fault]:
    """What H2 and H3 have against an offset and a lookback, in seconds; the field is the key of the job file."""
    faults = []
    if not 0 <= offset <= LONGEST:
        problem = f"an offset of {offset} seconds is not within 0 to {LONGEST}"
        faults.append(
            Fault("H2", "start_time_offset_seconds", problem, "write how far the window lies back, as seconds")
        )
    if lookback is not None and not 0 < lookback <= LONGEST:
        problem = f"a lookback of {lookback} seconds is not within 1 to {LONGEST}"
        faults.append(
            Fault("H3", "lookback_seconds", problem, "write how far the window reaches back, or leave it out")
        )
    if offset and lookback is not None:
        problem = f"a window is moved (by {offset} seconds) or widened (to {lookback} seconds), not both"
        remedy = "leave out start_time_offset_seconds, or lookback_seconds"
        faults.append(Fault("H3", "lookback_seconds", problem, remedy))
    return faults
