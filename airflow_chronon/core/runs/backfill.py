"""Replays as data: which labels, in which stretches, and what has to be replayed upstream first (C9, C27).

The labels of a job are its logical dates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.conf import ConfKey
from airflow_chronon.core.confs.outputs import tables_of
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.jobs.verdicts import GoodPlan
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.runs.states import PartitionRow, State
from airflow_chronon.core.schedules.base import AnySchedule
from airflow_chronon.core.schedules.ranges import LabelRange, label_ranges
from airflow_chronon.core.waits.dependencies import Lookback, Wait
from airflow_chronon.errors import ChrononError, Fault


class Selection(Enum):
    """Which partitions of the asked range are replayed."""

    MISSING = "missing"  #: not landed in the catalog
    FAILED = "failed"  #: their newest run failed
    ALL = "all"


@dataclass(frozen=True)
class Replay:
    """The labels of one conf or job to run, oldest first. A job without a schedule has none."""

    plan: GoodPlan
    starts: tuple[Instant, ...]

    @property
    def schedule(self) -> AnySchedule:
        schedule = self.plan.intervals
        assert schedule is not None  # whoever asks for a replay has looked
        return schedule

    @property
    def labels(self) -> tuple[PartitionKey, ...]:
        return tuple(map(self.schedule.label, self.starts))

    @property
    def label_ranges(self) -> tuple[LabelRange, ...]:
        """The labels as contiguous ranges, oldest first."""
        return label_ranges(self.starts, self.schedule)


_UNDER_WAY = (State.RUNNING, State.QUEUED)


def select_starts(rows: Iterable[PartitionRow], selection: Selection) -> tuple[Instant, ...]:
    """The starts of the rows that a selection means. A partition whose run is under way is never doubled."""
    if selection is Selection.FAILED:
        return tuple(row.start for row in rows if row.state is State.FAILED)
    if selection is Selection.MISSING:
        return tuple(row.start for row in rows if not row.landed and row.state not in _UNDER_WAY)
    return tuple(row.start for row in rows if row.state not in _UNDER_WAY)


def count_under_way(rows: Iterable[PartitionRow], selection: Selection) -> int:
    """How many a selection would mean if no run of theirs were under way."""
    is_all, is_missing = selection is Selection.ALL, selection is Selection.MISSING
    return sum(row.state in _UNDER_WAY and (is_all or (is_missing and not row.landed)) for row in rows)


@dataclass(frozen=True)
class ConfReplay(Replay):
    """The replay of a conf, which has producers."""

    plan: ConfPlan


#: The landed labels of a table.
Landed = Callable[[ConfPlan, str], frozenset[str]]


def with_upstream(
    target: ConfReplay, plans: Mapping[ConfKey, ConfPlan], landed: Landed, *, now: Instant
) -> tuple[Replay, ...]:
    """The target after every producer's replays that it needs: producers first, each conf once.

    A producer is replayed where it lacks labels that a later replay reads, its own upstream included. A conf that reads
    its own earlier partitions is not its own producer here. Raises ``ChrononError`` when a needed one is not closed.
    """
    walk = _Walk(plans, landed, now)
    walk.visit(target)
    ordered = walk.in_order(target.plan.conf.key)
    needed = {key: tuple(sorted(starts)) for key, starts in walk.needed.items() if key != target.plan.conf.key}
    return (*(ConfReplay(plans[key], needed[key]) for key in ordered if needed.get(key)), target)


class _Walk:
    """From consumers to producers, adding what each of them lacks."""

    def __init__(self, plans: Mapping[ConfKey, ConfPlan], landed: Landed, now: Instant) -> None:
        self._plans, self._landed, self._now = plans, landed, now
        self._writers = {table: plan for plan in plans.values() for table in tables_of(plan)}
        self.needed: dict[ConfKey, set[Instant]] = {}

    def visit(self, target: ConfReplay) -> None:
        """Add what is needed; round a cycle nothing older than what was asked for, or it would never end (C15)."""
        oldest = min(target.starts)
        waiting = [(target.plan.conf.key, set(target.starts), frozenset([target.plan.conf.key]))]
        while waiting:
            reader, starts, path = waiting.pop()
            known = self.needed.setdefault(reader, set())
            lacking: dict[ConfKey, set[Instant]] = {}
            for window in map(self._plans[reader].runs.partition, sorted(starts - known)):
                for producer, start in self._lacks(self._plans[reader], window):
                    if start >= oldest or producer.conf.key not in path:
                        lacking.setdefault(producer.conf.key, set()).add(start)
            known |= starts
            waiting += [(key, found, path | {key}) for key, found in lacking.items()]

    def in_order(self, last: ConfKey) -> list[ConfKey]:
        """Every conf that is needed, producers before consumers."""
        ordered: list[ConfKey] = []
        seen: set[ConfKey] = set()

        def place(key: ConfKey) -> None:
            if key in seen:
                return
            seen.add(key)
            for producer in self._plans[key].producers:
                if producer in self.needed:
                    place(producer)
            ordered.append(key)

        place(last)
        return ordered

    def _lacks(self, plan: ConfPlan, window: TimeWindow) -> Iterable[tuple[ConfPlan, Instant]]:
        for mode in plan.runs.replay(window).modes:
            for wait in plan.mode_waits(mode, window):
                producer = self._writers.get(wait.table)
                if producer is None or producer is plan or wait.spec is None:
                    continue
                for label in self._unlanded(producer, wait):
                    start = producer.spec.start_of(label)
                    if start + producer.spec.grid.interval > self._now:
                        reader = plan.spec.label(window.start)
                        problem = f"{reader} needs {label} of {producer.conf.key}, which has not closed"
                        raise ChrononError(Fault("C27", "end_ds", problem, "end earlier"), conf=str(plan.conf.key))
                    yield producer, start

    def _unlanded(self, producer: ConfPlan, wait: Wait) -> Iterable[str]:
        there = self._landed(producer, wait.table)
        yield from (label for label in wait.labels if label not in there)
        if wait.lookback is None or wait.policy is not Lookback.REQUIRE or wait.spec is None:
            return
        spec = wait.spec
        oldest = min((start for label in there if (start := _start(producer, label)) is not None), default=None)
        if oldest is None:
            return  # labels before the first landed one are before its history (C17)
        first = oldest if wait.lookback.first is None else max(oldest, spec.start_of(wait.lookback.first))
        last = spec.start_of(wait.lookback.last)
        yield from (label for label in spec.labels(first, last + spec.grid.interval) if label not in there)


def _start(plan: ConfPlan, label: str) -> Instant | None:
    try:
        return plan.spec.start_of(label)
    except ChrononError:
        return None
