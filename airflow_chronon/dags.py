"""What loader files in the dags folder call: the good confs and jobs as DAGs, and one exception that lists the bad ones.

::

    # dags/chronon.py                                # dags/chronon_import_errors.py
    from airflow_chronon.dags import build_dags      from airflow_chronon.dags import raise_import_errors

    globals().update(build_dags(near=__file__))      raise_import_errors(near=__file__)
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_chronon.conf_root.branches import with_branch
from airflow_chronon.conf_root.root import ConfRoot, read_conf_root
from airflow_chronon.core.confs.conf import ConfKey
from airflow_chronon.core.confs.resolve import ConfPlan, RejectedConf
from airflow_chronon.core.describe.job_page import job_page
from airflow_chronon.core.describe.page import conf_page
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.jobs.verdicts import Verdict
from airflow_chronon.core.plan.facts import Deployment as PlanDeployment
from airflow_chronon.core.plan.history import as_seen
from airflow_chronon.core.plan.manifest import DeployedManifest, plan_of_manifest
from airflow_chronon.core.settings.model import Unscheduled
from airflow_chronon.errors import ChrononError, Fault, Rejected
from airflow_chronon.state.folder import Records, StateFolder, open_state
from airflow_chronon.state.orphaned_files import conf_file, forget_files

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_chronon.airflow.config import Deployment


class ImportErrors(Exception):
    """Every bad conf of a deployment at once; the text is what Airflow shows."""


def build_dags(
    *, near: str | None = None, conf_root: str | Path | None = None, team: str | None = None, match: str | None = None
) -> dict[str, DAG]:
    """One DAG per good conf version, by DAG id. Bad confs are left to :func:`raise_import_errors`.

    ``near`` is the loader's ``__file__``; ``conf_root`` overrides where the confs are. ``team`` and ``match`` (a
    ``type/name`` glob) split a large deployment over several loader files. At task start only the asked DAG is built.
    """
    found, root = _read(near, conf_root)
    wanted = _asked_dag()
    verdicts = root.judge(wanted=wanted)
    # a task needs no page; the page changes nothing that runs
    picked = _Picked(wanted, team, match, pages=wanted is None)
    dags = (*_kept(found, root, verdicts, picked), *_all_built(found, root, verdicts, picked))
    return {dag.dag_id: dag for dag in dags if not isinstance(dag, RejectedConf)}


def raise_import_errors(*, near: str | None = None, conf_root: str | Path | None = None) -> None:
    """Raise one :class:`ImportErrors` that lists every bad conf and what is wrong with the conf root; else do nothing."""
    if _asked_dag() is not None:
        return  # a task is starting: nobody reads import errors here
    found, root = _read(near, conf_root)
    verdicts = root.judge()
    rejected = [verdict for verdict in verdicts.values() if isinstance(verdict, RejectedConf)]
    picked = _Picked(pages=False)
    dags = (*_all_built(found, root, verdicts, picked), *_kept(found, root, verdicts, picked))
    rejected += dict.fromkeys(each for each in dags if isinstance(each, RejectedConf))
    lines = [str(problem) for problem in root.problems]
    lines += [f"{each.key} ({each.file}): {fault}" for each in rejected for fault in each.faults]
    if lines:
        raise ImportErrors("\n".join(lines))


@dataclass(frozen=True)
class _Picked:
    """Which DAGs a loader file asks for; everything by default."""

    wanted: str | None = None  #: the DAG of the task that is starting
    team: str | None = None
    match: str | None = None
    pages: bool = True  #: whether the DAGs get their pages

    def takes(self, dag_id: str, *, key: str, team: str) -> bool:
        if self.wanted is not None and dag_id != self.wanted:
            return False
        return (self.team is None or team == self.team) and (self.match is None or fnmatchcase(key, self.match))


def _all_built(
    found: Deployment, root: ConfRoot, verdicts: Mapping[str, Verdict], picked: _Picked
) -> Iterator[DAG | RejectedConf]:
    """The DAGs of all good confs and jobs."""
    yield from _built(root, verdicts, picked)
    yield from _jobs_built(found, root, verdicts, picked)


def _built(root: ConfRoot, verdicts: Mapping[str, Verdict], picked: _Picked) -> Iterator[DAG | RejectedConf]:
    """Each good conf's DAG, or why it could not be built; each under its own guard."""
    plans = [verdict for verdict in verdicts.values() if isinstance(verdict, ConfPlan)]
    if not plans:
        return
    from airflow_chronon.airflow.dags.conf import (
        build_dag,  # not at the start of a job's task: it takes a tenth of a second
    )

    dag_ids = {plan.conf.key: plan.dag_id for plan in plans}
    consumers = _consumers(plans)
    for plan in plans:
        key = str(plan.conf.key)
        if not picked.takes(plan.dag_id, key=key, team=plan.conf.meta.team):
            continue
        if not plan.runs.modes and plan.settings.unscheduled is Unscheduled.OMIT:
            continue
        try:
            page = conf_page(plan, dag_ids=dag_ids, consumers=consumers[plan.conf.key]) if picked.pages else ""
            yield build_dag(
                plan, conf_path=str(root.path / plan.conf.file), doc=page, namespace_prefix=root.namespace_prefix
            )
        except Exception as error:
            yield _not_built(error, key=key, file=plan.conf.file)


