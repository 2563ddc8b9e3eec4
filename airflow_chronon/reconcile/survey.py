"""A look at the tables of a deployment: how fresh each is, and which partitions are late that nobody was told of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.core.calendar.instants import Instant, iso
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.freshness import Freshness, FreshnessRecord, judge_freshness
from airflow_chronon.core.waits.readiness import check_shape
from airflow_chronon.errors import ChrononError
from airflow_chronon.state.folder import StateFolder

MOST_CALLS = 100  #: of one conf and survey; the rest comes with the next


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
    """One look at tables, the longest unseen first, for as long as there is time.

    ``on_seen`` hears of each table, ``on_late`` of each late partition once: one over which it raises is told again. ``trouble``
    hears of a table that its catalog does not tell of, and of a call that failed.
    """

    state: StateFolder
    now: Instant
    on_seen: Callable[[ConfPlan, StartRanges, Freshness], None]
    on_late: Callable[[ConfPlan, LatePartition], None]
    trouble: Callable[[str], None]
    has_time: Callable[[], bool] = lambda: True
    unseen: list[str] = field(default_factory=list)  #: the confs that there was no time for

    def run(self, plans: Iterable[ConfPlan]) -> None:
        """Look at the tables of some confs; those with a ``freshness`` come first."""
        of = {plan.dag_id: plan for plan in plans if plan.tables and plan.schedule.is_on}
        raw = self.state.read_freshness()
        records = {dag_id: self._record(raw.get(dag_id), plan) for dag_id, plan in of.items()}
        order = sorted(of, key=lambda dag_id: (of[dag_id].settings.freshness is None, records[dag_id].seen, dag_id))
        for place, dag_id in enumerate(order):
            if not self.has_time():
                self.unseen += order[place:]
                break
            for record in self._look(of[dag_id], records[dag_id]):
                records[dag_id] = record
                if record.told.ranges:  # told is told, whatever becomes of this task
                    self._keep(records)
        self._keep(records)

    def _look(self, plan: ConfPlan, record: FreshnessRecord) -> Iterator[FreshnessRecord]:
        """The record after each step."""
        interval, freshness = plan.spec.grid.interval, plan.settings.freshness
        try:
            listing = build_catalog(plan.settings.catalog.of_table(plan.table), os.environ).list_partitions(plan.table)
            check_shape(plan.table, plan.spec.column, listing)
            landed = StartRanges.of_labels(listing.labels(plan.spec.column), plan.spec)
        except ChrononError as error:
            self.trouble(f"how fresh {plan.table} is cannot be told: {error}")
            yield replace(
                record, seen=self.now
            )  # or one that hangs would be the first of every survey, and the only one
            return
        found = judge_freshness(plan.schedule, landed, freshness=freshness, now=self.now)
        self.on_seen(plan, landed, found)
        record = record.after(found, interval=interval, freshness=freshness, now=self.now)
        yield record
        if freshness is None:
            return
        for start in record.news(found, interval=interval, freshness=freshness)[:MOST_CALLS]:
            late = LatePartition.of(plan, start, freshness=freshness)
            try:
                self.on_late(plan, late)
            except Exception as error:  # somebody else's code
                self.trouble(f"{late}, and its callback failed: {type(error).__name__}: {error}")
                return
            record = record.with_told(start, interval=interval)
            yield record

    def _record(self, data: object, plan: ConfPlan) -> FreshnessRecord:
        try:
            return (
                FreshnessRecord.from_json(data, interval=plan.spec.grid.interval)
                if isinstance(data, dict)
                else FreshnessRecord()
            )
        except (ValueError, LookupError, TypeError, OverflowError):
            return FreshnessRecord()  # it begins anew, as if it had not been seen

    def _keep(self, records: dict[str, FreshnessRecord]) -> None:
        self.state.keep_freshness({dag_id: record.to_json() for dag_id, record in records.items()})
