"""The base class of schedules, with the one policy for runs that were missed (C29, H8 to H15).

A schedule is a row of runs over intervals that follow each other: partitions of a grid, or the times between two fires.
The two kinds differ in what a run is for. Which run is next, due, missed or skipped is decided here for both, by where
runs end: the ends of one schedule only ever grow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.schedules.request import RunRequest

if TYPE_CHECKING:
    from typing import Self  # typing has it from Python 3.11


@dataclass(frozen=True)
class CatchUp:
    """What happens to fires that were missed (H8 to H11) and where the schedule begins and ends (C29, H15)."""

    enabled: bool = False
    max_runs: int | None = None  #: keep the newest so many of what was missed
    skip_to: Instant | None = None  #: drop intervals that start before it
    start: Instant | None = None  #: the earliest start of an interval
    end: Instant | None = None  #: no interval ends after it


class ScheduledRun(Protocol):
    """One run of a schedule."""

    @property
    def fire(self) -> Instant:
        """When it is due."""

    @property
    def interval(self) -> TimeWindow:
        """From the end of the run before to its own: Airflow's data interval."""

    @property
    def end(self) -> Instant:
        """Where its newest interval ends."""


RunT = TypeVar("RunT", bound=ScheduledRun)


class Schedule(ABC, Generic[RunT]):
    """The runs of one conf or job, and which of them are created when.

    Subclasses are frozen dataclasses with a field ``catch_up``; one without a start begins when it is first seen (H15).
    """

    catch_up: CatchUp
    end_field: ClassVar[str]  #: the setting that says where the schedule ends

    # The policy. An "end" stands for the run that ends there; ``None`` for a schedule that is new.

    def next_run(self, last_end: Instant | None, now: Instant) -> RunT | None:
        """The run to create next, after one that ended at ``last_end``, as of ``now``. Its fire may lie ahead.

        With catch-up it is the oldest missed one within the skip date and the cap (H9 to H11). Without, it is the newest
        that is due, or else the first one to come (H8).
        """
        newest = self.last_run(now)
        if self.catch_up.enabled:
            begin = self.first_start if last_end is None else last_end
            return self._oldest_missed(now if begin is None else begin, newest)
        after = self.missed_after(last_end, now)
        if newest is not None and newest.end > after:
            return newest if self.is_kept(newest) else self.first_after(newest.end)
        return self.first_after(after)

    def missed(self, last_end: Instant | None, now: Instant) -> Iterator[RunT]:
        """Every run that is created at ``now``, oldest first."""
        run = self.next_run(last_end, now)
        while run is not None and run.fire <= now:
            yield run
            run = self.run_after(run.end)

    def first_after(self, end: Instant) -> RunT | None:
        """The first run after ``end`` that the skip date keeps (H11)."""
        skip_to = self.catch_up.skip_to
        return self.run_after(end if skip_to is None else max(end, self.ceil(skip_to)))

    def last_run(self, now: Instant) -> RunT | None:
        """The newest run whose fire has come by ``now``; None when there is none yet."""
        return self.newest_before(now + 1)

    def runs_between(self, start: Instant, end: Instant) -> Iterator[RunT]:
        """Every run whose first fire lies in ``[start, end)``, oldest first."""
        run = self.run_after(self.floor(start) - 1)
        while run is not None and run.fire < end:
            if run.fire >= start:
                yield run
            run = self.run_after(run.end)

    def _oldest_missed(self, end: Instant, newest: RunT | None) -> RunT | None:
        first, cap = self.first_after(end), self.catch_up.max_runs
        if first is None or newest is None or first.end >= newest.end or cap is None:
            return first
        return self.back(newest, cap - 1, not_before=first)  # the skip date first, then the cap (H11)

    def is_kept(self, run: RunT) -> bool:
        """Whether the skip date keeps a run (H11)."""
        skip_to = self.catch_up.skip_to
        return skip_to is None or self.start_of(run) >= skip_to

    # What the policy asks of a kind of schedule.

    @property
    @abstractmethod
    def is_on(self) -> bool:
        """Whether it fires at all."""

    @property
    @abstractmethod
    def first_start(self) -> Instant | None:
        """Where the first interval starts, when that is said."""

    @abstractmethod
    def missed_after(self, last_end: Instant | None, now: Instant) -> Instant:
        """Lower bound without catch-up: runs that end by then are neither missed nor pending (H8, H14)."""

    @abstractmethod
    def run_after(self, end: Instant) -> RunT | None:
        """The first run that ends after ``end``, nothing skipped; None when there is none any more."""

    @abstractmethod
    def newest_before(self, instant: Instant) -> RunT | None:
        """The newest run with a fire strictly before ``instant``; None when there is none."""

    def back(self, run: RunT, count: int, *, not_before: RunT) -> RunT:
        """The run ``count`` runs before ``run``, or ``not_before`` when that is later."""
        while count and run.end > not_before.end:
            previous = self.newest_before(run.end)
            assert previous is not None  # not_before is one
            run, count = previous, count - 1
        return run

    @abstractmethod
    def floor(self, instant: Instant) -> Instant:
        """The newest instant at or before ``instant`` at which an interval may end."""

    @abstractmethod
    def ceil(self, instant: Instant) -> Instant:
        """The oldest instant at or after ``instant`` at which an interval starts."""

    @abstractmethod
    def start_of(self, run: RunT) -> Instant:
        """Where the newest interval of a run starts: Airflow's partition date, which names the run."""

    # What others ask about its intervals, each named by its start.

    @property
    @abstractmethod
    def grid(self) -> PartitionGrid | None:
        """The grid of its intervals; None when they are as long as the time between two fires."""

    @property
    @abstractmethod
    def start_text(self) -> str:
        """Where the schedule begins, as text; for one that has a start."""

    @abstractmethod
    def starts(self, start: Instant, end: Instant) -> Iterable[Instant]:
        """The intervals that start in ``[start, end)``, oldest first; of a long range the first ones come at once."""

    @abstractmethod
    def end_of(self, start: Instant) -> Instant:
        """Where the interval that starts at ``start`` ends."""

    @abstractmethod
    def label(self, start: Instant) -> PartitionKey:
        """The partition key of the interval that starts at ``start``."""

    def key_of(self, run: RunT) -> PartitionKey:
        """The partition key of a run: of its newest interval."""
        return self.label(self.start_of(run))

    @abstractmethod
    def start_of_key(self, key: str, *, now: Instant) -> Instant:
        """The start of the interval that a partition key names.

        Raises ``ChrononError`` unless the key is written as :meth:`label` writes it and the interval has ended (C27).
        """

    @abstractmethod
    def requested(self, request: RunRequest, *, now: Instant) -> RunT | None:
        """The run that an Airflow run is for; None for a manual run without a window (H7).

        The key wins over everything that Airflow says besides; a scheduled run keeps the interval with which it was made,
        whatever the schedule says today (C22, C28). Raises ``ChrononError`` for a request that contradicts itself, and for
        intervals that there are not, or that have not ended.
        """

    @abstractmethod
    def recorded(self, request: RunRequest, *, now: Instant) -> RunT | None:
        """The same of a run of the past, for what it covers; None when it is for no interval."""

    @abstractmethod
    def read_range(self, start: str, end: str, *, now: Instant | None = None) -> TimeWindow:
        """The intervals from ``start`` to ``end`` as people type them, both inclusive.

        Raises ``ChrononError`` for what cannot be read, for a range that is inverted and, with ``now``, for one that has not
        ended then (C27).
        """

    @property
    def contract(self) -> str | None:
        """How its partitions are shaped for ever (C22); None for intervals, which have no shape."""
        return None

    def range_notes(self, start: str, end: str, *, now: Instant | None = None) -> tuple[str, ...]:
        """What such a range means beyond its text, in words."""
        return ()

    @abstractmethod
    def covering_run(self, start: Instant) -> RunT | None:
        """The run that the schedule makes for the interval at ``start``, its own start and end aside."""

    @abstractmethod
    def fills(self, run: RunT) -> bool:
        """Whether a run is for its intervals themselves: one of a conf's uploads alone fills none of its partitions."""

    @abstractmethod
    def starts_of(self, run: RunT) -> Sequence[Instant]:
        """The intervals that a run is for, oldest first: a replay is one run for each (C9)."""

    def seen(self, *, first: Instant, active_since: Instant) -> Self:
        """The schedule as a deployment knows it that saw it first at ``first``; only a job's depends on that (H14, H15)."""
        return self

    def with_past(self, held: Sequence[tuple[Instant, Schedule[Any] | None]]) -> Self:
        """The schedule with those that held since some instants, oldest first; only a job's past depends on them (H20)."""
        return self

    @abstractmethod
    def with_catch_up(self, catch_up: CatchUp) -> Schedule[RunT]:
        """The same schedule with another policy for what was missed."""


AnySchedule: TypeAlias = Schedule[Any]  #: where it does not matter whose runs they are
ScheduleT = TypeVar("ScheduleT", bound=AnySchedule)
