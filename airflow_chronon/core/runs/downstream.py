"""Which partitions downstream read what is replayed, across grids and lags, so that they can be replayed after it (C15, C16).

A consumer's partition is touched when what it reads overlaps a partition that is replayed, or one that is touched itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.backfill import Landed, Replay, check_size, in_order
from airflow_chronon.core.runs.stale import read_windows
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.core.waits.readiness import first_landed


def with_downstream(
    replays: Sequence[Replay], plans: Mapping[str, Plan], landed: Landed, *, now: Instant
) -> tuple[Replay, ...]:
    """The replays with all that they touch, producers first, each conf once; plans by their keys.

    Of a consumer those partitions are taken that have landed or whose run should have come by ``now``, from the first one
    that has landed on: what lies before the history of its table is not made by a replay of something else. Raises
    ``ChrononError`` where one conf would have more runs than a replay may have.
    """
    touched = _touched(replays, plans, landed, now)
    return tuple(Replay(plans[key], tuple(sorted(touched[key]))) for key in in_order(plans, touched))


def _touched(
    replays: Sequence[Replay], plans: Mapping[str, Plan], landed: Landed, now: Instant
) -> dict[str, set[Instant]]:
    readers = _readers(plans)
    touched: dict[str, set[Instant]] = {}
    waiting: list[tuple[str, list[Instant]]] = []
    for replay in replays:
        touched.setdefault(replay.plan.key, set()).update(replay.starts)
        waiting.append((replay.plan.key, list(replay.starts)))
    while waiting:
        key, starts = waiting.pop()
        plan = plans[key]
        if plan.grid is None or not starts:
            continue
        written = _stretches(starts, plan.grid.interval)
        for table in plan.tables:
            for reader, reads in readers.get(table, ()):
                known = touched.get(reader.key, set())
                found = [start for start in _reading(reader, reads, written, landed, now) if start not in known]
                if found:
                    touched.setdefault(reader.key, set()).update(found)
                    check_size(Replay(reader, tuple(sorted(touched[reader.key]))))
                    waiting.append((reader.key, found))
    return touched


def _readers(plans: Mapping[str, Plan]) -> dict[str, list[tuple[ConfPlan, list[TableDependency]]]]:
    """Who reads each table, and how."""
    readers: dict[str, list[tuple[ConfPlan, list[TableDependency]]]] = defaultdict(list)
    for plan in plans.values():
        if not isinstance(plan, ConfPlan) or plan.is_left_out:  # without a DAG nothing of it can be replayed
            continue
        reads: dict[str, list[TableDependency]] = defaultdict(list)
        for found in plan.dependencies.values():
            for read in found:
                if read not in reads[read.table]:
                    reads[read.table].append(read)
        for table, each in reads.items():
            readers[table].append((plan, each))
    return readers


def _reading(
    plan: ConfPlan, reads: Iterable[TableDependency], written: Sequence[TimeWindow], landed: Landed, now: Instant
) -> Iterator[Instant]:
    """The partitions of a plan that read one of these stretches and are there, or should be."""
    there = landed(plan, plan.tables[0]) if plan.tables else frozenset[str]()
    first = first_landed(plan.spec, there)
    if first is None:
        return
    grid, schedule = plan.spec.grid, plan.schedule
    last = grid.floor(now) - grid.interval  # the newest that has closed
    seen = set[Instant]()
    for read in reads:
        for stretch in written:
            for start in grid.starts(*_candidates(read, stretch, plan, first, last)):
                if start in seen or not _reads(read, start, stretch, plan):
                    continue
                seen.add(start)
                run = schedule.covering_run(start)
                if schedule.label(start) in there or (run is not None and run.fire <= now):
                    yield start


def _candidates(
    read: TableDependency, stretch: TimeWindow, plan: ConfPlan, first: Instant, last: Instant
) -> tuple[Instant, Instant]:
    """A window that holds every partition which may read the stretch, of those from ``first`` to ``last``."""
    grid = plan.spec.grid
    low, high = first, last + grid.interval
    if read.fixed_labels:
        return low, high
    # a snapshot is taken on a grid of its own; what is read may so lie that much before or after the window
    slack = 2 * max(grid.interval, read.grid.interval if read.grid else 0, read.spec.grid.interval if read.spec else 0)
    low = max(low, grid.floor(stretch.start + read.lag - slack))
    if read.reach is not None and read.cut.end is None:  # what is cut off reads the last valid one for ever (C17)
        high = min(high, grid.ceil(stretch.end + read.lag + max(0, read.reach) + slack))
    return low, max(low, high)


def _reads(read: TableDependency, start: Instant, stretch: TimeWindow, plan: ConfPlan) -> bool:
    grid = plan.spec.grid
    return any(
        (first is None or first < stretch.end) and end > stretch.start
        for first, end in read_windows(read, start, start + grid.interval, grid=grid)
    )


def _stretches(starts: Iterable[Instant], interval: int) -> list[TimeWindow]:
    """Neighbouring partitions as one stretch each, oldest first."""
    found: list[TimeWindow] = []
    for start in sorted(starts):
        if found and found[-1].end == start:
            found[-1] = TimeWindow(found[-1].start, start + interval)
        else:
            found.append(TimeWindow(start, start + interval))
    return found
