"""The plan itself: a pure function from what is there to what is to be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.plan.actions import (
    Action,
    Deploy,
    Hold,
    Keep,
    Plan,
    Record,
    Replay,
    Report,
    Restore,
    Severity,
    Unpause,
)
from airflow_chronon.core.plan.facts import AirflowFacts, Deployment, KnownDag, StateFacts, TreeFacts, TreeState
from airflow_chronon.core.plan.findings import findings
from airflow_chronon.core.plan.history import JournalEntry, Seen, journal_entry, pending_after, switched_off
from airflow_chronon.core.plan.manifest import DeployedManifest, manifest_of, settings_of_manifest
from airflow_chronon.core.plan.pending import pending_ranges
from airflow_chronon.core.plan.retirement import OrphanedDag, retire_steps
from airflow_chronon.core.schedules.intervals import JobSchedule
from airflow_chronon.core.settings.model import OnRetire, Pause, Settings
from airflow_chronon.errors import Fault

MASS_RETIRE_AT_LEAST = 5  #: confs that vanish at once, before a tree looks damaged
MASS_RETIRE_SHARE = 3  #: and more than one in so many of those that were there


class Confirmation(Enum):
    """Whether someone said that a mass retirement is meant."""

    NONE = "none"
    MASS_RETIRE = "mass retire"


@dataclass(frozen=True)
class Facts:
    """Everything a plan is worked out from, but the time."""

    deployment: Deployment
    settings: Settings
    tree: TreeFacts
    airflow: AirflowFacts
    state: StateFacts

    @cached_property
    def manifests(self) -> dict[str, DeployedManifest]:
        """The copy of every good conf of the tree, as it is to be kept."""
        dumps: dict[int, dict[str, Any]] = {}  # most confs share the deployment's settings
        return {dag_id: manifest_of(plan, dumps=dumps) for dag_id, plan in sorted(self.tree.plans.items())}


def build_plan(facts: Facts, *, confirmation: Confirmation = Confirmation.NONE, now: Instant) -> Plan:
    """What a reconcile would do now.

    It touches only DAGs of its own branch and bundle (C24), never retires a conf that is present, good or not (C23),
    and retires nothing while the tree looks damaged. Applied again and again it converges, whatever interrupts it.
    """
    entries = journal_after(facts, now=now)
    actions: list[Action] = []
    replays: list[Action] = []
    for dag_id, entry in sorted(entries.items()):
        if entry.pending is not None:
            entries[dag_id], steps = _replays(facts, entry, now=now)
            replays += steps
    actions += _recorded_deploys(facts, entries)
    actions += _restores(facts)
    actions += _unpauses(facts)
    actions += _retirements(facts, confirmation)
    actions += replays
    actions += findings(facts.deployment, facts.tree, facts.airflow, facts.state)
    return Plan(tuple(actions))


def journal_after(facts: Facts, *, now: Instant) -> dict[str, JournalEntry]:
    """The journal as of ``now``; what partitions are owed is worked out later."""
    tree, journal = facts.tree, facts.state.journal
    entries = dict(journal)
    for dag_id, plan in tree.plans.items():
        known = journal.get(dag_id)
        if known is None and isinstance(plan, ConfPlan) and _is_on_another_grid(plan, facts.state):
            continue  # not remembered as it is, so that the next reconcile reports it again
        is_back = known is not None and known.gone is not None and _is_over(facts, dag_id)
        before = None if is_back else known  # re-creating forgets the history, and not the grid (H16, C22)
        seen = Seen(now, isinstance(plan, JobPlan) and _is_paused(facts, dag_id))
        entries[dag_id] = _with_contract(journal_entry(plan, facts.manifests[dag_id], before, seen), known, facts.state)
    for dag_id, entry in journal.items():
        if dag_id in tree.plans or entry.gone is not None:
            continue
        if tree.holds(dag_id, entry):
            entries[dag_id] = switched_off(entry, now=now)  # the loader has, since it is broken or of elsewhere
        elif _is_going(facts, dag_id):
            tombstone = facts.state.tombstones.get(dag_id)
            entries[dag_id] = replace(entry, gone=tombstone.since if tombstone is not None else now, pending=None)
    return entries


def orphaned_dags(facts: Facts) -> tuple[str, ...]:
    """The DAGs of this deployment that no conf of the tree stands for, in a fixed order (C23)."""
    state = facts.state
    known = state.manifests | set(state.tombstones)
    known |= {dag_id for dag_id, dag in facts.airflow.dags.items() if facts.deployment.owns(dag)}
    return tuple(sorted(dag_id for dag_id in known if not facts.tree.holds(dag_id, state.journal.get(dag_id))))


def paused_while_bad(facts: Facts) -> tuple[str, ...]:
    """The paused DAGs of this deployment whose confs are in the tree and cannot run (C25)."""
    tree, journal = facts.tree, facts.state.journal
    return tuple(
        dag_id
        for dag_id, dag in sorted(facts.airflow.dags.items())
        if dag.is_paused
        and dag_id not in tree.plans
        and _own_dag(facts, dag_id) is not None
        and tree.holds(dag_id, journal.get(dag_id))
    )


def with_pending(facts: Facts, *, now: Instant) -> tuple[str, ...]:
    """The DAGs whose past runs a plan needs to know."""
    journal = facts.state.journal
    return tuple(
        dag_id
        for dag_id, plan in sorted(facts.tree.plans.items())
        if dag_id in journal and pending_after(journal[dag_id], plan.intervals, now=now) is not None
    )


def _is_on_another_grid(plan: ConfPlan, state: StateFacts) -> bool:
    """Whether Airflow keeps another grid for the table of a conf that nobody remembers here (C22)."""
    grid = str(plan.spec.grid)
    return state.contracts.get(plan.dag_id, grid) != grid


def _is_paused(facts: Facts, dag_id: str) -> bool:
    """By Airflow, or by the journal where Airflow does not have the DAG now."""
    known, dag = facts.state.journal.get(dag_id), _own_dag(facts, dag_id)
    return dag.is_paused if dag is not None else known is not None and known.now.is_paused


def _own_dag(facts: Facts, dag_id: str) -> KnownDag | None:
    """The DAG as something produces it now, if it is this deployment's."""
    dag = facts.airflow.dags.get(dag_id)
    return None if dag is None or dag.is_stale or not facts.deployment.owns(dag) else dag


