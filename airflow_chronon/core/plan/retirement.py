"""How one DAG is retired: drained, archived, dropped, one safe step after the other (C23)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_chronon.core.plan.actions import (
    Archive,
    Clear,
    Delete,
    Drain,
    Forget,
    RetireStep,
    StopRuns,
    Wait,
    WaitForRuns,
)
from airflow_chronon.core.plan.facts import KnownDag, Tombstone


@dataclass(frozen=True)
class OrphanedDag:
    """A DAG whose conf is gone, and how far its retirement has come."""

    dag_id: str
    why: str
    dag: KnownDag | None  #: None: Airflow does not have it, or as another deployment's
    tombstone: Tombstone | None
    has_manifest: bool  #: so the loader still produces it, off
    active_runs: int
    stops: bool  #: runs in progress are stopped, not waited for
    confirmed: bool
    given_up: bool = False  #: its whole branch is: nobody will produce it again
    is_taken_over: bool = False  #: another deployment has a DAG of this id now, and its history


_NOTHING_PRODUCES_IT = "nothing produces it any more, so they could not finish"
_NOT_OFF = "Airflow has not yet seen that its schedule is off"


def retire_steps(orphaned: OrphanedDag) -> Iterator[RetireStep]:
    """The steps that can be done now.

    A tombstone comes first. Then, in this order and never another: no run in progress, off, archived, the copy dropped,
    no longer produced, deleted. Each step leaves a trace that the next reconcile reads, so that it may end after any.
    """
    dag_id, dag, tombstone = orphaned.dag_id, orphaned.dag, orphaned.tombstone
    if not orphaned.is_taken_over and (tombstone is None or (orphaned.confirmed and not tombstone.confirmed)):
        yield Drain(dag_id, orphaned.why, orphaned.confirmed)
    is_archived = tombstone is not None and bool(tombstone.archive)
    if dag is None:
        yield from _without_dag(orphaned, is_archived)
    elif is_archived and not orphaned.has_manifest:
        yield from _last_steps(orphaned, dag)
    elif (
        orphaned.active_runs and dag.fires_no_more and (orphaned.stops or (dag.is_stale and not orphaned.has_manifest))
    ):
        why = "its settings say so" if orphaned.stops else _NOTHING_PRODUCES_IT
        yield StopRuns(dag_id, orphaned.active_runs, why)
    elif orphaned.active_runs:
        yield WaitForRuns(dag_id, orphaned.active_runs)
    elif dag.has_import_errors:
        yield Wait(dag_id, "its loader file cannot be imported; mend it first")
    elif not dag.fires_no_more:
        still = "a file still produces it; drop the branch's bundle first" if orphaned.given_up else _NOT_OFF
        yield Wait(dag_id, still)
    else:
        yield Archive(dag_id)
        if orphaned.has_manifest:
            yield Forget(dag_id)
        if dag.is_stale and (orphaned.given_up or not orphaned.has_manifest):
            yield Delete(dag_id)
            yield Clear(dag_id)


def _without_dag(orphaned: OrphanedDag, is_archived: bool) -> Iterator[RetireStep]:
    if not is_archived and not orphaned.is_taken_over:
        yield Archive(orphaned.dag_id)
    if orphaned.has_manifest:
        yield Forget(orphaned.dag_id, orphaned.is_taken_over)
    yield Clear(orphaned.dag_id)


def _last_steps(orphaned: OrphanedDag, dag: KnownDag) -> Iterator[RetireStep]:
    if dag.has_import_errors:
        yield Wait(orphaned.dag_id, "its loader file cannot be imported, so nobody knows whether it is still produced")
    elif not dag.is_stale:
        yield Wait(orphaned.dag_id, "Airflow has not yet seen that no file produces it")
    elif orphaned.active_runs:  # begun after the archive: it is archived anew before the delete
        yield StopRuns(orphaned.dag_id, orphaned.active_runs, _NOTHING_PRODUCES_IT)
    else:
        yield Delete(orphaned.dag_id)
        yield Clear(orphaned.dag_id)
