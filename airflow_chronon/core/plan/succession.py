"""What a reconcile sees of jobs besides their files: which are paused, and which go on where an older version ended (H8, H14)."""

from __future__ import annotations

from airflow_chronon.core.instants import Instant
from airflow_chronon.core.job_plan import JobPlan
from airflow_chronon.core.plan.facts import AirflowFacts, Deployment, StateFacts, TreeFacts
from airflow_chronon.core.plan.journal import JournalEntry, Seen


def seen_of(
    dag_id: str, *, deployment: Deployment, tree: TreeFacts, airflow: AirflowFacts, state: StateFacts, now: Instant
) -> Seen:
    """What is seen of the DAG of a good conf or job."""
    plan = tree.plans[dag_id]
    if not isinstance(plan, JobPlan):
        return Seen(now)
    known, dag = state.journal.get(dag_id), airflow.dags.get(dag_id)
    is_paused = known is not None and known.now.is_paused
    if dag is not None and not dag.is_stale and deployment.owns(dag):
        is_paused = dag.is_paused
    heir_of = predecessor(plan, tree, state)
    return Seen(now, is_paused, None if heir_of is None else _last_fire(heir_of, airflow))


def predecessor(plan: JobPlan, tree: TreeFacts, state: StateFacts) -> JournalEntry | None:
    """The version that a new job supersedes: of the same name, gone from the tree, and firing until then. One that was
    retired is forgotten (H16)."""
    if plan.dag_id in state.journal or plan.schedule is None:
        return None
    older = [
        entry
        for dag_id, entry in state.journal.items()
        if entry.family == plan.family and not tree.holds(dag_id, entry) and _is_there(entry, state) and entry.now.fires
    ]
    return max(older, key=lambda entry: entry.first_seen, default=None)


def _is_there(entry: JournalEntry, state: StateFacts) -> bool:
    return entry.gone is None or entry.dag_id in state.tombstones or entry.dag_id in state.copies


def _last_fire(entry: JournalEntry, airflow: AirflowFacts) -> Instant | None:
    """The last fire of a version that has a run; when it never ran, since when it counted."""
    return airflow.last_fires.get(entry.dag_id, entry.armed)
