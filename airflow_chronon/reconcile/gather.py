"""Reading the facts of a plan: the tree, the state folder, and as little of Airflow as will do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from airflow_chronon.airflow_api.coverage import has_begun_work, known_runs, stranded_runs
from airflow_chronon.airflow_api.errors import NotThere
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import ACTIVE_RUN_STATES, DagRecord, RunRecord
from airflow_chronon.airflow_api.replay import kept_grid
from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.plan.facts import (
    CHRONON_TAG,
    AirflowFacts,
    AirflowSettings,
    Deployment,
    Facts,
    KnownDag,
    StateFacts,
    TreeFacts,
    TreeState,
)
from airflow_chronon.core.plan.needs import needs_of
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET, contract_key
from airflow_chronon.core.records.history import seen_plan
from airflow_chronon.core.records.manifest import plan_of_manifest
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.core.runs.states import KnownRun
from airflow_chronon.errors import Fault
from airflow_chronon.state.files import StateError
from airflow_chronon.state.folder import StateFolder, open_branches

_FEW = 10  #: so many DAGs are asked about one by one; for more, everything there is of the kind is listed once
_TRUE = ("true", "t", "1")  #: as Airflow reads its settings


@dataclass(frozen=True)
class Place:
    """One deployment: its confs, its state, the Airflow that it runs on."""

    root: ConfRoot
    deployment: Deployment
    state: StateFolder
    state_root: str
    server: AirflowServer


def gather(place: Place, *, now: Instant) -> Facts:
    """The facts as of now, read in two rounds: tree, state and the list of DAGs; then what those show is needed."""
    tree = TreeFacts(TreeState.EMPTY) if place.deployment.given_up else place.root.facts()
    state = _state(place, tree)
    listed = place.server.dags(tags=(CHRONON_TAG,))
    broken = broken_dags(listed, place.server)
    dags = {record.dag_id: _known(record, is_broken=record.dag_id in broken) for record in listed}
    needs = needs_of(place.deployment, tree, state, dags, now=now)
    problems: dict[str, Fault] = {}
    active = _active_runs(place.server, needs.active_runs)
    past = [seen_plan(tree.plans[dag_id], state.records.get(dag_id)) for dag_id in needs.past_runs]
    airflow = AirflowFacts(
        dags=dags,
        contracts=_contracts(place.server, {dag_id: tree.confs[dag_id] for dag_id in needs.contracts}),
        active_runs={dag_id: len(runs) for dag_id, runs in active.items()},
        idle_runs={
            dag_id: sum(not has_begun_work(place.server, run) for run in runs) for dag_id, runs in active.items()
        },
        past_runs=_past_runs(place.server, past, problems, now=now),
        last_fires=_last_fires(place.server, needs.last_fires),
        stranded=_stranded(place, dags),
        backfilling=frozenset(dag_id for dag_id in needs.past_runs if _is_backfilling(place.server, dag_id)),
        settings=_settings(place.server),
        problems=problems,
    )
    return Facts(place.deployment, place.root.settings, tree, airflow, state)


def broken_dags(records: Iterable[DagRecord], server: AirflowServer) -> frozenset[str]:
    """Those whose file cannot be imported now: it counts as present (C23).

    A file that is removed while Airflow stores a parse of it leaves its DAGs marked for ever, and no import error.
    """
    marked = [record for record in records if record.has_import_errors]
    files = {(each.bundle, each.filename) for each in server.import_errors()} if marked else set()
    return frozenset(each.dag_id for each in marked if each.file is None or (each.bundle, each.file) in files)


def _known(record: DagRecord, *, is_broken: bool) -> KnownDag:
    return KnownDag(
        record.dag_id,
        record.tags,
        record.bundle,
        is_paused=record.is_paused,
        is_stale=record.is_stale,
        has_import_errors=is_broken,
        file=record.file,
    )


def _active_runs(server: AirflowServer, dag_ids: Sequence[str]) -> dict[str, list[RunRecord]]:
    found: dict[str, list[RunRecord]] = {dag_id: [] for dag_id in dag_ids}
    if len(dag_ids) > _FEW:
        for run in server.runs(states=ACTIVE_RUN_STATES):
            if run.dag_id in found:
                found[run.dag_id].append(run)
        return found
    for dag_id in dag_ids:
        with suppress(NotThere):  # deleted since it was listed
            found[dag_id] += server.runs(dag_id, states=ACTIVE_RUN_STATES)
    return found


def _stranded(place: Place, dags: Mapping[str, KnownDag]) -> dict[str, tuple[str, ...]]:
    """The runs of this deployment's DAGs that are queued and that Airflow never starts."""
    queued = place.server.runs(states=("queued",), run_types=("backfill",))
    own = [run for run in queued if run.dag_id in dags and place.deployment.owns(dags[run.dag_id])]
    found: dict[str, tuple[str, ...]] = {}
    for run in stranded_runs(place.server, own):
        found[run.dag_id] = (*found.get(run.dag_id, ()), run.run_id)
    return found


