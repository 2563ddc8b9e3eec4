"""Reading the facts of a plan: the tree, the state folder, and as little of Airflow as will do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from airflow_chronon.airflow_api.coverage import known_runs
from airflow_chronon.airflow_api.errors import NotThere
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import ACTIVE_RUN_STATES, DagRecord
from airflow_chronon.airflow_api.replay import kept_grid
from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.jobs.verdicts import GoodPlan
from airflow_chronon.core.plan.build import Facts, orphaned_dags, paused_while_bad, with_pending
from airflow_chronon.core.plan.facts import (
    CHRONON_TAG,
    AirflowFacts,
    AirflowSettings,
    Deployment,
    KnownDag,
    StateFacts,
    TreeFacts,
    TreeState,
)
from airflow_chronon.core.plan.grid_contract import CONTRACTS_ASSET, contract_key
from airflow_chronon.core.runs.states import KnownRun
from airflow_chronon.errors import Fault
from airflow_chronon.state.files import StateError
from airflow_chronon.state.folder import StateFolder, open_branches

_FEW = 10  #: so many DAGs are asked about one by one; for more, everything there is of the kind is listed once


@dataclass(frozen=True)
class Place:
    """One deployment: its confs, its state, the Airflow that it runs on."""

    root: ConfRoot
    deployment: Deployment
    state: StateFolder
    state_root: str
    server: AirflowServer


def gather(place: Place, *, now: Instant) -> Facts:
    """The facts as of now. The calls to Airflow are a listing of the DAGs, and more only for what has changed."""
    tree = TreeFacts(TreeState.EMPTY) if place.deployment.given_up else place.root.facts()
    other_tables, other_problems = _other_tables(place)
    state = replace(place.state.facts(), other_tables=other_tables, other_problems=other_problems)
    state = replace(state, contracts=_contracts(place, tree, state))
    records = place.server.dags(tags=(CHRONON_TAG,))
    broken = broken_dags(records, place.server)
    dags = {record.dag_id: _known(record, is_broken=record.dag_id in broken) for record in records}
    airflow = AirflowFacts(dags=dags, settings=_settings(place.server))
    facts = Facts(place.deployment, place.root.settings, tree, airflow, state)
    orphaned = orphaned_dags(facts)
    airflow = replace(airflow, active_runs=_active_runs(place.server, [each for each in orphaned if each in dags]))
    untold = [each for each in (*orphaned, *paused_while_bad(facts)) if each in state.manifests]
    manifests = {dag_id: place.state.read_manifest(dag_id) for dag_id in untold}
    state = replace(
        state, read_manifests={dag_id: manifest for dag_id, manifest in manifests.items() if manifest is not None}
    )
    due = [each for each in with_pending(facts, now=now) if each in dags and place.deployment.owns(dags[each])]
    if due:
        airflow = replace(
            airflow,
            past_runs={dag_id: _past_runs(place.server, tree.plans[dag_id], now=now) for dag_id in due},
            backfilling=frozenset(
                dag_id for dag_id in due if any(each.completed is None for each in place.server.backfills(dag_id))
            ),
        )
    return replace(facts, airflow=airflow, state=state)


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
    )


def _active_runs(server: AirflowServer, orphaned: list[str]) -> dict[str, int]:
    if len(orphaned) > _FEW:
        wanted = set(orphaned)
        return Counter(run.dag_id for run in server.runs(states=ACTIVE_RUN_STATES) if run.dag_id in wanted)
    found = {}
    for dag_id in orphaned:
        try:
            found[dag_id] = len(server.runs(dag_id, states=ACTIVE_RUN_STATES))
        except NotThere:
            continue  # deleted since it was listed
    return found


def _past_runs(server: AirflowServer, plan: GoodPlan, *, now: Instant) -> tuple[KnownRun, ...]:
    schedule = plan.intervals
    return () if schedule is None else tuple(known_runs(server.runs(plan.dag_id), schedule, now=now))


def _settings(server: AirflowServer) -> AirflowSettings:
    def number(section: str, option: str) -> int | None:
        text = server.config_value(section, option)
        return int(text) if text is not None and text.isdigit() else None

    return AirflowSettings(
        max_dagruns_per_loop=number("scheduler", "max_dagruns_per_loop_to_schedule"),
        triggerer_capacity=number("triggerer", "capacity"),
        parallelism=number("core", "parallelism"),
    )


def _contracts(place: Place, tree: TreeFacts, state: StateFacts) -> dict[str, str]:
    """What tables were begun on, of confs that are new here or whose grid is another than before: usually few (C22)."""

    def is_as_before(dag_id: str, plan: ConfPlan) -> bool:
        known = state.journal.get(dag_id)
        return known is not None and known.grid == str(plan.spec.grid)

    asked = {dag_id: plan for dag_id, plan in tree.confs.items() if not is_as_before(dag_id, plan)}
    if len(asked) > _FEW:
        kept = place.server.asset_states(CONTRACTS_ASSET)
        return {dag_id: str(kept.get(contract_key(dag_id)) or plan.spec.grid) for dag_id, plan in asked.items()}
    return {dag_id: kept_grid(place.server, plan) or str(plan.spec.grid) for dag_id, plan in asked.items()}


def _other_tables(place: Place) -> tuple[dict[str, str], tuple[Fault, ...]]:
    """The tables of other branches, and what kept them from being read."""
    found: dict[str, str] = {}
    problems: list[Fault] = []
    own = place.state.prefix
    for (_, branch), other in open_branches(place.state_root).items():
        if other.prefix == own or branch == place.deployment.branch:
            continue
        try:
            journal = other.journal()
        except StateError as error:  # it is that branch's to mend; here it only costs a warning
            problems.append(error.fault)
            continue
        found |= {entry.table: branch for entry in journal.values() if entry.table and entry.gone is None}
    return found, tuple(problems)
