"""A look at the tables of a deployment: how fresh each is, and which partitions are late that nobody was told of."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.catalogs.connections import Connect
from airflow_chronon.core.calendar.instants import Instant, iso
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.freshness import Freshness, FreshnessRecord, judge_freshness
from airflow_chronon.core.waits.readiness import check_shape
from airflow_chronon.errors import ChrononError
from airflow_chronon.state.folder import StateFolder
from airflow_chronon.threads import SideBySide

MOST_CALLS = 100  #: of one conf and survey; the rest comes with the next
AT_ONCE = 4  #: tables that are looked at beside each other
PATIENCE = 5.0  #: seconds after which a look, or a call, that has not ended makes room for the next

_Piece = tuple[Callable[[], object], Callable[["Future[object] | None", float], None]]


@dataclass(frozen=True)
class LatePartition:
    """A partition that should have landed and has not: what a callback is given."""

    conf: str
    dag_id: str
    team: str
    owner: str
    table: str
    label: str
    start: str  #: ISO-8601, as the others
    end: str
    late_since: str

    @classmethod
    def of(cls, plan: ConfPlan, start: Instant, *, freshness: int) -> LatePartition:
        end = plan.schedule.end_of(start)
        owner = plan.settings.owner or plan.team
        label, times = plan.spec.label(start), map(iso, (start, end, end + freshness))
        return cls(plan.key, plan.dag_id, plan.team, owner, plan.table, label, *times)

    def __str__(self) -> str:
        return f"{self.conf} {self.label} is late since {self.late_since}"


@dataclass
class Survey:
    """One look at tables, the longest unseen first, for as long as there is time; several beside each other (S8).

    A table or a callback that hangs makes room for the others, and is given up when the time is. ``on_seen`` hears of each
    table, ``on_late`` of each late partition once: one over which it raises is told again. ``trouble`` hears of a table that its
    catalog does not tell of, and of a call that failed or has not ended.
    """

    state: StateFolder
    now: Instant
    on_seen: Callable[[ConfPlan, StartRanges, Freshness], None]
    on_late: Callable[[ConfPlan, LatePartition], None]  #: called in other threads, for several confs at the same time
    trouble: Callable[[str], None]
    has_time: Callable[[], bool] = lambda: True  #: to begin with another table
    seconds_left: Callable[[], float] = lambda: float("inf")  #: for what has begun
    at_once: int = AT_ONCE
    patience: float = PATIENCE
    connect: Connect | None = None  #: finds the connections that catalogs name; None: those of the environment
    unseen: list[str] = field(default_factory=list)  #: the confs that there was no time for
    _records: dict[str, FreshnessRecord] = field(default_factory=dict, init=False)
    _calls: deque[_Piece] = field(default_factory=deque, init=False)
    _writing: threading.Lock = field(default_factory=threading.Lock, init=False)

    def run(self, plans: Iterable[ConfPlan]) -> None:
        """Look at the tables of some confs; of two that have waited as long, one with a ``freshness`` comes first."""
        of = {plan.dag_id: plan for plan in plans if plan.tables and plan.schedule.is_on}
        raw = self.state.read_freshness()
        self._records = {dag_id: self._record(raw.get(dag_id), plan) for dag_id, plan in of.items()}
        tables = deque(_in_turn(of, self._records))

        def following() -> tuple[_Piece, Callable[[], object]] | None:
            if self._calls:
                piece = self._calls.popleft()
            elif tables and self.has_time():
                piece = self._look(of[tables.popleft()])
            else:
                return None
            return piece, piece[0]

        work = SideBySide(
            following, at_once=self.at_once, patience=self.patience, seconds_left=self.seconds_left, name="survey"
        )
        for ended in work.run():
            ended.key[1](ended.result, ended.seconds)
        self.unseen += tables
        self._keep()

    def _look(self, plan: ConfPlan) -> _Piece:
        """One table: what is to be done, and what follows from it."""

        def look() -> StartRanges:
            catalog = build_catalog(plan.settings.catalog.of_table(plan.table), os.environ, connect=self.connect)
            listing = catalog.list_partitions(plan.table)
            check_shape(plan.table, plan.spec.column, listing)
            return StartRanges.of_labels(listing.labels(plan.spec.column), plan.spec)

        def ended(result: Future[object] | None, seconds: float) -> None:
            if result is None and seconds < self.patience:  # it had no time: it is not the one that hangs
                self.unseen.append(plan.dag_id)
                return
            error = f"looking at it has not ended after {seconds:.0f} seconds" if result is None else _error_of(result)
            if result is None or error:
                self.trouble(f"how fresh {plan.table} is cannot be told: {error}")
                # or one that hangs would be among the first of every survey
                self._note(plan, replace(self._records[plan.dag_id], seen=self.now))
                return
            landed = result.result()
            assert isinstance(landed, StartRanges)
            self._seen(plan, landed)

        return look, ended

    def _seen(self, plan: ConfPlan, landed: StartRanges) -> None:
        interval, freshness = plan.spec.grid.interval, plan.settings.freshness
        found = judge_freshness(plan.schedule, landed, freshness=freshness, now=self.now)
        self.on_seen(plan, landed, found)
        record = self._records[plan.dag_id].after(found, interval=interval, freshness=freshness, now=self.now)
        self._note(plan, record)
        if freshness is not None and (news := record.news(found, interval=interval, freshness=freshness)):
            self._calls.append(self._call(plan, news[:MOST_CALLS], freshness))

    def _call(self, plan: ConfPlan, starts: tuple[Instant, ...], freshness: int) -> _Piece:
        """Tell of the late partitions of one conf, one after the other; the first that fails ends it."""
        under_way: list[LatePartition] = []

        def call() -> None:
            for start in starts:
                under_way[:] = [LatePartition.of(plan, start, freshness=freshness)]
                self.on_late(plan, under_way[0])
                record = self._records[plan.dag_id].with_told(start, interval=plan.spec.grid.interval)
                self._note(plan, record, keep=True)  # told is told, whatever becomes of this task

        def ended(result: Future[object] | None, seconds: float) -> None:
            if result is None:
                late = ", ".join(map(str, under_way))
                self.trouble(f"{late}, and its callback has not ended after {seconds:.0f} seconds")
            elif (error := result.exception()) is not None:  # somebody else's code
                self.trouble(f"{under_way[0]}, and its callback failed: {type(error).__name__}: {error}")

        return call, ended

    def _record(self, data: object, plan: ConfPlan) -> FreshnessRecord:
        try:
            return (
                FreshnessRecord.from_json(data, interval=plan.spec.grid.interval)
                if isinstance(data, dict)
                else FreshnessRecord()
            )
        except (ValueError, LookupError, TypeError, OverflowError):
            return FreshnessRecord()  # it begins anew, as if it had not been seen

    def _note(self, plan: ConfPlan, record: FreshnessRecord, *, keep: bool = False) -> None:
        with self._writing:
            self._records[plan.dag_id] = record
        if keep:
            self._keep()

    def _keep(self) -> None:
        with self._writing:
            self.state.keep_freshness({dag_id: record.to_json() for dag_id, record in self._records.items()})


def _error_of(result: Future[object]) -> str:
    """Why a look failed, in one sentence; empty when it did not."""
    error = result.exception()
    if error is None:
        return ""
    return str(error) if isinstance(error, ChrononError) else f"{type(error).__name__}: {error}"


def _in_turn(of: Mapping[str, ConfPlan], records: Mapping[str, FreshnessRecord]) -> list[str]:
    """The confs in the order of their looks: those with a freshness and the others take turns, the longest unseen of each first,
    so that neither kind keeps the other from being seen."""
    order = sorted(of, key=lambda dag_id: (records[dag_id].seen, dag_id))
    urgent = [dag_id for dag_id in order if of[dag_id].settings.freshness is not None]
    others = [dag_id for dag_id in order if of[dag_id].settings.freshness is None]
    return [dag_id for dag_id in chain.from_iterable(zip_longest(urgent, others)) if dag_id is not None]
