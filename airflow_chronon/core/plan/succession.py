"""What a reconcile sees of jobs besides their files: which are paused, and which go on where another version ended (H8, H14)."""

from __future__ import annotations

from dataclasses import replace

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.jobs.verdicts import GoodPlan
from airflow_chronon.core.plan.facts import AirflowFacts, Deployment, StateFacts, TreeFacts
from airflow_chronon.core.plan.history import Heritage, JournalEntry, Seen


def seen_of(
    plan: GoodPlan, *, deployment: Deployment, tree: TreeFacts, airflow: AirflowFacts, state: StateFacts, now: Instant
) -> Seen:
    """What is seen of the DAG of a good conf or job."""
    if not isinstance(plan, JobPlan):
        return Seen(now)
    older = predecessor(plan, tree, state)
    ids = (plan.dag_id,) if older is None else (plan.dag_id, older.dag_id)
    is_paused = any(_is_paused(dag_id, deployment, airflow, state) for dag_id in ids)
    return Seen(now, is_paused, None if older is None else _heritage(older, airflow, now))


def inherits_pause(
    plan: GoodPlan, *, deployment: Deployment, tree: TreeFacts, airflow: AirflowFacts, state: StateFacts
) -> bool:
    """Whether a job is to be paused since the version is whose place it takes (H14): asked once, before it is recorded."""
    older = predecessor(plan, tree, state) if isinstance(plan, JobPlan) else None
    return older is not None and _is_paused(older.dag_id, deployment, airflow, state)


def predecessor(plan: JobPlan, tree: TreeFacts, state: StateFacts) -> JournalEntry | None:
    """The version whose place a job takes that is new, or back: of the same name, and gone from the tree last. One that
    was retired is forgotten (H16)."""
    known = state.journal.get(plan.dag_id)
    if plan.schedule is None or (known is not None and known.gone is None):
        return None
    others = [
        entry
        for dag_id, entry in state.journal.items()
        if entry.family == plan.family
        and dag_id != plan.dag_id
        and not tree.holds(dag_id, entry)
        and _is_there(entry, state)
    ]
    return max(others, key=lambda entry: (entry.gone is None, entry.gone or 0, entry.first_seen), default=None)


def _is_there(entry: JournalEntry, state: StateFacts) -> bool:
    return entry.gone is None or entry.dag_id in state.tombstones or entry.dag_id in state.manifests


def _is_paused(dag_id: str, deployment: Deployment, airflow: AirflowFacts, state: StateFacts) -> bool:
    """By Airflow, or by the journal where Airflow does not have the DAG now."""
    known, dag = state.journal.get(dag_id), airflow.dags.get(dag_id)
    if dag is not None and not dag.is_stale and deployment.owns(dag):
        return dag.is_paused
    return known is not None and known.now.is_paused


def _heritage(older: JournalEntry, airflow: AirflowFacts, now: Instant) -> Heritage:
    """Off before, a job counts from now on, as one that is on again (H14); else from where the version before it was."""
    fires = (airflow.last_fires.get(older.dag_id), older.goes_on_after)
    last = max((each for each in fires if each is not None), default=None)
    if not replace(older.meant, is_paused=False).fires:
        return Heritage(now, now, last)
    begins = older.begins if last is None else last
    active_since = max(each for each in (last, older.active_since, older.first_seen) if each is not None)
    return Heritage(active_since, begins, last)
