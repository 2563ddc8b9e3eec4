"""Landed partitions as ranges of their starts: a table of years fits into a few of them, and no label is read twice."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionSpec


@dataclass(frozen=True)
class StartRanges:
    """Partition starts of one grid, as ranges that neither touch nor overlap, oldest first."""

    interval: int  #: of the grid, in seconds
    ranges: tuple[range, ...] = ()

    @classmethod
    def of_starts(cls, starts: Iterable[Instant], *, interval: int) -> StartRanges:
        """The ranges of some starts, in any order."""
        found: list[list[Instant]] = []
        for start in sorted(set(starts)):
            if found and found[-1][1] == start:
                found[-1][1] = start + interval
            else:
                found.append([start, start + interval])
        return cls(interval, tuple(range(first, end, interval) for first, end in found))

    @classmethod
    def of_labels(cls, labels: Iterable[str], spec: PartitionSpec) -> StartRanges:
        """Those of labels; what is no partition of the grid is left out."""
        grid = spec.grid
        return cls.of_starts((s for s in _starts(labels, spec) if grid.is_boundary(s)), interval=grid.interval)

    def __contains__(self, start: object) -> bool:
        if not isinstance(start, int):
            return False
        place = bisect_right(self._firsts, start) - 1
        return place >= 0 and start in self.ranges[place]

    def within(self, first: Instant, end: Instant) -> Iterator[range]:
        """The parts of the ranges that start in ``[first, end)``."""
        place = max(0, bisect_right(self._firsts, first) - 1)
        for found in self.ranges[place:]:
            if found.start >= end:
                return
            skipped = max(0, -((found.start - first) // self.interval))
            part = range(found.start + skipped * self.interval, min(found.stop, end), self.interval)
            if part:
                yield part

    def newest(self, count: int) -> StartRanges:
        """The newest so many ranges."""
        return self if len(self.ranges) <= count else StartRanges(self.interval, self.ranges[-count:])

    @cached_property
    def _firsts(self) -> Sequence[Instant]:
        return [each.start for each in self.ranges]

    def to_json(self) -> list[list[int]]:
        """Each range as its first start and how many there are. Inverse of :meth:`from_json`."""
        return [[each.start, len(each)] for each in self.ranges]

    @classmethod
    def from_json(cls, data: Any, *, interval: int) -> StartRanges:
        """Raises TypeError or ValueError for something else."""
        return cls(interval, tuple(range(first, first + count * interval, interval) for first, count in data))


def _starts(labels: Iterable[str], spec: PartitionSpec) -> Iterator[Instant]:
    for label in labels:
        try:
            yield spec.format.decode(label)
        except IllegalLabel:
            continue