def _is_over(facts: Facts, dag_id: str) -> bool:
    return dag_id not in facts.state.tombstones and dag_id not in facts.state.manifests


def _is_going(facts: Facts, dag_id: str) -> bool:
    """Whether a conf that is not in the tree is being retired, or is so already; what a guard holds back is not."""
    state = facts.state
    return facts.deployment.given_up or dag_id in state.tombstones or dag_id not in state.manifests


def _with_contract(entry: JournalEntry, known: JournalEntry | None, state: StateFacts) -> JournalEntry:
    """A changed grid is no new era: every run of it fails, and what the table was written on goes on to hold (C22)."""
    if known is None or known.grid == entry.grid or state.contracts.get(entry.dag_id, known.grid) == entry.grid:
        return entry
    return replace(entry, revisions=known.revisions, pending=known.pending)


def _changed(before: Mapping[str, JournalEntry], after: Mapping[str, JournalEntry]) -> tuple[JournalEntry, ...]:
    return tuple(entry for dag_id, entry in sorted(after.items()) if before.get(dag_id) != entry)


def _recorded_deploys(facts: Facts, entries: Mapping[str, JournalEntry]) -> Iterator[Action]:
    """The journal, the copies, and the digests of the copies, in an order that may end anywhere.

    A copy says that a conf which is back has been recorded anew (H16), so the journal comes first; a digest says that the
    copy is there, so until then there is none (C23).
    """
    deploys = list(_deploys(facts))
    digests = {action.dag_id: action.manifest.digest for action in deploys if isinstance(action, Deploy)}
    before = {dag_id: replace(entry, digest="") if dag_id in digests else entry for dag_id, entry in entries.items()}
    changed = _changed(facts.state.journal, before)
    if changed:
        yield Record(changed)
    yield from deploys
    kept = tuple(entry for dag_id, entry in sorted(entries.items()) if digests.get(dag_id) == entry.digest)
    if kept:
        yield Record(kept)


