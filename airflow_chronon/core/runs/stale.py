"""Stale partitions: those that were written before something that they read was written again, or at all.

Compared are two times: when the work ended well that wrote a partition, and when the work ended that last wrote what it reads
(C15, C16). What its run had to go without or passed over (a lookback with a hole, ``max_lag``, C30) counts from the moment when it
is written. A partition of which either time is unknown is not stale. Only what was read itself counts: a partition that was made of a
stale one is stale once that one has been written again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionSpec
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.waits.dependencies import TableDependency, Wait
from airflow_chronon.core.waits.max_lag import Lagging


@dataclass(frozen=True)
class Stale:
    """Why a partition is stale: the newest write of what it reads."""

    table: str
    label: str  #: what was written, by its label in that table
    wrote: Instant | None = None  #: None: it landed at some time after the run had gone on without it
    written: Instant | None = None  #: when the stale partition itself was written; None: it is not known

    def __str__(self) -> str:
        if self.wrote is None or self.written is None:
            return f"{self.table} {self.label} is there, and this was written without it (max_lag)"
        return (
            f"{self.table} {self.label} was written at {iso(self.wrote)}, after this was written at {iso(self.written)}"
        )

    def as_json(self) -> dict[str, Any]:
        times = {"wrote": self.wrote, "written": self.written}
        return {"table": self.table, "label": self.label} | {
            name: None if time is None else iso(time) for name, time in times.items()
        }


def passed_over(lagging: Iterable[Lagging], landed: Mapping[str, Container[str]]) -> Stale | None:
    """Why a partition is stale whose run went without others (``max_lag``) of which one is there by now.

    ``landed`` are the labels of the tables that were looked at. It tells of tables too of which nobody knows when they were written.
    """
    for lag in lagging:
        for label in lag.landed_since(landed.get(lag.table, ())):
            return Stale(lag.table, label)
    return None


@dataclass(frozen=True)
class WriteTimes:
    """When each stretch of a table was last written; stretches neither touch with the same time nor overlap, oldest first."""

    stretches: tuple[TimeWindow, ...] = ()
    times: tuple[Instant, ...] = ()  #: one per stretch

    @classmethod
    def of(cls, writes: Iterable[tuple[TimeWindow, Instant]]) -> WriteTimes:
        """The newest time at each place, of writes in any order."""
        waiting = sorted(writes, key=lambda write: write[0].start)
        edges = sorted({edge for window, _ in waiting for edge in (window.start, window.end)})
        stretches, times = list[TimeWindow](), list[Instant]()
        open_writes: list[tuple[Instant, Instant]] = []  # the newest first: minus its time, and its end
        at = 0
        for start, end in pairwise(edges):
            while at < len(waiting) and waiting[at][0].start <= start:
                window, time = waiting[at]
                heappush(open_writes, (-time, window.end))
                at += 1
            while open_writes and open_writes[0][1] <= start:
                heappop(open_writes)
            if not open_writes:
                continue
            time = -open_writes[0][0]
            if stretches and stretches[-1].end == start and times[-1] == time:
                stretches[-1] = TimeWindow(stretches[-1].start, end)
            else:
                stretches.append(TimeWindow(start, end))
                times.append(time)
        return cls(tuple(stretches), tuple(times))

    def newest_within(self, first: Instant | None, end: Instant) -> tuple[Instant, Instant] | None:
        """The newest time in ``[first, end)``, and the first instant in there that was written then; None: no write is known."""
        low = 0 if first is None else bisect_right(self._ends, first)
        high = bisect_left(self._starts, end)
        if low >= high:
            return None
        size = (high - low).bit_length() - 1
        row, width = self._maxima[size], 1 << size
        place = max(row[low], row[high - width], key=lambda each: (self.times[each], -each))
        start = self.stretches[place].start
        return self.times[place], start if first is None else max(start, first)

    @cached_property
    def newest(self) -> Instant | None:
        """The newest time of all; None without any."""
        return max(self.times, default=None)

    @cached_property
    def _starts(self) -> Sequence[Instant]:
        return [each.start for each in self.stretches]

    @cached_property
    def _ends(self) -> Sequence[Instant]:
        return [each.end for each in self.stretches]

    @cached_property
    def _maxima(self) -> Sequence[Sequence[int]]:
        """Per power of two, the place of the newest time among so many stretches from each one on."""
        rows = [list(range(len(self.times)))]
        width = 1
        while 2 * width <= len(self.times):
            last = rows[-1]
            pairs = zip(last, last[width:], strict=False)
            rows.append([a if self.times[a] >= self.times[b] else b for a, b in pairs])
            width *= 2
        return rows


@dataclass(frozen=True)
class Staleness:
    """Which partitions of a conf's main table are stale."""

    grid: PartitionGrid
    reads: Sequence[TableDependency]  #: what the mode that writes the table reads
    written: WriteTimes  #: of the table itself
    sources: Mapping[str, WriteTimes] = field(default_factory=dict)  #: of what is read, by table; others are unknown

    def of(self, start: Instant) -> Stale | None:
        """Why the partition that starts there is stale; None when it is not, or nothing is known."""
        end = start + self.grid.interval
        own = self.written.newest_within(start, end)
        if own is None or self._newest is None or self._newest <= own[0]:
            return None
        found = [stale for each in self._known for stale in self._of(each, start, end, own[0])]
        return max(found, key=lambda stale: stale.wrote or 0, default=None)

    def ranges(self, first: Instant, end: Instant) -> StartRanges:
        """The stale partitions that start in ``[first, end)``."""
        starts = (
            start
            for stretch in self.written.stretches
            for start in self.grid.starts(max(first, stretch.start), min(end, stretch.end))
        )
        stale = (start for start in starts if self.of(start) is not None)
        return StartRanges.of_starts(stale, interval=self.grid.interval)

    @cached_property
    def _newest(self) -> Instant | None:
        times = (self.sources[each.table].newest for each in self._known)
        return max((time for time in times if time is not None), default=None)

    @cached_property
    def _known(self) -> Sequence[TableDependency]:
        """The dependencies of whose tables something is known."""
        return [each for each in self.reads if each.spec is not None and each.table in self.sources]

    def _of(self, read: TableDependency, start: Instant, end: Instant, written: Instant) -> Iterator[Stale]:
        writes, spec = self.sources[read.table], read.spec
        assert spec is not None
        if writes.newest is None or writes.newest <= written:
            return
        for first, stop in read_windows(read, start, end, grid=self.grid):
            newest = writes.newest_within(first, stop)
            if newest is not None and newest[0] > written:
                yield Stale(read.table, spec.label(spec.grid.floor(newest[1])), newest[0], written)


def read_windows(
    read: TableDependency, start: Instant, end: Instant, *, grid: PartitionGrid
) -> Iterator[tuple[Instant | None, Instant]]:
    """The windows of a table that a run over ``[start, end)`` of a conf on ``grid`` reads, lookback included.

    The first instant of one is None where it has no beginning.
    """
    if read.spec is None:
        return
    for wait in replace(read, expression=None).waits(
        start, end, grid=grid
    ):  # what it waits for instead is read all the same
        yield from _windows_of(wait, read.spec)


def _windows_of(wait: Wait, spec: PartitionSpec) -> Iterator[tuple[Instant | None, Instant]]:
    decode, step = spec.format.decode, spec.grid.interval
    try:
        starts = sorted(map(decode, wait.labels))
    except IllegalLabel:  # written by hand in the conf, and no label of this table
        return
    if not starts:
        return
    if wait.lookback is not None:
        first = wait.lookback.first
        yield None if first is None else decode(first), starts[-1] + step
        return
    for part in StartRanges.of_starts(starts, interval=step).ranges:
        yield part.start, part.stop
