"""Applying a plan: every action once, in order, each of them safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import get_args

from airflow_chronon.airflow_api.coverage import has_begun_work
from airflow_chronon.airflow_api.errors import AirflowRefused, Conflict, LoginFailed, NotThere
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import ACTIVE_RUN_STATES, BackfillRequest, DagRecord, Reprocess
from airflow_chronon.airflow_api.replay import end_stranded, noted
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.labels import in_run_id
from airflow_chronon.core.plan.actions import (
    Action,
    Archive,
    Delete,
    Drain,
    EndStranded,
    Forget,
    Hold,
    Keep,
    ParseSoon,
    Plan,
    RememberBad,
    Replay,
    Report,
    RetireStep,
    SetAside,
    StopIdleRuns,
    StopRuns,
    Unpause,
    WritesRecord,
)
from airflow_chronon.core.plan.facts import Deployment, KnownDag
from airflow_chronon.core.records.pending import WHY_PENDING
from airflow_chronon.core.records.record import DeploymentRecord, Retirement
from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.reconcile.archive import history_of, is_archived, write_history
from airflow_chronon.reconcile.gather import broken_dags
from airflow_chronon.state.folder import StateFolder

_RETIRE_STEPS = get_args(RetireStep)


class LeftForNextTime(ChrononError):
    """A step cannot be done now; nothing is wrong, and the next reconcile tries again."""

    def __init__(self, dag_id: str, problem: str, *, rule: str = "C23") -> None:
        super().__init__(Fault(rule, "", problem, "the next reconcile tries again"), conf=dag_id)


class Unforeseen(ChrononError):
    """A step failed with an exception that nobody foresaw."""


@dataclass(frozen=True)
class Outcome:
    """What came of a plan."""

    done: tuple[Action, ...] = ()
    left: tuple[tuple[Action, ChrononError], ...] = ()  #: for the next time; nothing is wrong
    failed: tuple[tuple[Action, ChrononError], ...] = ()
    skipped: tuple[Action, ...] = ()  #: not tried, since something before them failed or was left


@dataclass
class _Applier:
    server: AirflowServer
    state: StateFolder
    deployment: Deployment
    by: str
    now: Instant
    blocked: set[str] = field(default_factory=set)  #: DAGs of which a step was left: their later steps have to wait

    def steps(self) -> dict[type, Callable[..., None]]:
        return {
            **dict.fromkeys(get_args(WritesRecord), lambda action: self.state.write_record(action.record)),
            SetAside: lambda action: self.state.set_aside(action.dag_id),
            Unpause: lambda action: self.server.set_paused(action.dag_id, paused=False),
            EndStranded: self.end_stranded,
            RememberBad: lambda action: self.state.keep_bad(action.digest),
            ParseSoon: lambda action: self.server.parse_soon(action.dag_id),
            Replay: self.replay,
            Drain: self.drain,
            StopIdleRuns: self.stop_idle_runs,
            StopRuns: self.stop_runs,
            Archive: self.archive,
            Delete: self.delete,
            Forget: lambda action: self.state.remove_record(action.dag_id),
        }

    def drain(self, action: Drain) -> None:
        known = self.state.read_record(action.dag_id)
        record = DeploymentRecord(action.dag_id, None, self.now) if known is None else known
        retirement = record.retirement or Retirement(self.now, action.why, self.by)
        retirement = replace(retirement, confirmed=action.confirmed)
        self.state.write_record(replace(record, pending=None, retirement=retirement))

    def end_stranded(self, action: EndStranded) -> None:
        for run_id in action.run_ids:
            run = self.server.run(action.dag_id, run_id)
            if run.state == "queued":
                end_stranded(self.server, run, by=self.by)

    def stop_runs(self, action: StopRuns) -> None:
        note = f"Stopped by {self.by}: the conf of this DAG is gone, and {action.why}."
        for run in self.server.runs(action.dag_id, states=ACTIVE_RUN_STATES):
            self.server.patch_run(action.dag_id, run.run_id, state="failed", note=noted(run, note))

    def stop_idle_runs(self, action: StopIdleRuns) -> None:
        """Each is looked at again: its work may have begun since."""
        note = f"Stopped by {self.by}: the conf of this DAG is gone, and this run had begun no work."
        for run in self.server.runs(action.dag_id, states=ACTIVE_RUN_STATES):
            if not has_begun_work(self.server, run):
                self.server.patch_run(action.dag_id, run.run_id, state="failed", note=noted(run, note))

    def archive(self, action: Archive) -> None:
        record, retirement = self._retiring(action.dag_id)
        history = history_of(self.server, action.dag_id)
        if any(run.is_active for run in history.runs):
            raise LeftForNextTime(action.dag_id, "a run has begun since the plan was made")
        name = write_history(self.state, record, history, now=self.now)
        self.state.write_record(replace(record, retirement=replace(retirement, archive=name)))

    def delete(self, action: Delete) -> None:
        """Look again at everything that a delete would destroy, since this is the one step that cannot be undone."""
        dag_id = action.dag_id
        dag = self.server.dag(dag_id)
        if dag is not None:
            self._delete_dag(dag)
        self.state.remove_record(dag_id)

    def _delete_dag(self, dag: DagRecord) -> None:
        dag_id, known = dag.dag_id, KnownDag(dag.dag_id, dag.tags, dag.bundle)
        if not dag.is_stale or broken_dags((dag,), self.server) or not self.deployment.owns(known):
            raise LeftForNextTime(dag_id, "a file produces it again, or is broken")
        history = history_of(self.server, dag_id)
        if history.is_active:
            raise LeftForNextTime(dag_id, "a run has begun since the plan was made")
        if not is_archived(self.state, self._retiring(dag_id)[1], history):
            self.archive(Archive(dag_id))
        try:
            self.server.delete_dag(dag_id)
        except NotThere:
            return
        except Conflict as error:
            raise LeftForNextTime(dag_id, f"Airflow does not delete it yet: {error.detail}") from error

    def replay(self, action: Replay) -> None:
        label_range, dag_id = action.label_range, action.dag_id
        note = f"Replayed by the reconciler: {WHY_PENDING} (H13)."
        try:
            if len(label_range.labels) == 1:
                # a name of its own: asked twice, Airflow refuses the second
                key, again = label_range.labels[0], "" if action.since is None else f"_{action.since}"
                run_id = f"manual__{in_run_id(key)}__pending{again}"
                self.server.trigger(dag_id, partition_key=key, note=note, run_id=run_id)
                return
            request = BackfillRequest(
                dag_id,
                label_range.first,
                label_range.last,
                Reprocess.NONE if action.since is None else Reprocess.COMPLETED,
                action.max_active_runs,
            )
            planned = self.server.plan_backfill(request)
            if set(planned) != set(label_range.labels):
                problem = f"Airflow would replay {len(planned)} partitions instead of {len(label_range.labels)}"
                raise LeftForNextTime(dag_id, problem, rule="H13")
            self.server.create_backfill(request)
        except Conflict as error:
            raise LeftForNextTime(dag_id, error.detail, rule="H13") from error

    def _retiring(self, dag_id: str) -> tuple[DeploymentRecord, Retirement]:
        record = self.state.read_record(dag_id)
        if record is None or record.retirement is None:
            raise LeftForNextTime(dag_id, "its record says nothing of a retirement: someone ended it")
        return record, record.retirement


def apply_plan(
    plan: Plan,
    *,
    server: AirflowServer,
    state: StateFolder,
    deployment: Deployment,
    by: str,
    now: Instant,
) -> Outcome:
    """Do what the plan says; ``by`` is who does it, for records, notes and archives.

    A failed step stops further retiring. What Airflow refuses for the moment, such as a delete while a task still runs,
    is left for the next time. Killed anywhere, the next plan goes on from what is there.
    """
    applier = _Applier(server, state, deployment, by, now)
    steps = applier.steps()
    done: list[Action] = []
    left: list[tuple[Action, ChrononError]] = []
    failed: list[tuple[Action, ChrononError]] = []
    skipped: list[Action] = []
    for action in plan.actions:
        step = steps.get(type(action))
        if step is None:
            continue  # kept, waited for, held or reported: nothing to do
        is_retiring = isinstance(action, _RETIRE_STEPS)
        if is_retiring and (failed or _subject(action) in applier.blocked):
            skipped.append(action)
            continue
        try:
            step(action)
            done.append(action)
        except LeftForNextTime as error:
            left.append((action, error))
            applier.blocked.add(error.conf)
        except Exception as raised:  # what nobody foresaw in one step must not hide what became of the others
            problem = raised if isinstance(raised, ChrononError) else _unforeseen(raised, _subject(action))
            failed.append((action, problem))
            applier.blocked.add(_subject(action))
            if _is_hopeless(problem):
                skipped += _after(plan.actions, action)
                break
    return Outcome(tuple(done), tuple(left), tuple(failed), tuple(skipped))


def _unforeseen(error: Exception, dag_id: str) -> Unforeseen:
    problem = f"it cannot be done: {type(error).__name__}: {error}"
    return Unforeseen(Fault("input", "", problem, "report this with the plan"), conf=dag_id)


def _subject(action: Action) -> str:
    return str(getattr(action, "dag_id", ""))


def _is_hopeless(error: ChrononError) -> bool:
    """Whether everything after it would fail likewise: no state folder, or no Airflow."""
    concerns_one_step = isinstance(error, AirflowRefused | Unforeseen) and not isinstance(error, LoginFailed)
    return not concerns_one_step


def _after(actions: Iterable[Action], last: Action) -> list[Action]:
    found = list(actions)
    return [action for action in found[found.index(last) + 1 :] if not isinstance(action, Keep | Report | Hold)]
