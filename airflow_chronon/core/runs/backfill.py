"""Replays as data: which labels, in which ranges, and what has to be replayed upstream first (C9, C27).

The labels of a job are its logical dates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from shlex import quote

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec
from airflow_chronon.core.partitions.limits import MOST_OF_A_RUN, limited
from airflow_chronon.core.runs.states import PartitionRow, State
from airflow_chronon.core.schedules.base import AnySchedule
from airflow_chronon.core.schedules.ranges import LabelRange, label_ranges
from airflow_chronon.core.waits.dependencies import Lookback, Wait
from airflow_chronon.core.waits.readiness import missing_starts_between
from airflow_chronon.errors import ChrononError, Fault


class Selection(Enum):
    """Which partitions of the asked range are replayed."""

    MISSING = "missing"  #: not landed in the catalog
    FAILED = "failed"  #: their newest run failed, or can never start
    STALE = "stale"  #: landed, and what they read was written after them
    ALL = "all"


@dataclass(frozen=True)
class Replay:
    """The labels of one conf or job to run, oldest first. A job without a schedule has none."""

    plan: Plan
    starts: tuple[Instant, ...]
    is_by_key: bool = False  #: whether each run has a name of its own, since others hold for it

    @property
    def schedule(self) -> AnySchedule:
        return self.plan.need_schedule()

    @property
    def labels(self) -> tuple[PartitionKey, ...]:
        return tuple(map(self.schedule.label, self.starts))

    @property
    def label_ranges(self) -> tuple[LabelRange, ...]:
        """The labels as contiguous ranges, oldest first."""
        return label_ranges(self.starts, self.schedule)


_UNDER_WAY = (State.RUNNING, State.QUEUED)


def meant_starts(rows: Iterable[PartitionRow], selection: Selection) -> tuple[Instant, ...]:
    """The starts of the rows that a selection means, those whose runs are under way included."""
    if selection is Selection.FAILED:
        return tuple(row.start for row in rows if row.state in (State.FAILED, State.STRANDED))
    if selection is Selection.STALE:
        return tuple(row.start for row in rows if row.state is State.STALE)
    return tuple(row.start for row in rows if selection is Selection.ALL or not row.landed)


def select_starts(rows: Iterable[PartitionRow], selection: Selection) -> tuple[Instant, ...]:
    """The starts of the rows to replay: a partition whose run is under way is never doubled."""
    return meant_starts((row for row in rows if row.state not in _UNDER_WAY), selection)


#: The landed labels of a table.
Landed = Callable[[Plan, str], frozenset[str]]


def check_size(replay: Replay) -> None:
    """Raise ``ChrononError`` for more runs than one replay may have (S7); it names the command of the first piece."""
    starts, schedule = replay.starts, replay.schedule
    if len(starts) <= MOST_OF_A_RUN:
        return
    first, last = (quote(schedule.label(each)) for each in (starts[0], starts[MOST_OF_A_RUN - 1]))
    problem = f"these are {len(starts)} runs, and one replay has at most {MOST_OF_A_RUN}"
    command = f"airflow-chronon backfill {replay.plan.dag_id} --start-ds {first} --end-ds {last}"
    raise ChrononError(Fault("S7", "", problem, f"replay them in pieces, first {command}"), conf=replay.plan.key)


def with_upstream(target: Replay, plans: Mapping[str, Plan], landed: Landed, *, now: Instant) -> tuple[Replay, ...]:
    """The target after every producer's replays that it needs: producers first, each conf once; plans by their keys.

    A producer is replayed where it lacks labels that a later replay reads, its own upstream included. A conf that reads
    its own earlier partitions is not its own producer here. Raises ``ChrononError`` when a needed one is not closed.
    """
    walk = _Walk(plans, landed, now)
    walk.visit(target)
    ordered = in_order(plans, [target.plan.key, *walk.needed])
    needed = {key: tuple(sorted(starts)) for key, starts in walk.needed.items() if key != target.plan.key}
    return (*(Replay(plans[key], needed[key]) for key in ordered if needed.get(key)), target)


def in_order(plans: Mapping[str, Plan], keys: Iterable[str]) -> list[str]:
    """These confs with producers before consumers; what the graph leaves open, as a cycle, goes by the order given."""
    wanted = dict.fromkeys(keys)
    ordered: dict[str, None] = {}
    seen: set[str] = set()
    for key in wanted:
        path = [key]
        while path:
            seen.add(path[-1])
            producers = map(str, plans[path[-1]].producers)
            before = next((each for each in producers if each in wanted and each not in seen), None)
            if before is not None:
                path.append(before)
            else:
                ordered.setdefault(path.pop())
    return list(ordered)


class _Walk:
    """From consumers to producers, adding what each of them lacks."""

    def __init__(self, plans: Mapping[str, Plan], landed: Landed, now: Instant) -> None:
        self._plans, self._landed, self._now = plans, landed, now
        self._writers = {table: plan for plan in plans.values() for table in plan.tables}
        self.needed: dict[str, set[Instant]] = {}

    def visit(self, target: Replay) -> None:
        """Add what is needed; round a cycle nothing older than what was asked for, or it would never end (C15)."""
        oldest = min(target.starts)
        waiting = [(target.plan.key, set(target.starts), frozenset([target.plan.key]))]
        while waiting:
            reader, starts, path = waiting.pop()
            known = self.needed.setdefault(reader, set())
            lacking: dict[str, set[Instant]] = {}
            for wanted in sorted(starts - known):
                for producer, start in self._lacks(self._plans[reader], wanted):
                    if start >= oldest or producer.key not in path:
                        lacking.setdefault(producer.key, set()).add(start)
            known |= starts
            waiting += [(key, found, path | {key}) for key, found in lacking.items()]

    def _lacks(self, plan: Plan, wanted: Instant) -> Iterable[tuple[Plan, Instant]]:
        for wait in plan.replay_waits(wanted):
            producer = self._writers.get(wait.table)
            if producer is None or producer is plan or wait.spec is None or producer.spec is None:
                continue
            for label in self._unlanded(producer, producer.spec, wait):
                start = producer.spec.start_of(label)
                if start + producer.spec.grid.interval > self._now:
                    reader = plan.need_schedule().label(wanted)
                    problem = f"{reader} needs {label} of {producer.key}, which has not closed"
                    raise ChrononError(Fault("C27", "end_ds", problem, "end earlier"), conf=plan.key)
                yield producer, start

    def _unlanded(self, producer: Plan, written: PartitionSpec, wait: Wait) -> Iterable[str]:
        there = self._landed(producer, wait.table)
        yield from (label for label in wait.labels if label not in there)
        if wait.lookback is None or wait.policy is not Lookback.REQUIRE or wait.spec is None:
            return
        spec = wait.spec
        oldest = min((start for label in there if (start := _start(written, label)) is not None), default=None)
        if oldest is None:
            return  # labels before the first landed one are before its history (C17)
        first = oldest if wait.lookback.first is None else max(oldest, spec.start_of(wait.lookback.first))
        last = spec.start_of(wait.lookback.last)
        gaps = missing_starts_between(spec, first, last, there)
        lacking = limited(
            (start for gap in gaps for start in gap), what=f"partitions of {wait.table}", conf=producer.key
        )
        yield from map(spec.label, lacking)


def _start(spec: PartitionSpec, label: str) -> Instant | None:
    try:
        return spec.start_of(label)
    except ChrononError:
        return None
