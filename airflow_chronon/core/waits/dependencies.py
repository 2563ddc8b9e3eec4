"""What a run needs of one table: ranges, cut-offs and waits (C16 to C21).

A :class:`TableDependency` is plain data, worked out once from a conf. For a run over ``[start, end)`` it yields
:class:`Wait` values: the labels, the instant or the expression that the run waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec
from airflow_chronon.core.partitions.limits import MOST_LABELS
from airflow_chronon.core.waits.max_lag import MaxLag
from airflow_chronon.errors import ChrononError, Fault


class Binding(Enum):
    """How the window of a run turns into the window that is read."""

    WHOLE = "whole"  #: the run's own window, as whole partitions (C16)
    ROW_SNAPSHOT = "row_snapshot"  #: the snapshots that the rows of an events left take (C21)
    PARTITION_SNAPSHOT = "partition_snapshot"  #: one snapshot per partition of an entities left (C21)
    POINT_IN_TIME = "point_in_time"  #: the partitions that have closed by the run's end (C21)
    NEWEST_SNAPSHOT = "newest_snapshot"  #: the snapshot that ends at the newest boundary by the run's end (C11)


class Lookback(Enum):
    """What happens when the older part of a range has a hole (C17)."""

    REQUIRE = "require"
    WARN = "warn"
    IGNORE = "ignore"


@dataclass(frozen=True)
class CutOffs:
    """The instants of a range's inclusive cut-off labels; None stands for no cut-off."""

    start: Instant | None = None  #: start of the first partition (or day) inside
    end: Instant | None = None  #: end of the last partition (or day) inside
    last: Instant | None = None  #: start of the last partition (or day) inside


@dataclass(frozen=True)
class PartitionRange:
    """Labels of one table, inclusive at both ends; without a first label it has no beginning."""

    first: PartitionKey | None
    last: PartitionKey

    def __str__(self) -> str:
        return self.last if self.first == self.last else f"{self.first or 'the beginning'} to {self.last}"


@dataclass(frozen=True)
class Wait:
    """What one run waits for on one table: labels, an instant or an expression, never more than one of them."""

    table: str
    column: str = ""
    labels: tuple[PartitionKey, ...] = ()  #: all of them, in the order of their text
    sub: tuple[str, ...] = ()  #: sub-partitions under each label (C20)
    spec: PartitionSpec | None = None
    lookback: PartitionRange | None = None  #: older labels that the run reads and an earlier run waited for (C17)
    policy: Lookback = Lookback.IGNORE
    is_strict: bool = False  #: ``lookback: require`` was set on purpose: also what nobody will write is a hole (C30)
    until: Instant | None = None  #: a time-partitioned table's newest value must reach this (C18)
    expression: str | None = None  #: a `triggerExpr` (C19); ``labels`` then hold what its value is compared with
    max_lag: MaxLag | None = None  #: how many of the newest labels the run may go without; None: none
    oldest: Instant | None = None  #: where the oldest partition starts that the run reads; None: without bound

    @property
    def merge_key(self) -> tuple[object, ...]:
        return self.table, self.column, self.until is None, self.expression, self.sub

    @property
    def sort_key(self) -> tuple[str, str, str]:
        return self.table, self.column, str(self.sub)