def _deploys(facts: Facts) -> Iterator[Action]:
    state = facts.state
    for dag_id, manifest in facts.manifests.items():
        known = state.journal.get(dag_id)
        if dag_id in state.manifests and known is not None and known.digest == manifest.digest:
            yield Keep(dag_id)
        else:
            yield Deploy(dag_id, manifest, is_new=dag_id not in state.manifests)


def _restores(facts: Facts) -> Iterator[Action]:
    journal = facts.state.journal
    for dag_id in sorted(facts.state.tombstones):
        if facts.tree.holds(dag_id, journal.get(dag_id)):
            yield Restore(dag_id)


def _unpauses(facts: Facts) -> Iterator[Action]:
    settings = {dag_id: plan.settings for dag_id, plan in facts.tree.plans.items()}
    for dag_id in paused_while_bad(facts):  # its last runs cannot end before
        if (manifest := facts.state.read_manifests.get(dag_id)) is not None:
            settings[dag_id] = settings_of_manifest(manifest, facts.settings)
    for dag_id, own in sorted(settings.items()):
        dag = _own_dag(facts, dag_id)
        if dag is None or not dag.is_paused:
            continue
        if own.pause is Pause.ALLOW:
            fault = Fault(
                "C25", "", "it is paused, and its settings allow that", "unpause it in Airflow when it shall go on"
            )
            yield Report(Severity.NOTE, fault, dag_id)
        else:
            yield Unpause(dag_id, "it was paused by hand; to stop it, set enabled: false, or pause: allow (C25)")


def _retirements(facts: Facts, confirmation: Confirmation) -> Iterator[Action]:
    deployment, state, airflow = facts.deployment, facts.state, facts.airflow
    orphaned = orphaned_dags(facts)
    held = _held(facts, orphaned, confirmation)
    if held is not None:
        yield held
    for dag_id in orphaned:
        tombstone, entry = state.tombstones.get(dag_id), state.journal.get(dag_id)
        if held is not None and dag_id in held.dag_ids:
            continue
        dag = airflow.dags.get(dag_id)
        is_taken_over = dag is not None and not deployment.owns(dag)
        if is_taken_over:
            dag = None  # only our own memory of it goes
        manifest, active = state.read_manifests.get(dag_id), airflow.active_runs.get(dag_id, 0)
        key = entry.key if entry is not None else ""
        settings = (
            facts.settings.for_conf(key, ()) if manifest is None else settings_of_manifest(manifest, facts.settings)
        )
        if dag is not None and dag.is_paused and dag.fires_no_more and active:
            yield Unpause(dag_id, "its conf is gone, and its last runs cannot end while it is paused")
        yield from retire_steps(
            OrphanedDag(
                dag_id=dag_id,
                why=_why(dag_id, entry, facts.tree),
                dag=dag,
                tombstone=tombstone,
                has_manifest=dag_id in state.manifests,
                active_runs=active,
                stops=settings.on_retire is OnRetire.STOP or deployment.given_up,
                confirmed=confirmation is Confirmation.MASS_RETIRE,
                given_up=deployment.given_up,
                is_taken_over=is_taken_over,
            )
        )


