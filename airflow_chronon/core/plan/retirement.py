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
class Doomed:
    """A DAG whose conf is gone, and how far its retirement has come."""

    dag_id: str
    why: str
    dag: KnownDag | None  #: None: Airflow does not have it, or as another deployment's
    tombstone: Tombstone | None
    has_copy: bool  #: so the loader still produces it, off
    active_runs: int
    stops: bool  #: runs in progress are stopped, not waited for
    confirmed: bool
    given_up: bool = False  #: its whole branch is: nobody will produce it again
    is_taken_over: bool = False  #: another deployment has a DAG of this id now, and its history


_NOTHING_PRODUCES_IT = "nothing produces it any more, so they could not finish"
_NOT_OFF = "Airflow has not yet seen that its schedule is off"


def retire_steps(doomed: Doomed) -> Iterator[RetireStep]:
    """The steps that can be done now.

    A tombstone comes first. Then, in this order and never another: no run in progress, off, archived, the copy dropped,
    no longer produced, deleted. Each step leaves a trace that the next reconcile reads, so that it may end after any.
    """
    dag_id, dag, tombstone = doomed.dag_id, doomed.dag, doomed.tombstone
    if not doomed.is_taken_over and (tombstone is None or (doomed.confirmed and not tombstone.confirmed)):
        yield Drain(dag_id, doomed.why, doomed.confirmed)
    is_archived = tombstone is not None and bool(tombstone.archive)
    if dag is None:
        yield from _without_dag(doomed, is_archived)
    elif is_archived and not doomed.has_copy:
        yield from _last_steps(doomed, dag)
    elif doomed.active_runs and dag.fires_no_more and (doomed.stops or (dag.is_stale and not doomed.has_copy)):
        why = "its settings say so" if doomed.stops else _NOTHING_PRODUCES_IT
        yield StopRuns(dag_id, doomed.active_runs, why)
    elif doomed.active_runs:
        yield WaitForRuns(dag_id, doomed.active_runs)
    elif dag.has_import_errors:
        yield Wait(dag_id, "its loader file cannot be imported; mend it first")
    elif not dag.fires_no_more:
        still = "a file still produces it; drop the branch's bundle first" if doomed.given_up else _NOT_OFF
        yield Wait(dag_id, still)
    else:
        yield Archive(dag_id)
        if doomed.has_copy:
            yield Forget(dag_id)
        if dag.is_stale and (doomed.given_up or not doomed.has_copy):
            yield Delete(dag_id)
            yield Clear(dag_id)


def _without_dag(doomed: Doomed, is_archived: bool) -> Iterator[RetireStep]:
    if not is_archived and not doomed.is_taken_over:
        yield Archive(doomed.dag_id)
    if doomed.has_copy:
        yield Forget(doomed.dag_id, doomed.is_taken_over)
    yield Clear(doomed.dag_id)


def _last_steps(doomed: Doomed, dag: KnownDag) -> Iterator[RetireStep]:
    if dag.has_import_errors:
        yield Wait(doomed.dag_id, "its loader file cannot be imported, so nobody knows whether it is still produced")
    elif not dag.is_stale:
        yield Wait(doomed.dag_id, "Airflow has not yet seen that no file produces it")
    elif doomed.active_runs:  # begun after the archive: it is archived anew before the delete
        yield StopRuns(doomed.dag_id, doomed.active_runs, _NOTHING_PRODUCES_IT)
    else:
        yield Delete(doomed.dag_id)
        yield Clear(doomed.dag_id)
