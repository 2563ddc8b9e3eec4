"""What loader files in the dags folder call: the good confs and jobs as DAGs, and one exception that lists the bad ones.

::

    # dags/chronon.py                                # dags/chronon_import_errors.py
    from airflow_chronon.dags import build_dags      from airflow_chronon.dags import raise_import_errors

    globals().update(build_dags(near=__file__))      raise_import_errors(near=__file__)
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_chronon.airflow.parsing import asked_dag
from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.core.confs.plan import Plan, RejectedConf, Verdict, faults_of, good_plans
from airflow_chronon.core.describe.description import Neighbours, table_facts
from airflow_chronon.core.describe.page import off_page, plan_page
from airflow_chronon.core.overview.snapshot import snapshot_key
from airflow_chronon.core.records.history import is_active, seen_plan
from airflow_chronon.core.records.manifest import plan_of_manifest
from airflow_chronon.deployment import Deployment
from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.state.folder import Records
from airflow_chronon.state.orphaned_files import conf_file, forget_files

if TYPE_CHECKING:
    from airflow.sdk import DAG


class ImportErrors(Exception):
    """Every bad conf of a deployment at once; the text is what Airflow shows."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's search for unreachable cycles, put off: it goes through every conf of the tree again and again, which is half
    the time of a task's start, and nothing that is built here is given up."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_no_collection()
def build_dags(
    *, near: str | None = None, conf_root: str | Path | None = None, team: str | None = None, match: str | None = None
) -> dict[str, DAG]:
    """One DAG per good conf version, by DAG id. Bad confs are left to :func:`raise_import_errors`.

    ``near`` is the loader's ``__file__``; ``conf_root`` overrides where the confs are. ``team`` and ``match`` (a
    ``type/name`` glob) split a large deployment over several loader files; a selector that fits nothing is an
    :class:`ImportErrors`. At task start only the asked DAG is built.
    """
    found, root = _read(near, conf_root)
    wanted = asked_dag()
    # a task needs no page; the page changes nothing that runs
    picked = _Picked(wanted, team, match, pages=wanted is None)
    verdicts = root.judge(wanted=wanted)
    dags = {dag.dag_id: dag for dag in _Loading(found, root, verdicts, picked, []).all_dags()}
    if wanted is None and near is not None:
        _parse_import_errors_soon(Path(near).parent)
    if (
        wanted is None
        and not dags
        and verdicts
        and not any(picked.fits(key, verdict) for key, verdict in verdicts.items())
    ):
        raise ImportErrors(str(_fits_nothing(picked, root)))
    return dags


def raise_import_errors(*, near: str | None = None, conf_root: str | Path | None = None) -> None:
    """Raise one :class:`ImportErrors` that lists every bad conf and what is wrong with the conf root; else do nothing."""
    if asked_dag() is not None:
        return  # a task is starting: nobody reads import errors here
    found, root = _read(near, conf_root)
    verdicts = root.judge()
    unbuilt: list[RejectedConf] = []
    list(_Loading(found, root, verdicts, _Picked(pages=False), unbuilt).all_dags())  # only for what cannot be built
    lines = [str(problem) for problem in root.problems]
    for each in (*verdicts.values(), *dict.fromkeys(unbuilt)):
        lines += [f"{each.key} ({each.file}): {fault}" for fault in each.faults]
    if lines:
        raise ImportErrors("\n".join(" ".join(line.splitlines()) for line in lines))


def _parse_import_errors_soon(folder: Path) -> None:
    """Have the loader file of import errors parsed after the DAGs were: a file that produces no DAG can be asked for in no other way
    than by its time. Where the folder cannot be written to, it waits for its interval."""
    for file in folder.glob("*.py"):
        with suppress(OSError, UnicodeDecodeError):
            if raise_import_errors.__name__ in file.read_text(encoding="utf-8"):
                file.touch()


@dataclass(frozen=True)
class _Picked:
    """Which DAGs a loader file asks for; everything by default."""

    wanted: str | None = None  #: the DAG of the task that is starting
    team: str | None = None
    match: str | None = None
    pages: bool = True  #: whether the DAGs get their pages

    def fits(self, key: str, verdict: Verdict) -> bool:
        """Whether a conf or job is picked, good or not; the name of one without a plan begins with its team."""
        plan = verdict.plan
        team = key.partition("/")[2].partition(".")[0] if plan is None else plan.team
        return (self.team is None or team == self.team) and (self.match is None or fnmatchcase(key, self.match))

    def takes(self, dag_id: str, *, key: str, team: str) -> bool:
        if self.wanted is not None and dag_id != self.wanted:
            return False
        return (self.team is None or team == self.team) and (self.match is None or fnmatchcase(key, self.match))