@dataclass(frozen=True)
class TableDependency:
    """How one conf reads one table."""

    table: str
    column: str = ""
    spec: PartitionSpec | None = None  #: None: time-partitioned, without labels (C18)
    binding: Binding = Binding.WHOLE
    grid: PartitionGrid | None = None  #: for snapshots: the grid that they are taken on
    lag: int = 0  #: seconds by which the window is moved back
    reach: int | None = (
        0  #: seconds that the range reaches further back; None: without bound, negative: it starts later
    )
    cut: CutOffs = CutOffs()
    is_cumulative: bool = False  #: only the newest label is needed
    sub: tuple[str, ...] = ()
    expression: str | None = None
    fixed_labels: tuple[PartitionKey, ...] = ()  #: labels that do not depend on the run
    policy: Lookback = Lookback.IGNORE
    is_strict: bool = False  #: the policy was set on purpose, and is not the default of C17
    field: str = ""  #: where the conf says so
    max_lag: MaxLag | None = None

    def waits(self, start: Instant, end: Instant, *, grid: PartitionGrid) -> Iterator[Wait]:
        """What a run over ``[start, end)`` of a conf on ``grid`` waits for on this table.

        Raises ``ChrononError`` when that is more than one run may wait for (S7).
        """
        if self.fixed_labels:
            yield Wait(self.table, self.column, self.fixed_labels, self.sub)
            return
        count = self.label_count(start, end, grid=grid)
        if count > MOST_LABELS:
            problem = f"the run would wait for about {count} partitions of {self.table}, and one run waits for at most"
            raise ChrononError(Fault("S7", "", f"{problem} {MOST_LABELS}", "give a shorter range"))
        for since, until in self._windows(start, end, grid):
            wait = self._wait(since - self.lag, until - self.lag)
            if wait is not None:
                yield wait

    def label_count(self, start: Instant, end: Instant, *, grid: PartitionGrid) -> int:
        """About how many labels such a run waits for, without writing them: as many as lie in what it reads, or more."""
        if self.spec is None:
            return 0
        interval = self.spec.grid.interval
        return sum((until - since) // interval + 1 for since, until in self._windows(start, end, grid))

    def _windows(self, start: Instant, end: Instant, grid: PartitionGrid) -> Iterable[tuple[Instant, Instant]]:
        """The windows that are read, before lag."""
        if self.binding in (Binding.WHOLE, Binding.POINT_IN_TIME):
            return ((start, end),)
        snapshots = self.grid
        assert snapshots is not None, "a snapshot binding needs the grid of its snapshots"
        if self.binding is Binding.ROW_SNAPSHOT:
            return ((snapshots.floor(start) - snapshots.interval, snapshots.floor(end - 1)),)
        if self.binding is Binding.NEWEST_SNAPSHOT:
            ends: Iterable[Instant] = (snapshots.floor(end),)
        else:
            # neighbouring partitions take the same snapshot where those are coarser
            ends = dict.fromkeys(snapshots.floor(s + grid.interval) for s in grid.starts(start, end))
        return tuple((at - snapshots.interval, at) for at in ends)

    def _wait(self, start: Instant, end: Instant) -> Wait | None:
        """The wait for the slice ``[start, end)`` within its range, cut-offs applied; None when nothing is needed."""
        range_start = None if self.reach is None else start - self.reach
        if range_start is not None:
            start = max(start, range_start)
        if self.cut.start is not None:
            start = max(start, self.cut.start)
            range_start = self.cut.start if range_start is None else max(range_start, self.cut.start)
        cut_end = end if self.cut.end is None else min(end, self.cut.end)
        if range_start is not None and range_start >= cut_end:
            return None
        if self.spec is None:
            if self.expression:
                return Wait(self.table, expression=self.expression)
            reached = cut_end if cut_end == end or self.cut.last is None else self.cut.last
            return Wait(self.table, self.column, until=reached)
        starts = self._starts(start, end, cut_end)
        if not starts:
            return None
        if self.is_cumulative:
            starts = starts[-1:]
        labels = tuple(sorted({self.spec.label(s) for s in starts}))
        if self.expression:
            return Wait(self.table, labels=labels, spec=self.spec, expression=self.expression)
        wait = Wait(self.table, self.column, labels, self.sub, self.spec, policy=self.policy, is_strict=self.is_strict)
        if self.max_lag is not None:
            oldest = None if range_start is None else self.spec.grid.floor(range_start)
            wait = replace(wait, max_lag=self.max_lag, oldest=oldest)
        return replace(wait, lookback=self._lookback(range_start, starts[0]))

    def _starts(self, start: Instant, end: Instant, cut_end: Instant) -> list[Instant]:
        """The partitions of the slice, oldest first; when the cut-offs leave none, the last valid one (C17)."""
        assert self.spec is not None
        grid = self.spec.grid
        if self.binding is Binding.POINT_IN_TIME:
            # C21: needed once closed by the end; when none closes inside the window, the newest closed one
            starts = [s for s in grid.starts(start, end) if s + grid.interval <= end]
            starts = starts or [grid.floor(end) - grid.interval]
            first, bound = self.cut.start, self.cut.end
            starts = [
                s for s in starts if (first is None or s + grid.interval > first) and (bound is None or s < bound)
            ]
        else:
            starts = list(grid.starts(start, cut_end))
        if starts or (self.reach is not None and self.reach <= 0):
            return starts
        return [grid.floor(cut_end - 1)]

    def _lookback(self, range_start: Instant | None, first: Instant) -> PartitionRange | None:
        """The labels from the beginning of the range up to the one before ``first``."""
        assert self.spec is not None
        if self.is_cumulative or (self.reach is not None and self.reach <= 0):
            return None
        last = first - self.spec.grid.interval
        if range_start is None:
            return PartitionRange(None, self.spec.label(last))
        oldest = self.spec.grid.floor(range_start)
        if oldest < self.spec.format.earliest:  # no partition can have such a label
            oldest = self.spec.grid.ceil(self.spec.format.earliest)
        return PartitionRange(self.spec.label(oldest), self.spec.label(last)) if oldest < first else None


def merged(waits: Iterable[Wait]) -> tuple[Wait, ...]:
    """One wait per table, column and sub-partitions: labels united, the latest instant, the hull of the lookbacks."""
    groups: dict[tuple[object, ...], list[Wait]] = {}
    for wait in waits:
        groups.setdefault(wait.merge_key, []).append(wait)
    return tuple(sorted(map(_united, groups.values()), key=lambda wait: wait.sort_key))


def _rewritten(wait: Wait, spec: PartitionSpec | None) -> Wait:
    """The wait with its labels in the format of ``spec``: a table has one, and the first reference to it decides."""
    if spec is None or wait.spec is None or spec.format == wait.spec.format:
        return wait
    read, write = wait.spec.format.decode, spec.format.encode
    back = wait.lookback
    if back is not None:
        first = None if back.first is None else PartitionKey(write(read(back.first)))
        back = PartitionRange(first, PartitionKey(write(read(back.last))))
    return replace(wait, labels=tuple(PartitionKey(write(read(label))) for label in wait.labels), lookback=back)


def _united(waits: Sequence[Wait]) -> Wait:
    one = waits[0]
    if len(waits) == 1:
        return one
    untils = [wait.until for wait in waits if wait.until is not None]
    if untils:
        return replace(one, until=max(untils))
    alike = [_rewritten(wait, one.spec) for wait in waits]
    strictest = min((wait.policy for wait in alike), key=list(Lookback).index)
    labels = tuple(sorted({label for wait in alike for label in wait.labels}))
    is_strict = any(wait.is_strict for wait in alike)
    return replace(
        one,
        labels=labels,
        lookback=_hull(alike, one.spec),
        policy=strictest,
        is_strict=is_strict,
        max_lag=MaxLag.strictest([wait.max_lag for wait in alike]),
        oldest=max((wait.oldest for wait in alike if wait.oldest is not None), default=None),
    )


def _hull(waits: Iterable[Wait], spec: PartitionSpec | None) -> PartitionRange | None:
    ranges = [wait.lookback for wait in waits if wait.lookback is not None]
    if len(ranges) < 2 or spec is None:
        return ranges[0] if ranges else None
    starts = [r.first for r in ranges]
    decode = spec.format.decode
    first = None if any(s is None for s in starts) else min((s for s in starts if s is not None), key=decode)
    return PartitionRange(first, max((r.last for r in ranges), key=decode))
