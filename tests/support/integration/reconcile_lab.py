"""Deployments on a real Airflow whose trees the tests change, and the commands run against it."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_api import DagRun

from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.state.folder import StateFolder, open_branches
from tests.support.confs import group_by, staging_query
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.real_airflow import RealAirflow, run_real_airflow

LOADER = """
from airflow_chronon.dags import build_dags

globals().update(build_dags(near=__file__, conf_root={root!r}))
"""
#: Nothing fires unless a test says so, and every job sleeps for a while.
SETTINGS = {"enabled": False, "runner": {"kind": "command", "argv": ["sleep", "6"]}, "sensor": {"poll_seconds": 2}}


@dataclass(frozen=True)
class Deployment:
    """One branch's conf root, with a loader file of its own in the dags folder."""

    airflow: RealAirflow
    root: Path
    loader: Path
    branch: str = "main"

    @classmethod
    def beside(cls, airflow: RealAirflow, *, branch: str) -> Deployment:
        """A deployment of its own: nothing is there yet."""
        root = airflow.server.home / "roots" / branch
        root.parent.mkdir(exist_ok=True)
        return cls(airflow, root, airflow.dags / f"{branch.replace('-', '_')}.py", branch)

    def write(
        self, *names: str, group_bys: Iterable[str] = (), settings: dict[str, object] | None = None, **of: object
    ) -> None:
        """Put staging queries, and GroupBys, into the place of the whole tree."""
        fresh = self.root.with_name(f"{self.root.name}.fresh")
        documents = {f"staging_queries/{name.replace('.', '/', 1)}": staging_query(name, **of) for name in names}  # type: ignore[arg-type]
        documents |= {f"group_bys/{name.replace('.', '/', 1)}": group_by(name) for name in group_bys}
        for file, document in documents.items():
            path = fresh / "compiled" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(document))
        fresh.mkdir(exist_ok=True)
        self._switch(fresh, settings)

    def copy(self, tree: Path) -> None:
        """Put a compiled tree into the place of the whole tree."""
        fresh = self.root.with_name(f"{self.root.name}.fresh")
        shutil.copytree(tree, fresh / "compiled")
        self._switch(fresh, None)

    def _switch(self, fresh: Path, settings: dict[str, object] | None) -> None:
        text = json.dumps({"branch": self.branch, **SETTINGS, **(settings or {})})  # JSON is YAML
        (fresh / "chronon.yaml").write_text(text)
        if self.root.exists():
            shutil.rmtree(self.root)
        fresh.rename(self.root)
        if not self.loader.exists():
            self.loader.write_text(LOADER.format(root=str(self.root)))
        self.airflow.parse_soon()

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``airflow-chronon`` as a user of this Airflow would."""
        command = [sys.executable, "-m", "airflow_chronon.cli.main", *arguments]
        return subprocess.run(
            command, env=self.airflow.server.environment, capture_output=True, text=True, timeout=120, check=False
        )

    def reconcile(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = self.command("reconcile", "--root", str(self.root), *arguments)
        self.airflow.parse_soon()
        return done

    def reconciled_until(self, condition: Callable[[], bool], *, why: str) -> None:
        def look() -> bool:
            done = self.reconcile()
            assert done.returncode == 0, done.stdout + done.stderr
            return condition()

        wait_until(look, timeout=300, why=why, every=3)

    def is_settled(self) -> bool:
        """Whether a reconcile would do nothing here, whatever else there is to say."""
        done = self.command("plan", "--root", str(self.root), "--format", "json")
        assert done.returncode == 0, done.stdout + done.stderr
        return all(action["action"] in ("keep", "report") for action in json.loads(done.stdout))

    def state(self) -> StateFolder:
        root = self.airflow.server.environment["AIRFLOW_HOME"] + "/chronon_state"
        return open_branches(root, branch=self.branch)["dags-folder", self.branch]

    def records(self) -> dict[str, DeploymentRecord]:
        return dict(self.state().read_records().found)

    def retiring(self) -> set[str]:
        """The DAGs of the branch that are being retired."""
        return {dag_id for dag_id, record in self.records().items() if record.retirement is not None}

    def archived(self, dag_id: str) -> list[dict[str, object]]:
        """The lines of the newest archive of a DAG."""
        return list(self.state().read_archive(self.state().archives(dag_id)[-1]) or ())

    def wait_for(self, dag_id: str) -> None:
        wait_until(lambda: self.airflow.api.dag(dag_id), timeout=240, why=f"{dag_id} is a DAG")

    def is_gone(self, dag_id: str) -> bool:
        return self.airflow.api.dag(dag_id) is None

    def trigger_and_wait_until_it_works(self, dag_id: str) -> DagRun:
        run = self.airflow.api.trigger(dag_id)
        wait_until(
            lambda: self.airflow.api.task_states(run).get("backfill") == "running",
            timeout=240,
            why="its job is running",
        )
        return run


@contextlib.contextmanager
def run_reconcile_airflow(base: Path, *, settings: Mapping[str, str] | None = None) -> Iterator[RealAirflow]:
    """An Airflow that sees quickly that a file produces a DAG no longer."""
    quick = {"AIRFLOW__DAG_PROCESSOR__STALE_DAG_THRESHOLD": "8", "AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL": "3"}
    with run_real_airflow(base=base, settings={**quick, **(settings or {})}) as running:
        yield running
