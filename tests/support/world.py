"""A small world: trees of confs, an Airflow in memory that parses them like the loader, a state folder in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import DagRecord, RunRecord, TaskRecord
from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.confs.documents import ConfType, read_document
from airflow_chronon.core.confs.plan import Plan, RejectedConf
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.jobs.document import Job, read_job
from airflow_chronon.core.plan.build import Confirmation
from airflow_chronon.core.plan.facts import Deployment, TreeState
from airflow_chronon.core.records.history import as_seen
from airflow_chronon.core.records.manifest import plan_of_manifest
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.settings.model import Environment, Settings
from airflow_chronon.errors import Fault
from airflow_chronon.reconcile.gather import Place
from airflow_chronon.reconcile.run import Reconciled, reconcile
from airflow_chronon.state.folder import StateFolder
from airflow_chronon.storage.files import Storage
from tests.support.confs import Document, at, group_by, staging_query

NOW = at("2026-06-10 00:00")
BUNDLE = "dags-folder"


class Killed(BaseException):
    """The reconciler dies here, as from SIGKILL: nothing may catch it."""


def conf(name: str, *, conf_type: ConfType = ConfType.STAGING_QUERY, **of: Any) -> Conf:
    """A readable conf named ``team.name__version``: a staging query, or a GroupBy."""
    build = staging_query if conf_type is ConfType.STAGING_QUERY else group_by
    raw: Document = build(name, **of)
    key = ConfKey(conf_type, name)
    folder = "staging_queries" if conf_type is ConfType.STAGING_QUERY else "group_bys"
    return Conf(key, read_document(conf_type, raw), raw, f"compiled/{folder}/{name.replace('.', '/', 1)}")


def broken(name: str) -> RejectedConf:
    """A conf whose file is no JSON."""
    fault = Fault("input", "", "the file is not JSON", "compile it again")
    return RejectedConf(f"staging_query/{name}", f"compiled/staging_queries/{name.replace('.', '/', 1)}", (fault,))


def job(name: str = "hourly", *, cron: str | None = "0 * * * *", version: int = 1, **schedule: object) -> Job:
    """The job ``etl.<name>``."""
    document: dict[str, object] = {"version": version, "runner": {"kind": "command", "argv": ["true"]}}
    if cron is not None:
        document["schedule"] = {"cron_expression": cron, **schedule}
    return read_job(json.dumps(document), team="etl", name=name, file=f"jobs/etl/{name}.yaml", environ={})


def tree(*confs: Conf | Job | RejectedConf, state: TreeState | None = None, **settings: object) -> ConfRoot:
    """A conf root that holds these confs; without any it is empty."""
    readable = tuple(each for each in confs if isinstance(each, Conf))
    jobs = tuple(each for each in confs if isinstance(each, Job))
    unreadable = tuple(each for each in confs if isinstance(each, RejectedConf))
    found = state or (TreeState.WHOLE if confs else TreeState.EMPTY)
    problems = () if found is TreeState.WHOLE else (Fault("input", "", f"the conf root is {found.value}"),)
    settings = {"catalog": {"kind": "filesystem", "root": "warehouse"}, **settings}
    return ConfRoot(
        Path("root"), Settings.model_validate(settings), readable, unreadable, problems, state=found, jobs=jobs
    )


@dataclass
class MemoryStorage:
    """State files in a dictionary; ``before`` is called ahead of each change and may raise."""

    contents: dict[str, bytes] = field(default_factory=dict)
    before: Callable[[str], None] = lambda what: None
    place: str = "memory"
    storage: object = None  #: in no folder that could be locked

    def names(self, folder: str) -> tuple[str, ...]:
        prefix = f"{folder.rstrip('/')}/" if folder else ""
        return tuple(
            sorted({path[len(prefix) :].partition("/")[0] for path in self.contents if path.startswith(prefix)})
        )

    def read(self, path: str) -> bytes | None:
        return self.contents.get(path)

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | None]:
        return {path: self.contents[path] for path in paths if path in self.contents}

    def write(self, path: str, data: bytes) -> None:
        self.before(f"write {path}")
        self.contents[path] = data

    def remove(self, path: str) -> None:
        self.before(f"remove {path}")
        self.contents.pop(path, None)

    def move(self, path: str, to: str) -> None:
        if (data := self.read(path)) is not None:
            self.write(to, data)
            self.remove(path)


@dataclass
class World:
    """One Airflow with the deployments of several branches in it."""

    airflow: FakeAirflow = field(default_factory=FakeAirflow)
    files: MemoryStorage = field(default_factory=MemoryStorage)
    trees: dict[str, ConfRoot] = field(default_factory=dict)  #: by branch
    now: int = NOW
    run_number: int = 0

    def deployment(self, branch: str = "main") -> Deployment:
        return Deployment(branch, BUNDLE)

    def state(self, branch: str = "main") -> StateFolder:
        return StateFolder(cast("Storage", self.files), f"{BUNDLE}/{branch}/")

    def deploy(self, *confs: Conf | Job | RejectedConf, branch: str = "main", **settings: Any) -> None:
        """Put another tree into the place of a branch's tree."""
        self.trees[branch] = tree(*confs, branch=branch, **settings)

    def place(self, branch: str = "main") -> Place:
        return Place(self.trees[branch], self.deployment(branch), self.state(branch), "memory://unused", self.airflow)

    def reconcile(self, branch: str = "main", *, confirmed: bool = False) -> Reconciled:
        confirmation = Confirmation.MASS_RETIRE if confirmed else Confirmation.NONE
        return reconcile(self.place(branch), by="a test", now=self.now, confirmation=confirmation)

    def records(self, branch: str = "main") -> dict[str, DeploymentRecord]:
        """What is remembered of the DAGs of a branch; damaged records are left out."""
        return dict(self.state(branch).read_records().found)

    def retiring(self, branch: str = "main") -> set[str]:
        """The DAGs of a branch that are being retired."""
        return {dag_id for dag_id, record in self.records(branch).items() if record.retirement is not None}

    # what Airflow does meanwhile

    def parse(self) -> None:
        """The dag processor reads every loader file: good confs, and the records of those that are gone."""
        produced: dict[str, tuple[Plan, bool]] = {}
        records: dict[str, DeploymentRecord] = {}
        for branch, root in self.trees.items():
            facts, held = root.facts(), self.records(branch)
            records |= held
            for dag_id in held.keys() - facts.plans.keys():
                manifest = held[dag_id].manifest
                if manifest is not None and held[dag_id].keeps_dag:
                    with suppress(Exception):  # the loader shows it as an import error, and goes on
                        produced[dag_id] = (plan_of_manifest(manifest), False)
            produced |= {dag_id: (plan, True) for dag_id, plan in facts.plans.items()}
        for dag_id, record in self.airflow.dag_records.items():
            self.airflow.dag_records[dag_id] = replace(record, is_stale=dag_id not in produced)
        for dag_id, (plan, _) in produced.items():
            known = self.airflow.dag_records.get(dag_id) or DagRecord(dag_id)
            fresh = replace(known, tags=frozenset(plan.tags), bundle=BUNDLE, is_stale=False)
            self.airflow.dag_records[dag_id] = fresh
            if isinstance(plan, ConfPlan):
                self.airflow.specs[dag_id] = plan.spec
            elif isinstance(plan.schedule, IntervalSchedule):
                self.airflow.jobs[dag_id] = as_seen(plan.schedule, records.get(dag_id))
        self.firing = {
            dag_id
            for dag_id, (plan, fires) in produced.items()
            if fires and plan.schedule is not None and plan.schedule.is_on
        }

    firing: set[str] = field(default_factory=set)

    def fire(self, dag_id: str, *, state: str = "running") -> RunRecord | None:
        """The scheduler makes a run, if the DAG fires at all."""
        record = self.airflow.dag_records.get(dag_id)
        if record is None or dag_id not in self.firing or record.is_paused:
            return None
        self.run_number += 1
        run = RunRecord(dag_id, f"scheduled__{self.run_number}", "scheduled", state, note=f"note {self.run_number}")
        self.airflow.run_records.append(run)
        self.airflow.task_records.append(TaskRecord(dag_id, run.run_id, "backfill", state, start=1.0))
        return run

    def finish(self, dag_ids: Iterable[str] | None = None) -> None:
        """Runs in progress end, where something still produces their DAG and nobody paused it."""
        for index, run in enumerate(self.airflow.run_records):
            record = self.airflow.dag_records[run.dag_id]
            if (
                run.is_active
                and not record.is_stale
                and not record.is_paused
                and (dag_ids is None or run.dag_id in dag_ids)
            ):
                self.airflow.run_records[index] = replace(run, state="success", start=run.start or self.now)
        ended = {(run.dag_id, run.run_id) for run in self.airflow.run_records if not run.is_active}
        self.airflow.task_records = [
            replace(task, state="success") if (task.dag_id, task.run_id) in ended else task
            for task in self.airflow.task_records
        ]

    def converge(self, branch: str = "main", *, rounds: int = 12) -> None:
        """Parse, finish and reconcile until nothing changes any more."""
        for _ in range(rounds):
            self.parse()
            self.finish()
            if self.reconcile(branch).plan.is_up_to_date:
                return
        raise AssertionError(f"not up to date: {self.reconcile(branch).plan}")

    # what a user sees

    def live(self, branch: str = "main") -> set[str]:
        """The DAGs of a branch that a user sees in the list."""
        tag = self.deployment(branch).tag
        return {dag_id for dag_id, dag in self.airflow.dag_records.items() if tag in dag.tags and not dag.is_stale}

    def history(self, dag_id: str) -> set[str]:
        """The runs of a DAG that Airflow or the archive of its branch holds."""
        held = {run.run_id for run in self.airflow.run_records if run.dag_id == dag_id}
        for branch in self.trees:
            state = self.state(branch)
            for name in state.archives(dag_id):
                held |= {line["run_id"] for line in state.read_archive(name) or () if line["kind"] == "run"}
        return held

    def kill_at(self, number: int) -> Callable[[], None]:
        """Die at the ``number``-th change to the state folder or call of Airflow; returns how to stop that."""
        left = number

        def count(_: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed

        self.files.before = self.airflow.before = count

        def calm() -> None:
            self.files.before = self.airflow.before = lambda what: None

        return calm


ONE, TWO, THREE = (conf(f"t.s.{name}__1") for name in ("one", "two", "three"))
ID = "staging_query.t.s.one__1"
#: The ways in which the first of them may be there and not run.
BAD = [
    pytest.param(broken("t.s.one__1"), id="no JSON"),
    pytest.param(broken("t.s.one"), id="named otherwise than its file"),
    pytest.param(conf("t.s.one__1", schedule="0 0 31 2 *"), id="breaks a rule"),
    pytest.param(conf("t.s.one__1", environments=[int(Environment.CANARY)]), id="of another environment"),
]


def deployed(*confs: Conf | Job | RejectedConf, **settings: Any) -> World:
    """A world in which these are deployed and nothing is left to do."""
    world = World()
    world.deploy(*confs, **settings)
    world.converge()
    return world


def go_on(world: World, *, rounds: int = 8) -> None:
    """Let backfills end and the reconciler come again."""
    for _ in range(rounds):
        world.reconcile()
        world.finish()
        world.airflow.backfill_records = [replace(each, completed=world.now) for each in world.airflow.backfill_records]
