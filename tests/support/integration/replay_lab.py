"""A real Airflow whose confs run a job that tells when it works on what, and that tests can hold."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_api import DagRun

from tests.support.confs import Document, staging_query
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.real_airflow import RealAirflow, run_real_airflow

#: Says that it begins, waits while it is held, lands its partitions unless it is told to fail, says that it has ended.
JOB = """
import json, os, pathlib, sys, time
table, lab = sys.argv[1], pathlib.Path(sys.argv[2])
labels = os.environ.get("CHRONON_PARTITIONS", "")
labels = [label for label in labels.split(",") if label]
def tell(what):
    with (lab / "told").open("a") as file:
        line = {"what": what, "run": os.environ["CHRONON_RUN_ID"], "table": table, "labels": labels, "at": time.time()}
        line |= {"pid": os.getpid(), "branch": os.environ.get("LAB_BRANCH", "")}
        file.write(json.dumps(line) + "\\n")
tell("begins")
while (lab / f"hold {table}").exists():
    time.sleep(0.1)
slow = lab / f"slow {table}"
time.sleep(float(slow.read_text()) if slow.exists() else 0)
failing = lab / f"fail {table}"
if failing.exists() and set(failing.read_text().split()) & set(labels):
    tell("fails")
    sys.exit(1)
for label in labels:
    folder = pathlib.Path(os.environ["CHRONON_WAREHOUSE"]) / table / f"ds={label}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_SUCCESS").touch()
tell("ends")
"""


@dataclass(frozen=True)
class Lab:
    """The running Airflow, and the folder through which jobs and tests talk."""

    airflow: RealAirflow
    folder: Path

    def deploy(self, document: Document) -> str:
        """Put a conf into the tree and return its DAG id."""
        path = self._path(document)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), encoding="utf-8")
        self.airflow.parse_soon()
        return f"staging_query.{document['metaData']['name']}"

    def deploy_on(self, branch: str, document: Document) -> str:
        """Put a conf into the tree of a branch, a deployment of its own in this Airflow, and return its DAG id."""
        root = self.airflow.dags / f"chronon_{branch}"
        path = self._path(document, root=root)
        path.parent.mkdir(parents=True, exist_ok=True)
        own = f"kind: command, env: {{LAB_BRANCH: {branch}}},"
        settings = (self.airflow.conf_root / "chronon.yaml").read_text().replace("kind: command,", own)
        (root / "chronon.yaml").write_text(f"{settings}branch: {branch}\n")
        path.write_text(json.dumps(document), encoding="utf-8")
        (self.airflow.dags / f"chronon_of_{branch}.py").write_text(
            "from airflow_chronon.dags import build_dags\n\n"
            f"globals().update(build_dags(near=__file__, conf_root={str(root)!r}))\n"
        )
        self.airflow.parse_soon()
        return f"{branch}--staging_query.{document['metaData']['name']}"

    def _path(self, document: Document, *, root: Path | None = None) -> Path:
        name = document["metaData"]["name"].removeprefix("t.")
        return (root or self.airflow.conf_root) / "compiled" / "staging_queries" / "t" / name

    def withdraw(self, document: Document, *, branch: str = "") -> None:
        """Take a conf out of the tree, or out of that of a branch."""
        self._path(document, root=self.airflow.dags / f"chronon_{branch}" if branch else None).unlink()
        self.airflow.parse_soon()

    def wait_for(self, *dag_ids: str) -> None:
        """Return once Airflow knows these DAGs."""
        for dag_id in dag_ids:
            wait_until(lambda dag_id=dag_id: self.airflow.api.dag(dag_id), timeout=120, why=f"{dag_id} is known")

    def table(self, name: str) -> str:
        return f"ns.{name.replace('.', '_')}"

    @contextmanager
    def holding(self, table: str) -> Iterator[None]:
        """Jobs of a table do not end inside the block."""
        hold = self.folder / f"hold {table}"
        hold.touch()
        try:
            yield
        finally:
            hold.unlink(missing_ok=True)

    def slow(self, table: str, seconds: float) -> None:
        """From now on each job of a table takes so long."""
        (self.folder / f"slow {table}").write_text(str(seconds))

    def fail(self, table: str, *labels: str) -> None:
        """From now on the jobs of these labels fail."""
        (self.folder / f"fail {table}").write_text(" ".join(labels))

    def told(self, table: str) -> list[dict[str, Any]]:
        """What the jobs of a table have told, in order."""
        file = self.folder / "told"
        lines = file.read_text().splitlines() if file.exists() else []
        return [entry for line in lines if (entry := json.loads(line))["table"] == table]

    def ended(self, run: DagRun, *, timeout: float = 180) -> DagRun:
        """The run once it has ended."""

        def end() -> DagRun | None:
            found = self.airflow.api.run(run.dag_id, run.run_id)
            return found if found.state in ("success", "failed") else None

        return wait_until(end, timeout=timeout, why=f"{run.run_id} ends")

    def task_state(self, run: DagRun, task_id: str = "backfill") -> str | None:
        return self.airflow.api.task_states(run).get(task_id)

    def log_of(self, run: DagRun, task_id: str = "backfill") -> str:
        """The log of the last try of a task."""
        task = next(each for each in self.airflow.api.tasks(run.dag_id, run.run_id) if each.task_id == task_id)
        return self.airflow.api.log_text(task)


def unscheduled(name: str, interval: str, *, dependencies: list[Document] | None = None) -> Document:
    """A staging query that never fires, on a grid of its own."""
    return staging_query(name, schedule="@never", interval=interval, dependencies=dependencies)


def hour(ago: int) -> str:
    """The label of an hour that closed ``ago`` hours before the newest closed one."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return f"{now - timedelta(hours=1 + ago):%Y-%m-%d-%H-%M}"


@contextmanager
def run_replay_lab(base: Path, *, settings: Mapping[str, str] | None = None) -> Iterator[Lab]:
    """Run an Airflow for replays below ``base``."""
    folder = base / "lab"
    folder.mkdir(parents=True)
    script = folder / "job.py"
    script.write_text(JOB)
    chosen = {
        "AIRFLOW__CORE__PARALLELISM": "6",
        "AIRFLOW__DAG_PROCESSOR__STALE_DAG_THRESHOLD": "10",
        "AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL": "5",  # what no DAG refers to any more goes soon
        **(settings or {}),
    }
    with run_real_airflow(base=base / "airflow", settings=chosen) as airflow:
        argv = json.dumps([sys.executable, str(script), "{table}", str(folder)])
        (airflow.conf_root / "chronon.yaml").write_text(
            f"retries: 0\ncatalog: {{kind: filesystem, root: {shlex.quote(str(airflow.warehouse))}}}\n"
            f"runner: {{kind: command, argv: {argv}}}\nsensor: {{poll_seconds: 2, timeout: 10m}}\n"
        )
        (airflow.dags / "chronon.py").write_text(
            "from airflow_chronon.dags import build_dags\n\nglobals().update(build_dags(near=__file__))\n"
        )
        yield Lab(airflow, folder)
