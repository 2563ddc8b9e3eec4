"""Which DAGs a reconcile has to ask Airflow more about before it can plan, so that it asks about no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.plan.facts import Deployment, KnownDag, StateFacts, TreeFacts, orphaned_dags
from airflow_chronon.core.records.history import pending_after


@dataclass(frozen=True)
class Needs:
    """The DAGs of which a plan has to know more from Airflow: usually none, or few."""

    contracts: tuple[str, ...]  #: confs that are new here, or on another grid than before (C22)
    active_runs: tuple[str, ...]  #: DAGs that are to go
    past_runs: tuple[str, ...]  #: DAGs with pending backfills
    last_fires: tuple[str, ...]  #: jobs that are paused and were not when they were last seen


def needs_of(
    deployment: Deployment, tree: TreeFacts, state: StateFacts, dags: Mapping[str, KnownDag], *, now: Instant
) -> Needs:
    """What is to be asked of Airflow once, before a plan is made."""

    def is_pending(dag_id: str, plan: Plan) -> bool:
        known, dag = state.records.get(dag_id), dags.get(dag_id)
        if known is None or dag is None or not deployment.owns(dag):
            return False
        return pending_after(known, plan.schedule, now=now) is not None

    def is_on_known_grid(dag_id: str, plan: ConfPlan) -> bool:
        return dag_id in state.records and state.records[dag_id].grid == plan.spec.contract

    def is_newly_paused(dag_id: str, plan: Plan) -> bool:
        known, dag = state.records.get(dag_id), dags.get(dag_id)
        if known is None or dag is None or plan.has_partitions or not deployment.owns(dag):
            return False
        return dag.is_paused and not known.is_paused

    return Needs(
        contracts=tuple(dag_id for dag_id, plan in tree.confs.items() if not is_on_known_grid(dag_id, plan)),
        active_runs=tuple(dag_id for dag_id in orphaned_dags(deployment, tree, state, dags) if dag_id in dags),
        past_runs=tuple(dag_id for dag_id, plan in sorted(tree.plans.items()) if is_pending(dag_id, plan)),
        last_fires=tuple(dag_id for dag_id, plan in sorted(tree.plans.items()) if is_newly_paused(dag_id, plan)),
    )
