"""What catalogs, records and Airflow say of the partitions of a conf root, asked once each: for ``partitions``, ``why``, ``backfill``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median

from airflow_chronon.airflow_api.coverage import known_runs, with_lagging, with_skipped
from airflow_chronon.airflow_api.errors import AirflowError, NoRights
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import DagRecord, TaskRecord
from airflow_chronon.airflow_api.replay import kept_grid
from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.cli.intervals import AskedIntervals
from airflow_chronon.cli.landed import Landings
from airflow_chronon.cli.output import tell
from airflow_chronon.cli.staleness import find_staleness
from airflow_chronon.cli.target import Target
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.plan import Plan, Verdict
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.confs.tree import ConfTree
from airflow_chronon.core.partitions.listing import TableListing
from airflow_chronon.core.records.history import is_active, seen_plan
from airflow_chronon.core.runs.skip_reasons import Reason, Skip
from airflow_chronon.core.runs.stale import Staleness
from airflow_chronon.core.runs.states import Known, KnownRun, done_labels, newest_runs
from airflow_chronon.core.runs.why import PartitionFact, TableConf, TaskFact, Unmet
from airflow_chronon.core.runs.write_order import BUSY_STATES
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.core.waits.poll import Observation, judge, observe, query_of
from airflow_chronon.core.waits.readiness import missing_labels
from airflow_chronon.core.waits.said import SAID_ASSET, Said, words_of
from airflow_chronon.errors import ChrononError
from airflow_chronon.state.folder import StateFolder

_LOG_LINES = 5  #: shown of the log of a task that failed
_USUAL_OF = 20  #: tasks of which a usual duration is the median


@dataclass
class PartitionFacts:
    """What is known of the partitions of a conf root as of one moment; each thing is asked once.

    Without a server only catalogs and records tell. It answers :class:`airflow_chronon.core.runs.why.WhyFacts`.
    """

    target: Target
    state: StateFolder
    server: AirflowServer | None
    now: Instant
    landings: Landings = field(default_factory=Landings)
    is_strict: bool = False  #: what Airflow refuses to tell is an error, and not merely left out
    _observations: dict[tuple[str, object], Observation] = field(default_factory=dict)
    _tasks: dict[tuple[str, str], tuple[TaskRecord, ...]] = field(default_factory=dict)
    _usual: dict[tuple[str, str], int | None] = field(default_factory=dict)
    _dags: dict[str, DagRecord | None] = field(default_factory=dict)

    def known(self, asked: AskedIntervals, *, table: str | None = None) -> Known:
        """What catalogs, Airflow and the record say of some intervals of a plan."""
        plan = asked.plan
        record = self.state.read_record(plan.dag_id)
        seen = None if record is None or plan.has_partitions else record.first_seen
        known = Known(
            self.landings(plan, table) if table else self.landings.of_plan(plan),
            revisions=record.seen_revisions if record is not None else (),
            is_active=record is not None or is_active(self._planned(plan), record),
            first_seen=seen,
            good=asked.good,
            freshness=plan.settings.freshness,
        )
        if self.server is None:
            return known
        known = self._with_airflow(known, self.server, asked)
        return replace(known, staleness=self._staleness(self.server, asked)) if table in (None, plan.table) else known

    def _with_airflow(self, known: Known, server: AirflowServer, asked: AskedIntervals) -> Known:
        """What Airflow adds: runs, which alone tell what of a job is done, and the grid of a table's first write."""
        plan, schedule, runs = asked.plan, asked.plan.need_schedule(), list[KnownRun]()
        if self.dag(plan) is not None:
            runs = asked.runs(server)
            runs += known_runs(server.newest_scheduled(plan.dag_id), schedule, now=asked.now)
            runs = with_skipped(runs, server, plan.dag_id) if plan.has_partitions else runs
            runs = self._with_lagging(runs, server, plan)
        landed = known.landed if plan.has_partitions else done_labels(schedule, runs)
        halted = _halted(self.dag(plan))
        known = replace(known, runs=runs, landed=landed, kept_grid=kept_grid(server, plan), halted=halted)
        known = replace(known, absent=self._absent(server, plan))
        return replace(known, landed_inputs=self._landed_inputs(plan, runs))

    def _absent(self, server: AirflowServer, plan: Plan) -> Mapping[str, str]:
        """Which partitions of its table are absent on purpose, and who said so."""
        if not plan.tables:
            return {}
        words = words_of(server.asset_states(SAID_ASSET), plan.tables[0])
        said = {label: word for label, word in words.items() if word.said is Said.NEVER}
        return {label: f"as {word.by or 'somebody'} said at {word.at}" for label, word in said.items()}

    def _landed_inputs(self, plan: Plan, runs: Sequence[KnownRun]) -> Mapping[str, frozenset[str]]:
        """What is there by now of the tables of which runs went without something; a table that does not answer is left out."""
        found: dict[str, frozenset[str]] = {}
        if not isinstance(plan, ConfPlan):
            return found
        for run in runs:
            tables = {lag.table for lag in run.lagging} - set(found)
            one = plan.schedule.partition(run.window.start)
            for wait in plan.mode_waits(plan.schedule.main_mode, one) if tables else ():
                if wait.table in tables and wait.spec is not None:
                    listing = self._observed(plan, wait).answers.get(query_of(wait))
                    if isinstance(listing, TableListing):
                        found[wait.table] = frozenset(listing.labels(wait.column, wait.sub))
        return found

    def _with_lagging(self, runs: list[KnownRun], server: AirflowServer, plan: Plan) -> list[KnownRun]:
        """What the runs went without (``max_lag``), where the conf lets them."""
        if not isinstance(plan, ConfPlan) or not plan.may_lag:
            return runs
        try:
            return with_lagging(runs, server, plan.dag_id)
        except NoRights as error:  # the rest is worth telling
            if self.is_strict:
                raise
            tell(f"what the runs went without (max_lag) is not known: {error}")
            return runs

    def _staleness(self, server: AirflowServer, asked: AskedIntervals) -> Staleness | None:
        """What tells which of the partitions are stale; None where nothing of a conf ran, or nobody may tell."""
        plan = asked.plan
        if not isinstance(plan, ConfPlan) or self.dag(plan) is None:
            return None
        try:
            return find_staleness(server, plan, asked.window, now=asked.now)
        except AirflowError as error:  # the rest is worth telling
            if self.is_strict:
                raise
            tell(f"what of {plan.key} is stale is not known: {error}")
            return None

    def _planned(self, plan: Plan) -> Plan:
        """The plan as its file has it: that of what is asked has the schedule of its timetable, which may not be on yet."""
        verdict = self.target.verdicts.get(plan.key)
        return plan if verdict is None or verdict.plan is None else verdict.plan

    def dag(self, plan: Plan) -> DagRecord | None:
        """Its DAG in Airflow."""
        if self.server is None:
            return None
        if plan.dag_id not in self._dags:
            self._dags[plan.dag_id] = self.server.dag(plan.dag_id)
        return self._dags[plan.dag_id]

    def seen(self, plan: Plan) -> Plan:
        """The plan with the schedule that its timetable has."""
        return seen_plan(plan, self.state.read_record(plan.dag_id))

    # what ``why`` asks

    def partitions(self, plan: Plan, table: str, starts: Sequence[Instant]) -> Sequence[PartitionFact]:
        schedule = plan.need_schedule()
        asked = AskedIntervals(plan, TimeWindow(min(starts), schedule.end_of(max(starts))), self.now)
        known = self.known(asked, table=table or None)
        runs = newest_runs(schedule, known.runs or ())
        wanted = set(starts)
        return [PartitionFact(row, runs.get(row.start)) for row in asked.rows(known) if row.start in wanted]

    def writers(self, reader: ConfPlan, table: str) -> Sequence[TableConf]:
        confs = self._tree.producers.writers(table)
        ids = [writer.dag_id for writer in reader.writers.get(table, ())]
        return [
            TableConf(dag_id, self._verdict(str(conf.key), dag_id))
            for conf, dag_id in zip(confs, ids, strict=False)  # the same confs, in the same order
        ]

    def unmet(self, reader: ConfPlan, wait: Wait) -> Unmet | None:
        observation = self._observed(reader, wait)
        if observation.trouble:
            return Unmet(text=observation.trouble, is_unreadable=True)
        try:
            verdict = judge((wait,), observation)
        except ChrononError as error:
            return Unmet(text=str(error), is_unreadable=True)
        if verdict.satisfied:
            return None
        listing = observation.answers[query_of(wait)]
        if wait.spec is None or not isinstance(listing, TableListing):
            return Unmet(text=verdict.reason)
        return Unmet(tuple(missing_labels(wait, listing)), _newest(listing, wait), verdict.reason)

    def halted(self, plan: Plan) -> str:
        if self.server is None:
            return ""
        found = _halted(self.dag(plan))
        return "" if found is None else str(found)

    def tasks(self, plan: Plan, run_id: str) -> Sequence[TaskFact]:
        return tuple(map(_fact, self._task_records(plan, run_id)))

    def others_at_work(self, plan: Plan, task_id: str, run_id: str) -> Sequence[str]:
        if self.server is None:
            return ()
        busy = self.server.tasks(plan.dag_id, task_id=task_id, states=BUSY_STATES)
        begun = [task for task in busy if task.start is not None and task.run_id != run_id]
        return [task.run_id for task in sorted(begun, key=lambda task: (task.start or 0, task.run_id))]

    def active_runs(self, plan: Plan) -> Sequence[str]:
        if self.server is None:
            return ()
        return [run.run_id for run in self.server.runs(plan.dag_id, states=("running",))]

    def log(self, plan: Plan, run_id: str, task: TaskFact) -> tuple[str, ...]:
        record = next((each for each in self._task_records(plan, run_id) if each.task_id == task.task_id), None)
        if self.server is None or record is None:
            return ()
        try:
            lines = self.server.log_lines(record)
        except AirflowError as error:  # logs may be gone, too long, or not for this user: the rest is worth telling
            return (f"its log cannot be read: {error}",)
        return tuple(line for line in lines if line.strip())[-_LOG_LINES:]

    def usual_seconds(self, plan: Plan, task_id: str) -> int | None:
        if self.server is None or self.dag(plan) is None:
            return None
        at = (plan.dag_id, task_id)
        if at not in self._usual:
            done = self.server.newest_tasks(plan.dag_id, task_id=task_id, states=("success",), limit=_USUAL_OF)
            spans = [task.end - task.start for task in done if task.start is not None and task.end is not None]
            self._usual[at] = round(median(spans)) if spans else None
        return self._usual[at]

    # behind it

    @cached_property
    def _tree(self) -> ConfTree:
        root = self.target.root
        return ConfTree(root.confs, environment=root.settings.environment)

    @cached_property
    def _whole(self) -> Mapping[str, Verdict]:
        """The verdicts on all confs, those too that the branch leaves to the default branch (C24)."""
        return self.target.root.whole.judge()

    def _verdict(self, key: str, dag_id: str) -> Verdict:
        found = self.target.verdicts.get(key) or self._whole[key]
        plan = found.plan
        if plan is None:
            return found
        plan = self.seen(plan)
        return replace(plan, dag_id=dag_id)  # the default branch's DAG writes what this branch leaves to it

    def _observed(self, reader: ConfPlan, wait: Wait) -> Observation:
        query = query_of(wait)
        if (wait.table, query) not in self._observations:
            catalog = build_catalog(reader.settings.catalog.of_table(wait.table), os.environ)
            self._observations[wait.table, query] = observe(catalog, wait.table, (query,))
        return self._observations[wait.table, query]

    def _task_records(self, plan: Plan, run_id: str) -> tuple[TaskRecord, ...]:
        if self.server is None:
            return ()
        at = (plan.dag_id, run_id)
        if at not in self._tasks:
            self._tasks[at] = self.server.tasks(plan.dag_id, run_id)
        return self._tasks[at]


def _halted(dag: DagRecord | None) -> Reason | None:
    """Why nothing fires by itself now, so that nothing is called due that no run will come for (H20)."""
    if dag is None or dag.is_stale:
        return Reason(Skip.NO_DAG, "no loader file produces it now")
    return Reason(Skip.PAUSED, "in Airflow, now") if dag.is_paused else None


def _newest(listing: TableListing, wait: Wait) -> str:
    """The newest landed label; empty when there is none."""
    assert wait.spec is not None
    starts: dict[Instant, str] = {}
    for label in listing.labels(wait.column, wait.sub):
        try:
            starts[wait.spec.format.decode(label)] = label
        except ChrononError:
            continue
    return starts[max(starts)] if starts else ""


def _fact(task: TaskRecord) -> TaskFact:
    start, end = (None if each is None else int(each) for each in (task.start, task.end))
    return TaskFact(task.task_id, task.state, task.try_number, start, end)
