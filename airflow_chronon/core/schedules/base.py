"""What the schedules of confs and of jobs have in common: runs over intervals that follow each other.

Each interval is named by its start: a partition of a grid, or the time between two fires of a job. Whoever asks only
which of them are due, missed, run or owed needs no more than this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.schedules.partitioned import CatchUp


class ScheduledRun(Protocol):
    """One run of a schedule."""

    @property
    def fire(self) -> Instant:
        """When it is due."""

    @property
    def end(self) -> Instant:
        """Where its newest interval ends: the runs of one schedule are in this order."""


RunT = TypeVar("RunT", bound=ScheduledRun)


class IntervalSchedule(Protocol[RunT]):
    """A schedule of runs over intervals; satisfied by ``RunSchedule`` and ``JobSchedule``."""

    @property
    def catch_up(self) -> CatchUp: ...

    @property
    def is_on(self) -> bool:
        """Whether it fires at all."""

    @property
    def first_start(self) -> Instant | None:
        """Where the first interval starts, when that is said."""

    def next_run(self, last_end: Instant | None, now: Instant, /) -> RunT | None:
        """The run to create next after one that ended at ``last_end`` (None: the schedule is new)."""

    def first_after(self, end: Instant, /) -> RunT | None:
        """The first run after ``end`` that the skip date keeps."""

    def runs_between(self, start: Instant, end: Instant, /) -> Iterator[RunT]:
        """Every run whose first fire lies in ``[start, end)``, oldest first."""

    def missed(self, last_end: Instant | None, now: Instant, /) -> Iterator[RunT]:
        """Every run that is created at ``now``, oldest first."""

    def covering_run(self, start: Instant) -> RunT | None:
        """The run that the schedule makes for the interval at ``start``, its own start and end aside."""

    def fills(self, run: RunT) -> bool:
        """Whether a run is for its intervals themselves: one of a conf's uploads alone fills none of its partitions."""

    def starts_of(self, run: RunT) -> Sequence[Instant]:
        """The starts of the intervals that a run is for, oldest first: a replay is one run for each (C9)."""

    def starts(self, start: Instant, end: Instant) -> Sequence[Instant]:
        """The starts of the intervals in ``[start, end)``, oldest first."""

    def end_of(self, start: Instant) -> Instant:
        """Where the interval that starts at ``start`` ends."""

    def label(self, start: Instant) -> PartitionKey:
        """The partition key of the interval that starts at ``start``."""

    def with_catch_up(self, catch_up: CatchUp) -> IntervalSchedule[RunT]:
        """The same schedule with another policy for what was missed."""


AnySchedule: TypeAlias = IntervalSchedule[Any]  #: where it does not matter whose runs they are