def _past_runs(
    server: AirflowServer, plans: Iterable[Plan], problems: dict[str, Fault], *, now: Instant
) -> dict[str, tuple[KnownRun, ...]]:
    """The runs of DAGs with pending backfills; ``problems`` gets what is wrong with those of one."""
    found: dict[str, tuple[KnownRun, ...]] = {}
    for plan in plans:
        if plan.schedule is None:
            continue
        with suppress(NotThere):  # deleted since it was listed
            runs = server.runs(plan.dag_id)
            try:
                found[plan.dag_id] = tuple(known_runs(runs, plan.schedule, now=now))
            except Exception as error:  # what nobody foresaw in the runs of one DAG must not cost the others
                problem = f"its runs cannot be read: {type(error).__name__}: {error}"
                problems[plan.dag_id] = Fault("input", "", problem, "report this with the runs")
    return found


def _last_fires(server: AirflowServer, dag_ids: Iterable[str]) -> dict[str, Instant]:
    """The fire of the newest scheduled run of each DAG; 0 where there is none."""
    found: dict[str, Instant] = {}
    for dag_id in dag_ids:
        with suppress(NotThere):  # deleted since it was listed
            found[dag_id] = max((run.run_after for run in server.newest_scheduled(dag_id)), default=0)
    return found


def _is_backfilling(server: AirflowServer, dag_id: str) -> bool:
    return any(each.completed is None for each in server.backfills(dag_id))


def _settings(server: AirflowServer) -> AirflowSettings:
    def number(section: str, option: str) -> int | None:
        text = server.config_value(section, option)
        return int(text) if text is not None and text.isdigit() else None

    return AirflowSettings(
        max_dagruns_per_loop=number("scheduler", "max_dagruns_per_loop_to_schedule"),
        triggerer_capacity=number("triggerer", "capacity"),
        parallelism=number("core", "parallelism"),
        passes_over_waiting_runs=(server.config_value("chronon", "pass_over_waiting_runs") or "").lower() in _TRUE,
    )


def _contracts(server: AirflowServer, plans: Mapping[str, ConfPlan]) -> dict[str, str]:
    """The grids that the tables of these confs were first written on; of one that was never written its own (C22)."""
    if len(plans) > _FEW:
        kept = server.asset_states(CONTRACTS_ASSET)
        return {dag_id: str(kept.get(contract_key(dag_id)) or plan.spec.contract) for dag_id, plan in plans.items()}
    return {dag_id: kept_grid(server, plan) or plan.spec.contract for dag_id, plan in plans.items()}


def _state(place: Place, tree: TreeFacts) -> StateFacts:
    """What the state folder holds, and which tables other branches write as far as theirs can be read."""
    own = place.state.read_records()
    unusable = _unusable(place.state, own.found, tree)
    found = {dag_id: record for dag_id, record in own.found.items() if dag_id not in unusable}
    tables: dict[str, str] = {}
    problems: list[Fault] = []
    for (_, branch), other in open_branches(place.state_root).items():
        if other.prefix == place.state.prefix or branch == place.deployment.branch:
            continue
        try:
            records = other.read_records()
        except StateError as error:  # it is that branch's to mend; here it only costs a warning
            problems.append(error.fault)
            continue
        problems += records.damaged.values()
        live = (each.manifest for each in records.found.values() if each.retirement is None)
        tables |= {manifest.table: branch for manifest in live if manifest is not None and manifest.table}
    return StateFacts(found, {**own.damaged, **unusable}, tables, tuple(problems), place.state.read_bad())


def _unusable(state: StateFolder, records: Mapping[str, DeploymentRecord], tree: TreeFacts) -> dict[str, Fault]:
    """The records from which no DAG can be built, where they are all that is left of a conf: its last runs could never
    end, and its retirement would wait for them for ever (S9)."""
    found: dict[str, Fault] = {}
    for dag_id, record in records.items():
        if record.manifest is None or not record.keeps_dag or dag_id in tree.plans:
            continue
        try:
            plan_of_manifest(record.manifest)
        except Exception as error:  # whatever stands in it
            found[dag_id] = state.damage(dag_id, f"no DAG can be built from it: {type(error).__name__}: {error}")
    return found
