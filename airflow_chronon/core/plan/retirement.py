"""How one DAG is retired: drained, archived, deleted, one safe step after the other (C23)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_chronon.core.plan.actions import (
    Archive,
    Delete,
    Drain,
    Forget,
    RetireStep,
    StopIdleRuns,
    StopRuns,
    Wait,
    WaitForRuns,
)
from airflow_chronon.core.plan.facts import KnownDag
from airflow_chronon.core.records.record import DeploymentRecord


@dataclass(frozen=True)
class OrphanedDag:
    """A DAG of which no conf is left, and how far its retirement has come."""

    dag_id: str
    why: str
    dag: KnownDag | None  #: None: Airflow does not have it, or as another deployment's
    record: DeploymentRecord | None
    active_runs: int
    stops: bool  #: runs in progress are stopped, not waited for
    confirmed: bool
    idle_runs: int = 0  #: of the active runs, those that have begun no work
    given_up: bool = False  #: its whole branch is: nobody will produce it again
    is_taken_over: bool = False  #: another deployment has a DAG of this id now, and its history


_NOTHING_PRODUCES_IT = "nothing produces it any more, so they could not finish"
_NOT_OFF = "Airflow has not yet seen that its schedule is off"


def retire_steps(orphaned: OrphanedDag) -> Iterator[RetireStep]:
    """The steps that can be done now.

    The retirement is recorded first. Then, in this order and never another: no run in progress, off, archived, no longer
    produced, deleted, forgotten. Each step leaves a trace that the next reconcile reads, so that it may end after any.
    """
    dag_id, dag, record = orphaned.dag_id, orphaned.dag, orphaned.record
    if orphaned.is_taken_over:
        yield Forget(dag_id, is_taken_over=True)
        return
    retirement = None if record is None else record.retirement
    if retirement is None or (orphaned.confirmed and not retirement.confirmed):
        yield Drain(dag_id, orphaned.why, orphaned.confirmed)
    is_archived = record is not None and record.is_archived
    if dag is None:
        if not is_archived:
            yield Archive(dag_id)
        yield Forget(dag_id)
    elif is_archived:
        yield from _last_steps(orphaned, dag)
    else:
        yield from _first_steps(orphaned, dag)


def _first_steps(orphaned: OrphanedDag, dag: KnownDag) -> Iterator[RetireStep]:
    dag_id, runs = orphaned.dag_id, orphaned.active_runs
    is_kept = orphaned.record is not None and orphaned.record.keeps_dag
    if runs and dag.fires_no_more and (orphaned.stops or (dag.is_stale and not is_kept)):
        yield StopRuns(dag_id, runs, "its settings say so" if orphaned.stops else _NOTHING_PRODUCES_IT)
    elif runs:
        idle = orphaned.idle_runs if dag.fires_no_more else 0
        if idle:
            yield StopIdleRuns(dag_id, idle)
        if runs > idle:
            yield WaitForRuns(dag_id, runs - idle)
    elif dag.has_import_errors:
        yield Wait(dag_id, "its loader file cannot be imported; mend it first")
    elif not dag.fires_no_more:
        still = "a file still produces it; drop the branch's bundle first" if orphaned.given_up else _NOT_OFF
        yield Wait(dag_id, still)
    else:
        yield Archive(dag_id)
        if dag.is_stale and (orphaned.given_up or not is_kept):
            yield Delete(dag_id)


def _last_steps(orphaned: OrphanedDag, dag: KnownDag) -> Iterator[RetireStep]:
    if dag.has_import_errors:
        yield Wait(orphaned.dag_id, "its loader file cannot be imported, so nobody knows whether it is still produced")
    elif not dag.is_stale:
        yield Wait(orphaned.dag_id, "Airflow has not yet seen that no file produces it")
    elif orphaned.active_runs:  # begun after the archive: it is archived anew before the delete
        yield StopRuns(orphaned.dag_id, orphaned.active_runs, _NOTHING_PRODUCES_IT)
    else:
        yield Delete(orphaned.dag_id)