def _jobs_built(
    found: Deployment, root: ConfRoot, verdicts: Mapping[str, Verdict], picked: _Picked
) -> Iterator[DAG | RejectedConf]:
    """Each good job's DAG, with its schedule as its record knows it (H14)."""
    from airflow_chronon.airflow.dags.job import build_job_dag

    plans = [verdict for verdict in verdicts.values() if isinstance(verdict, JobPlan)]
    picked_plans = [plan for plan in plans if picked.takes(plan.dag_id, key=plan.key, team=plan.team)]
    records, scheduled = Records(), [plan.dag_id for plan in picked_plans if plan.schedule is not None]
    if scheduled:
        try:
            records = _state_of(found, root).read_records(scheduled)
        except ChrononError as error:
            yield RejectedConf("state folder", found.state_root, (error.fault,))
            # without it nobody knows since when the jobs count: their DAGs stay, and fire no more until it can be read
    for dag_id, fault in records.damaged.items():
        yield RejectedConf(dag_id, f"its record in {found.state_root}", (fault,))
    for plan in picked_plans:
        try:
            schedule = plan.schedule
            seen = None if schedule is None else as_seen(schedule, records.found.get(plan.dag_id))
            is_active = seen is None or seen.enabled
            page = job_page(plan, is_active=is_active) if picked.pages else ""
            yield build_job_dag(replace(plan, schedule=seen), job_path=str(root.path / plan.file), doc=page)
        except Exception as error:
            yield _not_built(error, key=plan.key, file=plan.file)


def _state_of(found: Deployment, root: ConfRoot) -> StateFolder:
    return open_state(found.state_root, deployment=PlanDeployment(root.branch, found.bundle))


def _kept(
    found: Deployment, root: ConfRoot, verdicts: Mapping[str, Verdict], picked: _Picked
) -> Iterator[DAG | RejectedConf]:
    """The DAGs of confs that are gone, broken or of another environment now, off, from their records (C23).

    Without them, runs in progress would hang: a task that starts must find its DAG. They end once the reconciler has
    archived them.
    """
    good = {verdict.dag_id for verdict in verdicts.values() if isinstance(verdict, ConfPlan | JobPlan)}
    if picked.wanted in good or not root.is_branch_known:
        return
    try:
        state = _state_of(found, root)
        records = state.read_records(state.dag_ids() - good if picked.wanted is None else {picked.wanted})
        orphaned_files = found.orphaned_files / state.prefix  # other branches keep theirs beside it
        if picked.wanted is not None and orphaned_files.is_dir():
            forget_files(orphaned_files, keep=state.dag_ids())
    except ChrononError as error:
        yield RejectedConf("state folder", found.state_root, (error.fault,))
        return
    for dag_id, fault in records.damaged.items():
        yield RejectedConf(dag_id, f"its record in {found.state_root}", (fault,))
    for dag_id, record in sorted(records.found.items()):
        manifest = record.manifest if record.keeps_dag else None
        if manifest is None or not picked.takes(dag_id, key=manifest.key, team=manifest.team):
            continue
        try:
            path = conf_file(manifest, folder=orphaned_files, writes=picked.wanted is not None)
            yield _switched_off(manifest, path=path, namespace_prefix=root.namespace_prefix)
        except Exception as error:
            yield _not_built(error, key=dag_id, file=f"its record in {found.state_root}")


def _switched_off(manifest: DeployedManifest, *, path: str, namespace_prefix: str) -> DAG:
    """The DAG of a conf or job that is gone."""
    plan = plan_of_manifest(manifest)
    page = f"`{plan.key}` ({plan.file}) is no longer deployed. This DAG fires no more; it is kept for its last runs."
    from airflow_chronon.airflow.timetables.fires import Fires

    if isinstance(plan, JobPlan):
        from airflow_chronon.airflow.dags.job import build_job_dag

        return build_job_dag(plan, job_path=path, doc=page, fires=Fires.NEVER)
    from airflow_chronon.airflow.dags.conf import build_dag

    return build_dag(plan, conf_path=path, doc=page, namespace_prefix=namespace_prefix, fires=Fires.NEVER)


def _not_built(error: Exception, *, key: str, file: str) -> RejectedConf:
    """Whatever stands against one DAG must not cost the others."""
    if isinstance(error, Rejected):
        return RejectedConf(key, file, error.faults)
    if isinstance(error, ChrononError):
        return RejectedConf(key, file, (error.fault,))
    problem = f"its DAG cannot be built: {type(error).__name__}: {error}"
    return RejectedConf(key, file, (Fault("input", "", problem, "report this with the conf"),))


def _consumers(plans: list[ConfPlan]) -> Mapping[ConfKey, set[ConfKey]]:
    found: dict[ConfKey, set[ConfKey]] = defaultdict(set)
    for plan in plans:
        for producer in plan.producers:
            found[producer].add(plan.conf.key)
    return found


def _read(near: str | None, conf_root: str | Path | None) -> tuple[Deployment, ConfRoot]:
    from airflow_chronon.airflow.config import find_deployment

    found = find_deployment(near=near, conf_root=conf_root)
    root = read_conf_root(found.conf_root, environ=os.environ, branch=found.branch)
    return found, with_branch(root, bundle=found.bundle, state_root=found.state_root)


def _asked_dag() -> str | None:
    """The DAG that a starting task asks for; None when the whole file is being parsed."""
    from airflow.sdk import get_parsing_context

    return get_parsing_context().dag_id
