"""Builds the plan of a reconcile: a pure function from facts to actions.

Each DAG id is decided alone, from its record and its plan: deployed, kept as it is since its conf is bad, or retired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, get_args

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.plan import Plan as ConfOrJob
from airflow_chronon.core.plan.actions import (
    Action,
    Archive,
    Deploy,
    Drain,
    EndStranded,
    Hold,
    Keep,
    ParseSoon,
    Plan,
    Record,
    RememberBad,
    Replay,
    Report,
    Restore,
    RetireStep,
    SetAside,
    Severity,
    Unpause,
    WritesRecord,
)
from airflow_chronon.core.plan.facts import Facts
from airflow_chronon.core.plan.findings import findings
from airflow_chronon.core.plan.mass_retirement import held_back
from airflow_chronon.core.plan.retirement import OrphanedDag, retire_steps
from airflow_chronon.core.records.history import record_after, switched_off
from airflow_chronon.core.records.manifest import manifest_of, settings_of_manifest
from airflow_chronon.core.records.pending import pending_ranges
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.core.settings.model import ConfSettings, OnRetire, Pause
from airflow_chronon.errors import Fault

#: What is remembered comes before what is done about it, and all of it before anything is retired.
_STAGES = (
    (Keep, SetAside, *get_args(WritesRecord)),
    (Unpause, EndStranded),
    (Hold, *get_args(RetireStep)),
    (Replay,),
    (ParseSoon,),
    (RememberBad,),
    (Report,),
)


class Confirmation(Enum):
    """Whether someone said that a mass retirement is meant."""

    NONE = "none"
    MASS_RETIRE = "mass retire"


def build_plan(facts: Facts, *, confirmation: Confirmation = Confirmation.NONE, now: Instant) -> Plan:
    """What a reconcile would do now.

    It touches only DAGs of its own branch and bundle (C24), never retires a conf that is present, good or not (C23),
    and retires nothing while the tree looks damaged. Applied again and again it converges, whatever interrupts it.
    """
    is_confirmed = confirmation is Confirmation.MASS_RETIRE
    hold = held_back(facts, is_confirmed=is_confirmed)
    planner = _Planner(facts, frozenset(() if hold is None else hold.dag_ids), is_confirmed, now)
    actions: list[Action] = [] if hold is None else [hold]
    for dag_id in facts.dag_ids:
        actions += planner.actions(dag_id)
    actions += _parses(facts, actions)
    actions += _reports(facts, now=now)
    return Plan(tuple(sorted(actions, key=_stage)))


def _parses(facts: Facts, actions: Iterable[Action]) -> list[ParseSoon | RememberBad]:
    """The loader files that would produce something else now: one DAG of each names it. Which of them a new conf belongs to is
    known to the files alone."""
    bad = facts.tree.bad_digest
    remembered = [] if bad == facts.state.bad_digest or facts.deployment.given_up else [RememberBad(bad)]
    if not remembered and not any(_changes_dags(action, facts) for action in actions):
        return []
    live = {dag_id: dag for dag_id in facts.airflow.dags if (dag := facts.dag(dag_id)) is not None}
    by_file = {dag.file: dag_id for dag_id, dag in sorted(live.items(), reverse=True) if dag.file is not None}
    return [*(ParseSoon(dag_id, file) for file, dag_id in sorted(by_file.items())), *remembered]


def _changes_dags(action: Action, facts: Facts) -> bool:
    """Whether a loader file makes something else of what an action leaves in the tree or in the state."""
    if isinstance(action, Record):  # how far a replay has come changes no DAG
        known = facts.record(action.dag_id)
        return known is None or replace(known, pending=action.record.pending) != action.record
    return isinstance(action, Deploy | Restore | Drain | Archive)


def _reports(facts: Facts, *, now: Instant) -> list[Report]:
    """What else should be known; that it cannot be worked out must not keep anything from being done."""
    try:
        return list(findings(facts.deployment, facts.tree, facts.airflow, facts.state, now=now))
    except Exception as error:
        return [_unforeseen(error, "the findings cannot be worked out")]


def _unforeseen(error: Exception, problem: str, dag_id: str = "") -> Report:
    fault = Fault("input", "", f"{problem}: {type(error).__name__}: {error}", "report this with the conf")
    return Report(Severity.ERROR, fault, dag_id)


def _stage(action: Action) -> int:
    return next(number for number, kinds in enumerate(_STAGES) if isinstance(action, kinds))


@dataclass(frozen=True)
class _Planner:
    facts: Facts
    held: frozenset[str]  #: what is not retired, since the tree looks damaged
    is_confirmed: bool
    now: Instant
    dumps: dict[int, dict[str, Any]] = field(default_factory=dict)  #: most confs share the deployment's settings

    def actions(self, dag_id: str) -> list[Action]:
        """What is to be done about one DAG; what nobody foresaw in it must not cost the others."""
        try:
            return list(self._decide(dag_id))
        except Exception as error:
            return [_unforeseen(error, "it cannot be planned", dag_id)]

    def _decide(self, dag_id: str) -> Iterator[Action]:
        facts = self.facts
        plan, record = facts.tree.plans.get(dag_id), facts.record(dag_id)
        is_present = plan is not None or facts.tree.holds(dag_id, record)
        if dag_id in facts.state.damaged:
            yield Report(Severity.ERROR, facts.state.damaged[dag_id], dag_id)
            if plan is not None or not (is_present or dag_id in self.held):
                yield SetAside(dag_id)
        if stranded := facts.airflow.stranded.get(dag_id):
            yield EndStranded(dag_id, stranded)
        if plan is not None:
            yield from self._deploy(plan, record)
        elif is_present:
            yield from self._keep_bad(dag_id, record)
        elif dag_id not in self.held:
            yield from self._retire(dag_id, record)

    def _deploy(self, plan: ConfOrJob, known: DeploymentRecord | None) -> Iterator[Action]:
        dag_id, dag = plan.dag_id, self.facts.dag(plan.dag_id)
        # by the record where Airflow does not have the DAG now
        is_paused = dag.is_paused if dag is not None else known is not None and known.is_paused
        is_paused_job = is_paused and not plan.has_partitions
        manifest, grid = manifest_of(plan, dumps=self.dumps), self.facts.airflow.contracts.get(dag_id)
        if plan.spec is not None and grid not in (None, plan.spec.contract):
            # a changed grid is not a new revision: every run of it fails, and the grid of the table goes on to hold (C22)
            record = replace(known or DeploymentRecord(dag_id, None, self.now), manifest=manifest, retirement=None)
        else:
            last_fire = self.facts.airflow.last_fires.get(dag_id)
            record = record_after(plan, manifest, known, now=self.now, is_paused=is_paused_job, last_fire=last_fire)
        record, replays = self._replays(plan, record)
        yield _written(known, record)
        yield from self._unpause(dag_id, plan.settings)
        yield from replays

    def _keep_bad(self, dag_id: str, known: DeploymentRecord | None) -> Iterator[Action]:
        """A conf that is in the tree and cannot run: what it had stays, off (C23)."""
        if known is None:
            return
        record = replace(switched_off(known, now=self.now), retirement=None)
        if record != known:
            yield _written(known, record)
        if known.manifest is not None:  # while it is paused its last runs cannot end
            yield from self._unpause(dag_id, settings_of_manifest(known.manifest, self.facts.settings))

    def _unpause(self, dag_id: str, settings: ConfSettings) -> Iterator[Action]:
        dag = self.facts.dag(dag_id)
        if dag is None or not dag.is_paused:
            return
        if settings.pause is Pause.ALLOW:
            problem, remedy = "it is paused, and its settings allow that", "unpause it in Airflow when it shall go on"
            yield Report(Severity.NOTE, Fault("C25", "", problem, remedy), dag_id)
        else:
            yield Unpause(dag_id, "it was paused by hand; to stop it, set enabled: false, or pause: allow (C25)")

    def _replays(self, plan: ConfOrJob, record: DeploymentRecord) -> tuple[DeploymentRecord, list[Action]]:
        """The next replays of what is pending; Airflow takes one backfill of a DAG at a time."""
        dag_id, schedule, airflow = plan.dag_id, plan.schedule, self.facts.airflow
        dag, past = self.facts.dag(dag_id), airflow.past_runs.get(dag_id)
        if record.pending is None or schedule is None or dag is None or past is None:
            return record, []
        if dag.is_paused and plan.settings.pause is Pause.ALLOW:
            return record, []  # a replay would wait for ever; it stays pending until someone unpauses the DAG
        as_fired = record.seen(schedule, active_since=self.now)  # as its timetable has it
        pending, ranges = pending_ranges(record.pending, as_fired, past)
        since = record.pending.until if record.pending.forgets else None
        steps: list[Action] = []
        backfills = 1 if dag_id in airflow.backfilling else 0
        for each in ranges:
            backfills += len(each.labels) > 1
            if len(each.labels) == 1 or backfills == 1:
                steps.append(Replay(dag_id, each, plan.settings.max_active_runs, since))
        return replace(record, pending=pending), steps

    def _retire(self, dag_id: str, record: DeploymentRecord | None) -> Iterator[Action]:
        deployment, airflow, settings = self.facts.deployment, self.facts.airflow, self.facts.settings
        dag, active = airflow.dags.get(dag_id), airflow.active_runs.get(dag_id, 0)
        is_taken_over = dag is not None and not deployment.owns(dag)
        if is_taken_over:
            dag = None  # only our own memory of it goes
        manifest = None if record is None else record.manifest
        own = settings.for_conf("", ()) if manifest is None else settings_of_manifest(manifest, settings)
        if dag is not None and dag.is_paused and dag.fires_no_more and active:
            yield Unpause(dag_id, "its conf is gone, and its last runs cannot end while it is paused")
        yield from retire_steps(
            OrphanedDag(
                dag_id=dag_id,
                why=self._why(record),
                dag=dag,
                record=record,
                active_runs=active,
                idle_runs=airflow.idle_runs.get(dag_id, 0),
                stops=own.on_retire is OnRetire.STOP or deployment.given_up,
                confirmed=self.is_confirmed,
                given_up=deployment.given_up,
                is_taken_over=is_taken_over,
            )
        )

    def _why(self, record: DeploymentRecord | None) -> str:
        if record is None or record.manifest is None:
            return "no conf of the tree stands for it"
        family = record.manifest.family
        successors = sorted(each for each, plan in self.facts.tree.plans.items() if plan.family == family)
        if successors:
            return f"{record.key} was superseded by {' and '.join(successors)}"
        return f"{record.key} is gone from the tree ({record.file})"


def _written(known: DeploymentRecord | None, record: DeploymentRecord) -> Action:
    """How a record gets from what is known to what is to be remembered."""
    dag_id = record.dag_id
    before, after = None if known is None else known.manifest, record.manifest
    if known is not None and known.retirement is not None:
        return Restore(dag_id, record)
    if after is not None and (before is None or before.digest != after.digest):
        return Deploy(dag_id, record, is_new=before is None)
    assert known is not None
    if replace(record, manifest=before) == known:
        return Keep(dag_id)
    return Record(dag_id, record, _what_changed(known, record))


def _what_changed(known: DeploymentRecord, record: DeploymentRecord) -> str:
    """What is to be remembered of a conf whose manifest has not changed."""
    if record.pending != known.pending:
        return "what is left of its replay"
    if record.now is not None and record.now.is_broken:
        return "its conf is bad, so it fires no more"
    if known.now is None or known.now.is_broken:
        return "its conf is good again"
    return "it was paused by hand" if record.is_paused else "it is not paused any more"