@dataclass(frozen=True)
class _Loading:
    """One parse of a loader file: what was found, and which of it is asked for."""

    found: Deployment
    root: ConfRoot
    verdicts: Mapping[str, Verdict]
    picked: _Picked
    bad: list[RejectedConf]  #: what stands against building a DAG is put there

    @cached_property
    def plans(self) -> list[Plan]:
        return good_plans(self.verdicts)

    @cached_property
    def neighbours(self) -> Neighbours | None:
        return Neighbours.of(self.plans) if self.picked.pages else None

    def all_dags(self) -> Iterator[DAG]:
        """The DAGs of what is gone, then of all good confs and jobs, each under its own guard."""
        yield from self._kept()
        yield from self._built()

    def _built(self) -> Iterator[DAG]:
        """The DAGs of the good confs and jobs; a job's schedule is as its record knows it (H14)."""
        from airflow_chronon.airflow.assets import TableAssets
        from airflow_chronon.airflow.dags.plans import build_dag

        found, root, picked, neighbours = self.found, self.root, self.picked, self.neighbours
        assets = TableAssets(
            root.namespace_prefix,
            None if neighbours is None else neighbours.tables,
            snapshot_key(found.bundle, root.branch),
        )
        chosen = [plan for plan in self.plans if picked.takes(plan.dag_id, key=plan.key, team=plan.team)]
        records, waiting = Records(), [plan.dag_id for plan in chosen if plan.starts_when_seen]
        if waiting:
            try:
                records = found.open_state(root).read_records(waiting)
            except ChrononError as error:
                self._no_state(error)
                # without it nobody knows since when the jobs count: their DAGs stay, and fire no more until it can be read
        self._damaged(records)
        for plan in chosen:
            if plan.is_left_out:
                continue
            try:
                record, page = records.found.get(plan.dag_id), ""
                if picked.pages:
                    is_seen = is_active(plan, record)
                    page = plan_page(plan, neighbours=neighbours, is_active=is_seen, held_on=root.held_on)
                path = str(root.path / plan.file)
                yield build_dag(seen_plan(plan, record), path=path, doc=page, assets=assets)
            except Exception as error:
                self._not_built(error, key=plan.key, file=plan.file)

    def _kept(self) -> Iterator[DAG]:
        """The DAGs of confs that are gone, broken or of another environment now, off, from their records (C23).

        Without them, runs in progress would hang: a task that starts must find its DAG. They end once the reconciler has
        archived them.
        """
        found, root, picked, neighbours = self.found, self.root, self.picked, self.neighbours
        good = frozenset(plan.dag_id for plan in self.plans)
        if picked.wanted in good or not root.is_branch_known:
            return
        from airflow_chronon.airflow.assets import TableAssets
        from airflow_chronon.airflow.dags.plans import Fires, build_dag

        try:
            state = found.open_state(root)
            records = state.read_records(state.dag_ids() - good if picked.wanted is None else {picked.wanted})
            orphaned_files = found.orphaned_files / state.prefix  # other branches keep theirs beside it
            if picked.wanted is not None and orphaned_files.is_dir():
                forget_files(orphaned_files, keep=state.dag_ids())
        except ChrononError as error:
            self._no_state(error)
            return
        self._damaged(records)
        for dag_id, record in sorted(records.found.items()):
            manifest = record.manifest if record.keeps_dag else None
            if manifest is None or not picked.takes(dag_id, key=manifest.key, team=manifest.team):
                continue
            try:
                plan = plan_of_manifest(manifest)
                path = conf_file(manifest, folder=orphaned_files, writes=picked.wanted is not None)
                page = ""
                if picked.pages:
                    page = off_page(plan, self.verdicts, problems=root.other_problems, held_on=root.held_on)
                facts = None if neighbours is None else {**table_facts(plan), **neighbours.tables}
                assets = TableAssets(root.namespace_prefix, facts, snapshot_key(found.bundle, root.branch))
                yield build_dag(plan, path=path, doc=page, assets=assets, fires=Fires.NEVER)
            except Exception as error:
                self._not_built(error, key=dag_id, file=self._record_place)

    @property
    def _record_place(self) -> str:
        return f"its record in {self.found.shown_state_root}"

    def _no_state(self, error: ChrononError) -> None:
        self.bad.append(RejectedConf("state folder", self.found.shown_state_root, (error.fault,)))

    def _damaged(self, records: Records) -> None:
        self.bad.extend(RejectedConf(dag_id, self._record_place, (why,)) for dag_id, why in records.damaged.items())

    def _not_built(self, error: Exception, *, key: str, file: str) -> None:
        """Whatever stands against one DAG must not cost the others."""
        self.bad.append(RejectedConf(key, file, faults_of(error, otherwise="its DAG cannot be built")))


def _fits_nothing(picked: _Picked, root: ConfRoot) -> Fault:
    """Without it a typo in a loader file would take all its DAGs away in silence."""
    given = {"team": picked.team, "match": picked.match}
    shown = " and ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    problem = f"build_dags({shown}) fits no conf and no job under {root.path}"
    return Fault("C23", "", problem, "mend the selector, or remove this loader file")


def _read(near: str | None, conf_root: str | Path | None) -> tuple[Deployment, ConfRoot]:
    from airflow_chronon.airflow.config import deployment_of

    found = deployment_of(near=near, conf_root=conf_root)
    root = found.with_state(found.read_root())
    if asked_dag() is None:  # the dag processor parses what is deployed; a task leaves the state alone
        found.keep_settings(root)
    return found, root
