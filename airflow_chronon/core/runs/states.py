"""What became of each partition of a conf, or interval of a job: landed, missing, running, failed, or skipped and why (H20)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.runs.freshness import is_expected
from airflow_chronon.core.runs.skip_reasons import Reason, SkipFacts, Skips
from airflow_chronon.core.runs.stale import Stale, Staleness, passed_over
from airflow_chronon.core.schedules.base import AnySchedule
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.schedules.revision import ScheduleRevision
from airflow_chronon.core.waits.max_lag import Lagging
from airflow_chronon.core.waits.readiness import first_landed


class State(Enum):
    """One word per partition; the first that holds, in this order."""

    OPEN = "open"  #: has not closed yet
    RUNNING = "running"
    QUEUED = "queued"
    STRANDED = "stranded"  #: its newest run is queued, and Airflow never starts it
    FAILED = "failed"  #: its newest run failed; an older one may have landed
    STALE = "stale"  #: it has landed, and what it reads was written after it
    LANDED = "landed"
    DONE = "done"  #: of a job, which has no table: a run of it ended well
    DUE = "due"  #: its run comes by itself
    ABSENT = "absent"  #: on purpose: somebody said that it never will be there
    SKIPPED = "skipped"
    MISSING = "missing"


#: Why a queued run is one that Airflow never starts; for people.
WHY_STRANDED = "since it was cleared after its backfill was cancelled"


@dataclass(frozen=True)
class KnownRun:
    """A run that Airflow has, and the whole partitions that it is for; its window ends with the newest one."""

    run_id: str
    state: str  #: as Airflow names it
    is_scheduled: bool
    window: TimeWindow
    order: tuple[float, str] = (0.0, "")  #: a later run of a partition has the greater one
    fills: bool = True  #: it writes them; a run of a conf's uploads alone does not (C10)
    was_skipped: bool = False  #: it ended well without doing its work: what it waited for will never come (C30)
    is_stranded: bool = False  #: queued, and Airflow never starts it: its backfill was cancelled
    lagging: tuple[Lagging, ...] = ()  #: what it went without, where ``max_lag`` let it
    conf: Mapping[str, Any] = field(
        default_factory=dict, repr=False, compare=False
    )  #: what it was given, such as its replay

    @property
    def is_active(self) -> bool:
        return self.state in _ACTIVITY


@dataclass(frozen=True)
class PartitionRow:
    """One partition; ``landed`` is None when no catalog tells; of a job it is whether a run of it ended well."""

    label: PartitionKey
    start: Instant
    state: State
    landed: bool | None = None
    run_id: str | None = None
    reason: str = ""
    good: State = State.LANDED  #: what it is when it is there
    late_since: Instant | None = None  #: since when it should have been there, by its conf's ``freshness``
    stale: Stale | None = None  #: why it is stale

    def as_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"label": self.label, "start": iso(self.start), "state": self.state.value}
        if self.late_since is not None:
            row["late_since"] = iso(self.late_since)
        if self.stale is not None:
            row["stale"] = self.stale.as_json()
        if self.landed is not None:
            row[self.good.value] = self.landed
        return row | ({"run_id": self.run_id} if self.run_id else {}) | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True)
class Known:
    """What catalog, Airflow and record say of one conf or job; None is not asked."""

    landed: Container[str] | None = None
    runs: Sequence[KnownRun] | None = None
    kept_grid: str | None = None
    revisions: Sequence[ScheduleRevision] = ()
    is_active: bool = True  #: false for a job that is on and that no reconcile has seen (H14)
    first_seen: Instant | None = None  #: when a reconcile first saw a job
    halted: Reason | None = None  #: why nothing fires in Airflow now
    good: State = State.LANDED  #: :attr:`State.DONE` for a job: its runs tell what is there
    freshness: int | None = None  #: how many seconds after its end a partition that is not there is late
    staleness: Staleness | None = None  #: None: nobody asked
    absent: Mapping[str, str] = field(default_factory=dict)  #: by label, who said that it never will be there, and when
    landed_inputs: Mapping[str, Container[str]] = field(
        default_factory=dict
    )  #: of tables that runs went without, by table


_MAY_BE_ABSENT = frozenset((State.FAILED, State.STRANDED, State.DUE, State.SKIPPED, State.MISSING))


def partition_rows(
    schedule: AnySchedule, starts: Iterable[Instant], known: Known, *, now: Instant
) -> list[PartitionRow]:
    """A row per partition start, in the order given."""
    states = PartitionStates(schedule, known, now=now)
    return [states.row(start) for start in starts]


class PartitionStates:
    """What became of each partition of one conf, or interval of one job, as of one moment."""

    def __init__(self, schedule: AnySchedule, known: Known, *, now: Instant) -> None:
        self._schedule, self._known, self._now = schedule, known, now
        self.runs = newest_runs(schedule, known.runs or ())  #: the run that decides, by partition start
        last_end = max((run.window.end for run in known.runs or () if run.is_scheduled), default=None)
        facts = SkipFacts(now, last_end, known.kept_grid, known.is_active, known.first_seen, known.halted)
        self.skips = Skips(schedule, facts, revisions=known.revisions)

    def row(self, start: Instant) -> PartitionRow:
        """The partition that starts at ``start``."""
        row, freshness, schedule = self._row(start), self._known.freshness, self._schedule
        if (stale := self._stale(row)) is not None:
            reason = "; ".join(filter(None, (str(stale), row.reason)))
            return replace(row, state=State.STALE, stale=stale, reason=reason)
        if row.state in _MAY_BE_ABSENT and not row.landed and (said := self._known.absent.get(row.label)) is not None:
            return replace(row, state=State.ABSENT, reason=f"absent on purpose, {said}")
        if freshness is None or row.landed or row.state is row.good or not isinstance(schedule, PartitionedSchedule):
            return row
        late_since, begun = schedule.end_of(start) + freshness, self._first_landed
        is_owed = is_expected(schedule, start) and (begun is None or start > begun)
        return replace(row, late_since=late_since) if late_since <= self._now and is_owed else row

    def _stale(self, row: PartitionRow) -> Stale | None:
        if row.state is not State.LANDED:
            return None
        staleness, run = self._known.staleness, self.runs.get(row.start)
        stale = None if staleness is None else staleness.of(row.start)
        if stale is not None or run is None:
            return stale
        return passed_over(run.lagging, self._known.landed_inputs)

    @cached_property
    def _first_landed(self) -> Instant | None:
        """Where the history of the table begins (C17)."""
        landed, schedule = self._known.landed, self._schedule
        if isinstance(landed, frozenset) and isinstance(schedule, PartitionedSchedule):
            return first_landed(schedule.spec, landed)
        return None

    def _row(self, start: Instant) -> PartitionRow:
        schedule, known = self._schedule, self._known
        label = schedule.label(start)
        landed = None if known.landed is None else label in known.landed
        row = PartitionRow(label, start, State.MISSING, landed, good=known.good)
        if schedule.end_of(start) > self._now:
            return replace(row, state=State.OPEN)
        if (run := self.runs.get(start)) is not None:
            return _with_run(row, run)
        if row.landed:
            return replace(row, state=row.good)
        return row if known.runs is None else _without_run(row, schedule, self.skips)


def done_labels(schedule: AnySchedule, runs: Iterable[KnownRun]) -> frozenset[str]:
    """The intervals of a job that runs which ended well have covered from end to end, maybe several: crons change."""
    whole: list[TimeWindow] = []
    for window in sorted((run.window for run in runs if run.state == "success"), key=lambda window: window.start):
        if whole and window.start <= whole[-1].end:
            whole[-1] = TimeWindow(whole[-1].start, max(whole[-1].end, window.end))
        else:
            whole.append(window)
    return frozenset(schedule.label(start) for window in whole for start in _starts_within(window, schedule))


def newest_runs(schedule: AnySchedule, runs: Iterable[KnownRun]) -> Mapping[Instant, KnownRun]:
    """The run that decides per partition start: an active one, else the newest that has ended."""
    grouped: dict[Instant, list[KnownRun]] = defaultdict(list)
    for run in runs:
        for start in _starts_within(run.window, schedule) if run.fills else ():
            grouped[start].append(run)
    return {start: max(found, key=lambda run: (_activity(run), run.order)) for start, found in grouped.items()}


def _starts_within(window: TimeWindow, schedule: AnySchedule) -> Iterator[Instant]:
    """The starts of the intervals that a window holds from end to end."""
    return (start for start in schedule.starts(window.start, window.end) if schedule.end_of(start) <= window.end)


def _activity(run: KnownRun) -> int:
    return 0 if run.is_stranded else _ACTIVITY.get(run.state, 0)


_ACTIVITY = {"running": 2, "queued": 1}
_STATES = {"running": State.RUNNING, "queued": State.QUEUED, "failed": State.FAILED}


def _with_run(row: PartitionRow, run: KnownRun) -> PartitionRow:
    row = replace(row, run_id=run.run_id)
    if run.is_stranded:
        return replace(row, state=State.STRANDED, reason=f"{run.run_id} never starts, {WHY_STRANDED}: replay it")
    if run.state in _STATES:
        return replace(row, state=_STATES[run.state])
    if row.landed is False:
        if run.was_skipped:
            return replace(row, state=State.SKIPPED, reason="passed over: no run writes what it waited for (C30)")
        return replace(row, reason="its run ended well, and it is not there")
    return replace(row, state=row.good, reason="; ".join(map(str, run.lagging)))


def _without_run(row: PartitionRow, schedule: AnySchedule, skips: Skips) -> PartitionRow:
    reason = skips.reason(row.start)
    if reason is not None:
        return replace(row, state=State.SKIPPED, reason=str(reason))
    run = schedule.covering_run(row.start)
    if run is not None and skips.is_to_come(run):
        return replace(row, state=State.DUE, reason=f"fires at {iso(run.fire)}")
    return replace(row, reason="no run, and nothing that explains it: replay it")