def _held(facts: Facts, orphaned: tuple[str, ...], confirmation: Confirmation) -> Hold | None:
    """What is not retired, since the tree looks damaged; None when it looks sound or someone confirmed it."""
    tree, tombstones = facts.tree, facts.state.tombstones
    if facts.deployment.given_up or not orphaned:
        return None
    if tree.state is TreeState.UNREADABLE:
        problem = (
            f"the tree cannot be read as a whole, so nothing is retired: {tree.problems[0] if tree.problems else ''}"
        )
        return Hold(orphaned, Fault("C23", "", problem.rstrip(": "), "mend it first"))
    if confirmation is Confirmation.MASS_RETIRE:
        return None
    unconfirmed = tuple(each for each in orphaned if each not in tombstones or not tombstones[each].confirmed)
    loses_confs = tree.is_without_confs and any(not _family(each, facts).startswith("job/") for each in unconfirmed)
    if loses_confs or (tree.state is TreeState.EMPTY and unconfirmed):  # jobs lie in a folder of their own
        problem = f"the tree holds no conf, which would retire {len(unconfirmed)} DAGs"
        return Hold(unconfirmed, Fault("C23", "", problem, _CONFIRM))
    fresh = [dag_id for dag_id in orphaned if dag_id not in tombstones]
    lost = tuple(dag_id for dag_id in fresh if _family(dag_id, facts) not in tree.families)
    were = len(fresh) + sum(dag_id in facts.state.manifests or dag_id in facts.airflow.dags for dag_id in tree.ids)
    if len(lost) >= MASS_RETIRE_AT_LEAST and len(lost) * MASS_RETIRE_SHARE > were:
        problem = f"{len(lost)} of {were} confs have gone at once, which looks like a damaged checkout"
        return Hold(tuple(fresh), Fault("C23", "", problem, _CONFIRM))
    return None


_CONFIRM = "bring the confs back, or confirm it: reconcile --confirm-mass-retire"


def _family(dag_id: str, facts: Facts) -> str:
    """The conf without its version, by the journal, else by the look of the id."""
    entry = facts.state.journal.get(dag_id)
    if entry is not None:
        return entry.family
    conf_type, _, name = dag_id.rpartition("--")[2].partition(".")
    return f"{conf_type}/{name.rpartition('__')[0] or name}"


def _why(dag_id: str, entry: JournalEntry | None, tree: TreeFacts) -> str:
    if entry is None:
        return "no conf of the tree stands for it"
    heirs = sorted(each for each, plan in tree.plans.items() if plan.family == entry.family)
    if heirs:
        return f"{entry.key} was superseded by {' and '.join(heirs)}"
    return f"{entry.key} is gone from the tree ({entry.file})"


def _replays(facts: Facts, entry: JournalEntry, *, now: Instant) -> tuple[JournalEntry, list[Action]]:
    """The next replays of what a DAG owes; Airflow takes one backfill of a DAG at a time."""
    assert entry.pending is not None
    plan, dag = facts.tree.plans.get(entry.dag_id), facts.airflow.dags.get(entry.dag_id)
    past = facts.airflow.past_runs.get(entry.dag_id)
    if plan is None or dag is None or dag.is_stale or past is None or not facts.deployment.owns(dag):
        return entry, []
    if plan.intervals is None or (dag.is_paused and plan.settings.pause is Pause.ALLOW):
        return entry, []  # a replay would wait for ever; it is owed until someone unpauses the DAG
    schedule = plan.intervals
    if isinstance(schedule, JobSchedule):
        schedule = entry.seen(schedule, active_since=now)  # as its timetable has it
    pending, label_ranges = pending_ranges(entry.pending, schedule, past)
    steps: list[Action] = []
    backfills = 1 if entry.dag_id in facts.airflow.backfilling else 0
    for label_range in label_ranges:
        backfills += len(label_range.labels) > 1
        if len(label_range.labels) == 1 or backfills == 1:
            steps.append(Replay(entry.dag_id, label_range, plan.settings.max_active_runs))
    return replace(entry, pending=pending), steps
