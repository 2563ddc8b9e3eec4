"""A Chronon deployment on the real Airflow: dropping confs, landing partitions, asking how runs ended."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_api import ApiError, DagRun, Json, TaskInstance

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf
from tests.support.integration.real_airflow import RealAirflow

ENDED = ("success", "failed")
SETTINGS = """
retries: 0
confs_may_set: [runner, catalog, callbacks]
sensor: {poll_seconds: 1}
catalog: {kind: filesystem, root: "${CHRONON_WAREHOUSE}"}
"""


def utc_now() -> datetime:
    return datetime.now(UTC)


def midnight(*, days_ago: int) -> datetime:
    """The start of a day of the recent past; one day ago is the newest closed daily partition."""
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days_ago)


def day_label(*, days_ago: int) -> str:
    return f"{midnight(days_ago=days_ago):%Y-%m-%d}"


@dataclass(frozen=True)
class Deployment:
    """The conf root of a running Airflow, with its loader files beside it."""

    real: RealAirflow

    def set_up(self) -> None:
        """Copy the loader files as a user would, and write the deployment's settings."""
        (self.real.conf_root / "compiled").mkdir(exist_ok=True)
        (self.real.conf_root / "chronon.yaml").write_text(SETTINGS)
        for loader in ("chronon.py", "chronon_import_errors.py"):
            shutil.copy(ROOT / "dags" / loader, self.real.dags / loader)

    # confs

    def drop(self, *confs: CompiledConf) -> None:
        """Put confs into the folder, or other contents into their files; nobody sees half a file."""
        for conf in confs:
            self._put(conf.file, json.dumps(conf.document))
        self.real.parse_soon()

    def drop_text(self, file: str, text: str) -> None:
        self._put(file, text)
        self.real.parse_soon()

    def _put(self, file: str, text: str) -> None:
        path = self.real.conf_root / "compiled" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}")
        unfinished.write_text(text)
        unfinished.replace(path)

    def deploy(self, *confs: CompiledConf) -> None:
        """Drop confs and return when all of them are DAGs."""
        self.drop(*confs)
        self.wait_for_dags(*confs)

    def wait_for_dags(self, *confs: CompiledConf) -> None:
        wanted = {conf.dag_id for conf in confs}

        def are_there() -> bool:
            self.real.server.check_alive()
            return wanted <= {dag["dag_id"] for dag in self.real.api.dags()}

        wait_until(are_there, timeout=90, why=f"the dropped confs become DAGs: {sorted(wanted)}")

    def withdraw(self, *confs: CompiledConf) -> None:
        """Take confs away, and hold their schedules until Airflow notices."""
        for conf in confs:
            (self.real.conf_root / "compiled" / conf.file).unlink(missing_ok=True)
            try:
                self.real.api.pause(conf.dag_id)
            except ApiError as error:
                if error.status != 404:  # it never became a DAG
                    raise
        self.real.parse_soon()

    def abandon(self, *confs: CompiledConf) -> None:
        """Withdraw confs and end what runs of them.

        They are not deleted: Airflow's dag-processor ends for good when a DAG goes while it stores a parse of it.
        """
        self.withdraw(*confs)
        for conf in confs:
            for state in ("running", "queued"):
                for run in self.real.api.runs(conf.dag_id, state=state):
                    self.real.api.mark_run(run, "failed")

    # partitions

    def land(self, table: str, *labels: str) -> None:
        """What an upstream system does: the partitions are there at once and whole."""
        for label in labels:
            folder = self.real.warehouse / table / f"ds={label}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "_SUCCESS").touch()

    def landed(self, conf: CompiledConf, *, suffix: str = "") -> set[str]:
        """The labels of the table that a conf writes."""
        folders = (self.real.warehouse / f"{conf.table}{suffix}").glob("ds=*/_SUCCESS")
        return {folder.parent.name.removeprefix("ds=") for folder in folders}

    # runs

    def runs(self, conf: CompiledConf, *, run_type: str | None = None) -> list[DagRun]:
        return self.real.api.runs(conf.dag_id, run_type=run_type)

    def run_of(self, conf: CompiledConf, label: str, *, timeout: float = 60) -> DagRun:
        """The scheduled run of a label, once it is there."""
        found = wait_until(
            lambda: [run for run in self.runs(conf, run_type="scheduled") if run.partition_key == label],
            timeout=timeout,
            why=f"{conf.dag_id} gets its scheduled run {label}",
        )
        (run,) = found
        return run

    def end_of(self, run: DagRun, *, timeout: float = 120) -> DagRun:
        """The run once it has ended, well or badly."""

        def ended() -> DagRun | None:
            now = self.real.api.run(run.dag_id, run.run_id)
            return now if now.state in ENDED else None

        try:
            found = wait_until(ended, timeout=timeout, why=f"{run.dag_id} {run.run_id} ends")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; its tasks: {self.real.api.task_states(run)}") from None
        assert found is not None
        return found

    def ends_of(self, runs: Iterable[DagRun], *, timeout: float = 180) -> list[DagRun]:
        deadline = time.monotonic() + timeout
        return [self.end_of(run, timeout=max(1.0, deadline - time.monotonic())) for run in list(runs)]

    def task(self, run: DagRun, task_id: str) -> TaskInstance:
        (found,) = (task for task in self.real.api.tasks(run.dag_id, run.run_id) if task.task_id == task_id)
        return found

    def wait_for_task(self, run: DagRun, task_id: str, *states: str, timeout: float = 60) -> TaskInstance:
        """A task once it is in one of the states."""
        wait_until(
            lambda: self.real.api.task_states(run).get(task_id) in states,
            timeout=timeout,
            why=f"{task_id} of {run.dag_id} {run.run_id} is {' or '.join(states)}",
        )
        return self.task(run, task_id)

    def log(self, run: DagRun, task_id: str) -> list[str]:
        """What a task said, one event a line."""
        return [str(item.get("event", "")) for item in self.real.api.log(self.task(run, task_id))]

    def import_errors(self) -> list[str]:
        """What the loader file of import errors says, one message a line, without the frames before it."""
        traces = [e["stack_trace"] for e in self.real.api.import_errors() if "chronon_import_errors" in e["filename"]]
        return [line for trace in traces for line in trace.partition("ImportErrors: ")[2].splitlines()]

    def events(self, run: DagRun) -> list[Json]:
        """The asset events of a run. Airflow answers 500 while a run that one of them created has not started."""
        return wait_until(
            lambda: [self.real.api.asset_events(dag_id=run.dag_id, run_id=run.run_id)],
            timeout=30,
            why=f"the asset events of {run.dag_id} {run.run_id}",
        )[0]
