"""The facts that a plan is worked out from, as plain values: the tree, Airflow, and what the state folder remembers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from hashlib import sha256

from airflow_chronon.core.bounds import MAX_TAG
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.conf import Conf
from airflow_chronon.core.confs.naming import dag_id, id_stem, job_dag_id
from airflow_chronon.core.confs.plan import Plan, RejectedConf, Verdict, good_plans
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.jobs.document import Job
from airflow_chronon.core.records.manifest import OFF_TAG, family_of
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.core.runs.states import KnownRun
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.errors import Fault

CHRONON_TAG = "chronon"


class TreeState(Enum):
    """Whether what was found under the conf root can be the whole truth."""

    WHOLE = "whole"
    EMPTY = "empty"  #: no conf at all, or no conf root
    UNREADABLE = "unreadable"  #: its settings or one of its folders cannot be read


@dataclass(frozen=True)
class Deployment:
    """The branch and the DAG bundle whose DAGs a plan may touch (C24)."""

    branch: str
    bundle: str | None  #: Airflow's DAG bundle; None: any, for a branch that is given up as a whole
    given_up: bool = False  #: the branch is to go as a whole, and nobody produces its DAGs any more

    @property
    def tag(self) -> str:
        return branch_tag(self.branch)

    def owns(self, dag: KnownDag) -> bool:
        return {CHRONON_TAG, self.tag} <= dag.tags and (self.bundle is None or dag.bundle == self.bundle)


@dataclass(frozen=True)
class KnownDag:
    """A DAG that Airflow has."""

    dag_id: str
    tags: frozenset[str]
    bundle: str | None = None
    is_paused: bool = False
    is_stale: bool = False  #: no file produces it, or its file cannot be imported
    has_import_errors: bool = False
    file: str | None = None  #: that produced it, within its bundle

    @property
    def fires_no_more(self) -> bool:
        """Whether the loader has switched it off, or produces it no longer."""
        return self.is_stale or OFF_TAG in self.tags

    @property
    def branch(self) -> str | None:
        """The branch that its tags name."""
        return next((tag.removeprefix("branch:") for tag in self.tags if tag.startswith("branch:")), None)


@dataclass(frozen=True)
class TreeFacts:
    """The verdicts of the tree, seen by DAG id."""

    state: TreeState
    problems: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()  #: what is odd and keeps nothing from being deployed
    plans: Mapping[str, Plan] = field(default_factory=dict)  #: the good ones
    ids: frozenset[str] = frozenset()  #: every DAG id that a conf or job of the tree stands for, whatever its verdict
    keys: frozenset[str] = frozenset()  #: ``type/name`` and files of the confs that are not good: they count as present
    bad: tuple[RejectedConf, ...] = ()  #: the confs that are not good, and why
    stems: tuple[str, ...] = ()  #: how the DAG ids of files that cannot be read begin
    folders: tuple[str, ...] = ()  #: those that are not read as a whole (S2): how their files and their DAG ids begin
    families: frozenset[str] = frozenset()  #: of every readable conf, deployed or not

    @property
    def bad_digest(self) -> str:
        """Stands for all that is wrong in the tree: another one means that Airflow shows import errors of before."""
        texts = [str(problem) for problem in self.problems]
        texts += [f"{each.key} {fault}" for each in self.bad for fault in each.faults]
        return sha256("\n".join(sorted(texts)).encode()).hexdigest() if texts else ""

    @property
    def is_without_confs(self) -> bool:
        """Whether there is not one compiled conf, good or bad; jobs may be there."""
        kinds = {text.partition("/")[0] for text in (*self.families, *(each.key for each in self.bad))}
        return kinds <= {"job"}

    @property
    def confs(self) -> Mapping[str, ConfPlan]:
        """The good confs, without jobs."""
        return {dag_id: plan for dag_id, plan in self.plans.items() if isinstance(plan, ConfPlan)}

    def holds(self, dag_id: str, record: DeploymentRecord | None) -> bool:
        """Whether a conf of the tree stands for this DAG; in doubt it does (C23)."""
        if dag_id in self.ids:
            return True
        if record is not None and not self.keys.isdisjoint((record.key, record.file)):
            return True
        if dag_id.startswith(self.folders) or (record is not None and record.file.startswith(self.folders)):
            return True
        return any(re.fullmatch(rf"{re.escape(stem)}(_[0-9a-f]{{8}})?(__.*)?", dag_id) for stem in self.stems)


def tree_facts(
    verdicts: Mapping[str, Verdict],
    confs: Iterable[Conf],
    jobs: Iterable[Job] = (),
    *,
    branch: str,
    default_branch: str,
    unchanged: Iterable[str] = (),
    state: TreeState = TreeState.WHOLE,
    problems: tuple[Fault, ...] = (),
    warnings: tuple[Fault, ...] = (),
) -> TreeFacts:
    """Good, rejected, unreadable and other-environment confs, and jobs: all of them are present (C23).

    ``unchanged`` are the families of what the branch leaves to the default branch (C24): not deployed here, and not lost.
    """
    plans = {plan.dag_id: plan for plan in good_plans(verdicts)}
    readable, readable_jobs = list(confs), list(jobs)

    def id_of(conf: Conf) -> str:
        name, version = conf.name_without_version, conf.version
        return dag_id(conf.key, name=name, version=version, branch=branch, default_branch=default_branch)

    def id_of_job(job: Job) -> str:
        return job_dag_id(name=f"{job.team}.{job.name}", branch=branch, default_branch=default_branch)

    bad = [verdict for verdict in verdicts.values() if isinstance(verdict, RejectedConf)]
    known = {*(str(conf.key) for conf in readable), *(job.key for job in readable_jobs)}
    unread = {verdict.key for verdict in bad if not verdict.key.endswith("/")} - known
    whole = [verdict for verdict in bad if verdict.key.endswith("/")]
    starts = (f"{id_stem(each.key[:-1], branch=branch, default_branch=default_branch)}." for each in whole)
    return TreeFacts(
        state=state,
        problems=problems,
        warnings=warnings,
        plans=plans,
        ids=frozenset((*plans, *map(id_of, readable), *map(id_of_job, readable_jobs))),
        bad=tuple(bad),
        keys=frozenset(text for verdict in bad for text in (verdict.key, verdict.file)),
        stems=tuple(sorted(id_stem(key, branch=branch, default_branch=default_branch) for key in unread)),
        folders=(*(each.file for each in whole), *starts),
        families=frozenset((*map(family_of, readable), *(job.key for job in readable_jobs), *unchanged)),
    )


@dataclass(frozen=True)
class AirflowSettings:
    """Airflow settings that affect backfills and sensors; None where it does not tell."""

    max_dagruns_per_loop: int | None = None
    triggerer_capacity: int | None = None
    parallelism: int | None = None  #: tasks at once, of all DAGs
    passes_over_waiting_runs: bool = False


@dataclass(frozen=True)
class AirflowFacts:
    """What Airflow has: all its DAGs, and of some of them what a plan needs to know besides."""

    dags: Mapping[str, KnownDag] = field(default_factory=dict)  #: every DAG with the tag ``chronon``, of any branch
    contracts: Mapping[str, str] = field(default_factory=dict)  #: the grid that its table was first written on
    active_runs: Mapping[str, int] = field(default_factory=dict)
    idle_runs: Mapping[str, int] = field(default_factory=dict)  #: of the active ones, those that have begun no work
    past_runs: Mapping[str, tuple[KnownRun, ...]] = field(default_factory=dict)
    #: Of jobs that someone paused, the newest that came; 0 for none.
    last_fires: Mapping[str, Instant] = field(default_factory=dict)
    stranded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: by DAG, the ids of runs that never start
    backfilling: frozenset[str] = frozenset()  #: of those with past runs, the DAGs with an active backfill
    settings: AirflowSettings = AirflowSettings()
    problems: Mapping[str, Fault] = field(default_factory=dict)  #: what could not be read of one DAG


@dataclass(frozen=True)
class StateFacts:
    """What the state folder holds of this deployment."""

    records: Mapping[str, DeploymentRecord] = field(default_factory=dict)
    damaged: Mapping[str, Fault] = field(default_factory=dict)  #: DAG ids whose records cannot be read (S9)
    other_tables: Mapping[str, str] = field(default_factory=dict)  #: table: the other branch that writes it
    other_problems: tuple[Fault, ...] = ()  #: what kept other branches' tables from being known
    bad_digest: str = ""  #: of what was wrong in the tree at the last reconcile

    def holds(self, dag_id: str) -> bool:
        return dag_id in self.records or dag_id in self.damaged


@dataclass(frozen=True)
class Facts:
    """Everything a plan is worked out from, but the time."""

    deployment: Deployment
    settings: Settings
    tree: TreeFacts
    airflow: AirflowFacts
    state: StateFacts

    def record(self, dag_id: str) -> DeploymentRecord | None:
        return self.state.records.get(dag_id)

    def dag(self, dag_id: str) -> KnownDag | None:
        """The DAG as something produces it now, if it is this deployment's."""
        dag = self.airflow.dags.get(dag_id)
        return None if dag is None or dag.is_stale or not self.deployment.owns(dag) else dag

    @cached_property
    def dag_ids(self) -> tuple[str, ...]:
        """Every DAG id that a plan is about, in a fixed order."""
        return tuple(sorted({*self.tree.plans, *_known_ids(self.deployment, self.state, self.airflow.dags)}))

    @cached_property
    def orphaned(self) -> tuple[str, ...]:
        """The DAGs of this deployment that no conf of the tree stands for, in a fixed order (C23)."""
        return orphaned_dags(self.deployment, self.tree, self.state, self.airflow.dags)


def orphaned_dags(
    deployment: Deployment, tree: TreeFacts, state: StateFacts, dags: Mapping[str, KnownDag]
) -> tuple[str, ...]:
    """The DAGs of a deployment that no conf of the tree stands for, in a fixed order (C23)."""
    known = _known_ids(deployment, state, dags)
    return tuple(sorted(dag_id for dag_id in known if not tree.holds(dag_id, state.records.get(dag_id))))


def _known_ids(deployment: Deployment, state: StateFacts, dags: Mapping[str, KnownDag]) -> set[str]:
    return {*state.records, *state.damaged, *(dag_id for dag_id, dag in dags.items() if deployment.owns(dag))}


def branch_tag(branch: str) -> str:
    """The tag that the DAGs of a branch carry, as :func:`airflow_chronon.core.confs.naming.tags` writes it."""
    return f"branch:{branch}"[:MAX_TAG]
