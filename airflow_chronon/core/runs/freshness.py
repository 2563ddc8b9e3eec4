"""How fresh the table of a conf is: its lag, what it lacks, and which of its partitions are late.

The grid alone decides, whether or not there is a run: a source that stopped, a paused DAG and an Airflow that was down make a
table late just as a failed run does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.schedules.revision import instant_from_json

HORIZON = 10_000  #: partitions back from now: older ones are nobody's alert


@dataclass(frozen=True)
class Freshness:
    """How fresh one table is at one moment."""

    lag: int | None  #: seconds since its newest landed partition ended; None: nothing has landed
    missing: int  #: closed partitions after the first landed one that have not landed, within the horizon
    late: tuple[Instant, ...]  #: starts of those that should have landed by now, oldest first


def judge_freshness(
    schedule: PartitionedSchedule, landed: StartRanges, *, freshness: int | None, now: Instant
) -> Freshness:
    """``freshness`` is how many seconds after its end a partition is late; None: none ever is."""
    grid = schedule.grid
    newest = max((part.stop for part in landed.ranges if part.start < now), default=None)
    first = landed.ranges[0].start if landed.ranges else None
    lacking = tuple(_lacking(schedule, landed, now))
    return Freshness(
        lag=None if newest is None else max(0, now - newest),
        missing=0 if first is None else len(lacking),
        late=()
        if freshness is None
        else tuple(start for start in lacking if is_late(start + grid.interval, freshness=freshness, now=now)),
    )


def is_late(end: Instant, *, freshness: int, now: Instant) -> bool:
    """Whether a partition that ends at ``end`` and is not there should be by now."""
    return end + freshness <= now


def is_expected(schedule: PartitionedSchedule, start: Instant) -> bool:
    """Whether the schedule is to write the partition at all: between its dates, and in one of its runs."""
    policy, end = schedule.catch_up, schedule.end_of(start)
    if not schedule.is_on or (policy.end is not None and end > policy.end):
        return False
    if any(bound is not None and start < bound for bound in (schedule.first_start, policy.skip_to)):
        return False
    main = schedule.modes.get(schedule.main_mode)
    if main is None:
        return False
    return not main.only_newest or schedule.covering_run(start) is not None


def _lacking(schedule: PartitionedSchedule, landed: StartRanges, now: Instant) -> Iterator[Instant]:
    """The closed partitions that the schedule is to write and that have not landed, oldest first.

    What lies before the first landed one is before the table's history (C17); of a table without any that is what lies before
    the start date, and without that all but the newest.
    """
    step, end = schedule.grid.interval, schedule.grid.floor(now)
    begin = (
        landed.ranges[0].start
        if landed.ranges
        else end - step
        if schedule.first_start is None
        else schedule.first_start
    )
    at = max(schedule.grid.ceil(begin), end - HORIZON * step)
    for part in (*landed.within(at, end), range(end, end)):
        yield from (start for start in range(at, part.start, step) if is_expected(schedule, start))
        at = part.stop


@dataclass(frozen=True)
class FreshnessRecord:
    """What is remembered of a table from one look at it to the next."""

    seen: Instant = 0  #: when it was last looked at
    since: Instant | None = None  #: since when partitions may be late: what was late before that is no news
    told: StartRanges = field(default=StartRanges(1))  #: the late ones that were told

    def after(self, found: Freshness, *, interval: int, freshness: int | None, now: Instant) -> FreshnessRecord:
        """The record after a look; of what was told only that which is still late is kept."""
        late = set(found.late)
        told = StartRanges.of_starts((s for part in self.told.ranges for s in part if s in late), interval=interval)
        since = None if freshness is None else now if self.since is None else self.since
        return replace(self, seen=now, since=since, told=told)

    def news(self, found: Freshness, *, interval: int, freshness: int) -> tuple[Instant, ...]:
        """The late partitions that nobody was told of, oldest first."""
        since = self.since or 0
        return tuple(start for start in found.late if start not in self.told and start + interval + freshness > since)

    def with_told(self, start: Instant, *, interval: int) -> FreshnessRecord:
        """The record once somebody was told that the partition at ``start`` is late."""
        starts = (*(each for part in self.told.ranges for each in part), start)
        return replace(self, told=StartRanges.of_starts(starts, interval=interval))

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        return {"seen": self.seen, "since": self.since, "told": self.told.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, interval: int) -> FreshnessRecord:
        """Raises ValueError, LookupError or TypeError when it is damaged."""
        since = None if data.get("since") is None else instant_from_json(data["since"])
        return cls(
            instant_from_json(data.get("seen", 0)), since, StartRanges.from_json(data["told"], interval=interval)
        )
