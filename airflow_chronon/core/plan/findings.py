"""What a plan reports besides what it does: broken contracts, shared tables, and settings of Airflow that will hurt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.inputs import begins_later
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.plan.actions import Report, Severity
from airflow_chronon.core.plan.facts import AirflowFacts, Deployment, KnownDag, StateFacts, TreeFacts, TreeState
from airflow_chronon.core.records.grid_contract import contract_fault
from airflow_chronon.errors import Fault

ENOUGH_RUNS_PER_LOOP = 100  #: with Airflow's default of 20, replays starve while 20 runs wait for data
NAMED = 5  #: of many names in one report


def findings(
    deployment: Deployment, tree: TreeFacts, airflow: AirflowFacts, state: StateFacts, *, now: Instant
) -> Iterator[Report]:
    """Every report, worst first."""
    for problem in tree.problems:
        # an empty tree is held, or someone confirmed it; one that cannot be read stays wrong
        yield Report(Severity.ERROR if tree.state is TreeState.UNREADABLE else Severity.WARNING, problem)
    for odd in tree.warnings:
        yield Report(Severity.WARNING, odd)
    for bad in tree.bad:
        fires = "; its DAG fires no more until it is mended" if _is_deployed(bad, state) else ""
        fault = replace(bad.faults[0], message=f"{bad.faults[0].message}{fires}")
        yield Report(Severity.WARNING, fault, bad.key)
    yield from _state_elsewhere(deployment, airflow, state)
    yield from _without_dags(deployment, tree, airflow, state)
    yield from _grids(tree, airflow)
    yield from _shared_tables(tree, state)
    yield from _without_inputs(tree, state, now)
    for problem in state.other_problems:
        yield Report(Severity.WARNING, problem)
    for dag_id, problem in sorted(airflow.problems.items()):
        yield Report(Severity.ERROR, problem, dag_id)
    if tree.state is TreeState.WHOLE:
        yield from _airflow_settings(tree, airflow)
    yield from _leftovers(deployment, airflow)


def _state_elsewhere(deployment: Deployment, airflow: AirflowFacts, state: StateFacts) -> Iterator[Report]:
    """An empty state folder beside DAGs: the first reconcile, or the folder of nobody."""
    count = sum(deployment.owns(dag) and not dag.is_stale for dag in airflow.dags.values())
    if count and not state.records and not state.damaged:
        problem = f"it holds nothing, and Airflow has {count} DAGs of this branch"
        remedy = "for a first reconcile that is right; else set [chronon] state_root or AIRFLOW_HOME as the reconciler has it"
        yield Report(Severity.WARNING, Fault("settings", "state folder", problem, remedy))


def _is_deployed(bad: RejectedConf, state: StateFacts) -> bool:
    return any(bad.key == each.key or bad.file == each.file for each in state.records.values())


def _without_dags(
    deployment: Deployment, tree: TreeFacts, airflow: AirflowFacts, state: StateFacts
) -> Iterator[Report]:
    """Good confs and jobs of which Airflow has no live DAG: nobody else would say that nothing runs (C23)."""
    wanted = {dag_id: plan for dag_id, plan in sorted(tree.plans.items()) if not plan.is_left_out}
    lacking = [dag_id for dag_id in wanted if not _is_live(airflow.dags.get(dag_id), deployment)]
    if len(lacking) == len(wanted) > 1 and not any(deployment.owns(dag) for dag in airflow.dags.values()):
        problem = f"Airflow has none of the DAGs of the {len(lacking)} good confs and jobs"
        where = f"is there a loader file in the DAG bundle {deployment.bundle}, and does the dag-processor parse it?"
        yield Report(Severity.WARNING, Fault("C23", "", problem, where))
        return
    for dag_id in lacking:
        dag = airflow.dags.get(dag_id)
        severity = Severity.NOTE if dag is None and dag_id not in state.records else Severity.WARNING
        yield Report(severity, Fault("C23", "", *_why_no_dag(dag, deployment)), dag_id)


def _is_live(dag: KnownDag | None, deployment: Deployment) -> bool:
    return dag is not None and not dag.is_stale and deployment.owns(dag)


def _why_no_dag(dag: KnownDag | None, deployment: Deployment) -> tuple[str, str]:
    """What is wrong with a DAG that should be live, and what to do about it."""
    if dag is not None and not deployment.owns(dag):
        whose = f"the branch {dag.branch} in the DAG bundle {dag.bundle}"
        return f"it is good, and its DAG is that of {whose}", "deploy it once, or from a branch of its own"
    if dag is not None and dag.has_import_errors:
        return "it is good, and its loader file cannot be imported now", "see airflow dags list-import-errors"
    remedy = "look whether team or match of build_dags leave it out in all of them, and for import errors"
    if dag is not None:
        return "it is good, and no loader file produces its DAG any more", remedy
    return (
        "it is good, and Airflow has no DAG of it: no loader file has produced it yet",
        f"wait for the next parse, or {remedy}",
    )


def _grids(tree: TreeFacts, airflow: AirflowFacts) -> Iterator[Report]:
    """A changed grid under the same version: every run of it fails (C22)."""
    for dag_id, plan in sorted(tree.confs.items()):
        fault = contract_fault(airflow.contracts.get(dag_id), plan.spec, table=plan.conf.table)
        if fault is not None:
            yield Report(Severity.ERROR, fault, dag_id)


def _shared_tables(tree: TreeFacts, state: StateFacts) -> Iterator[Report]:
    shared: dict[str, set[str]] = defaultdict(set)
    for plan in tree.confs.values():
        other = state.other_tables.get(plan.conf.table)
        if other is not None:
            shared[other].add(plan.conf.table)
    for other, tables in sorted(shared.items()):
        problem = f"it writes {len(tables)} of the tables of this branch too: {_named(sorted(tables))}"
        remedy = "give one of the branches an output namespace of its own: else they write one after the other"
        yield Report(Severity.WARNING, Fault("C24", "", problem, remedy), f"branch {other}")


def _without_inputs(tree: TreeFacts, state: StateFacts, now: Instant) -> Iterator[Report]:
    """Runs that a deployment would leave without what they read (C30)."""
    new = tree.confs.keys() - state.records.keys()
    for dag_id, plan in sorted(tree.confs.items()):
        severity = Severity.WARNING if plan.schedule.catch_up.enabled else Severity.NOTE
        for fault in begins_later(plan, new=new, now=now) if dag_id in new else ():
            yield Report(severity, fault, dag_id)


def _airflow_settings(tree: TreeFacts, airflow: AirflowFacts) -> Iterator[Report]:
    settings = airflow.settings
    per_loop, capacity = settings.max_dagruns_per_loop, settings.triggerer_capacity
    waiting = sum(any(p.dependencies.values()) for p in tree.confs.values() if p.modes)
    enough = max(ENOUGH_RUNS_PER_LOOP, waiting + 1)
    if per_loop is not None and per_loop < enough and not settings.passes_over_waiting_runs:
        problem = f"max_dagruns_per_loop_to_schedule is {per_loop}: replays starve while as many runs wait for data"
        remedy = f"set [chronon] pass_over_waiting_runs to True, or it to {max(500, enough)}; airflow-chronon size says which"
        yield _setting("[scheduler]", problem, remedy)
    waits = sum(
        len({each.table for found in p.dependencies.values() for each in found}) for p in tree.confs.values() if p.modes
    )
    if capacity is not None and waits > capacity:
        problem = f"one run of every DAG waits for {waits} tables, and a triggerer holds {capacity} triggers"
        yield _setting("[triggerer] capacity", problem, "raise it, or run more triggerers")
    if settings.parallelism is not None:
        yield from _greedy(tree, settings.parallelism)
    for dag_id, plan in sorted(tree.plans.items()):
        own = plan.settings
        if own.max_pending_runs < own.max_active_runs:
            problem = (
                f"max_pending_runs is {own.max_pending_runs}, so max_active_runs {own.max_active_runs} is never reached"
            )
            yield _setting("max_pending_runs", problem, "set it well above max_active_runs", conf=dag_id)


def _greedy(tree: TreeFacts, parallelism: int) -> Iterator[Report]:
    """Schedules that make others late while they catch up (H17)."""
    plans = sorted(tree.plans.items())
    found = [dag_id for dag_id, p in plans if p.settings.catchup and p.settings.max_active_runs * 2 >= parallelism]
    if found:
        problem = (
            f"it is {parallelism}, and half of that or more may go to the catch-up of {_named(found)}: others wait"
        )
        yield _setting("[core] parallelism", problem, "raise it, or lower their max_active_runs")


def _named(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _setting(field: str, problem: str, remedy: str, *, conf: str = "") -> Report:
    return Report(Severity.WARNING, Fault("settings", field, problem, remedy), conf)


def _leftovers(deployment: Deployment, airflow: AirflowFacts) -> Iterator[Report]:
    """Other branches whose DAGs nobody produces: merged, most likely, and theirs to retire (C24)."""
    branches: dict[str, list[bool]] = defaultdict(list)
    for dag in airflow.dags.values():
        if dag.branch is not None and deployment.tag not in dag.tags:
            branches[dag.branch].append(dag.is_stale and not dag.has_import_errors)
    for branch, stale in sorted(branches.items()):
        if all(stale):
            problem = f"no file produces the {len(stale)} DAGs of this branch any more"
            remedy = f"if it was merged: reconcile --branch {branch} --retire-branch"
            yield Report(Severity.NOTE, Fault("C24", "", problem, remedy), f"branch {branch}")
