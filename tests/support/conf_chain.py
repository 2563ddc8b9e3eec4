"""Four hourly confs in a row, and the Airflow that runs them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.login import ENVIRONMENT_VARIABLE
from airflow_chronon.airflow_api.records import DagRecord, RunRecord, TaskRecord
from airflow_chronon.core.calendar.instants import HOUR, MINUTE
from tests.support.command_line import Answer, Command
from tests.support.confs import at, dependency, staging_query

#: Each reads the same hour of the one before it; the first reads a table that nobody here writes.
CHAIN = ("raw", "clean", "joined", "top")
SOURCE = "vendor.events"
LABEL = "2026-06-01-03-00"
FORMAT = "yyyy-MM-dd-HH-mm"
NOW = at("2026-06-01 05:30")


def key(step: str) -> str:
    return f"staging_query/t.{step}__1"


def dag(step: str) -> str:
    return f"staging_query.t.{step}__1"


def table(step: str) -> str:
    return f"ns.t_{step}__1"


@dataclass
class Chain:
    """Four confs in a row, hourly, and the Airflow that runs them."""

    root: Path
    airflow: FakeAirflow
    command: Command

    def ask(self, step: str = "top", label: str = LABEL, *more: str) -> Answer:
        return self.command("why", key(step), label, "--root", self.root, "--format", "json", *more)

    def text(self, step: str = "top", label: str = LABEL) -> str:
        answer: Answer = self.command("why", key(step), label, "--root", self.root)
        return answer.out

    def root_of(self, step: str = "top") -> dict[str, Any]:
        """The one root of a tree that has no branches."""
        found = self.ask(step).json
        while "because" in found:
            (found,) = found["because"]
        return found

    def land(self, name: str, *labels: str) -> None:
        for label in labels:
            folder = self.root / "warehouse" / name / f"ds={label}"
            folder.mkdir(parents=True)
            (folder / "part-0.parquet").touch()

    def run(self, step: str, state: str, label: str = LABEL, **tasks: str | None) -> RunRecord:
        """A scheduled run, and its tasks by name with ``_`` for dots."""
        start = at(f"{label[:10]} {label[11:13]}:00")
        run_id = f"scheduled__{label}"
        found = RunRecord(
            dag(step), run_id, "scheduled", state, label, start, run_after=start + HOUR, start=start + HOUR
        )
        self.airflow.run_records.append(found)
        self.airflow.task_records += [
            TaskRecord(dag(step), run_id, task.replace("wait_", "wait."), of, 1, start + HOUR, start + HOUR + 60)
            for task, of in tasks.items()
        ]
        return found

    def wait(self, step: str, on: str, state: str = "deferred", label: str = LABEL) -> None:
        """A run that waits for a table."""
        self.run(step, "running", label, backfill=None, landed=None)
        self.airflow.task_records.append(
            TaskRecord(dag(step), f"scheduled__{label}", f"wait.{on}", state, 1, at("2026-06-01 04:00"))
        )

    def history(self, step: str, minutes: int) -> None:
        """A run of before, whose work took so long."""
        start = at("2026-05-31 04:00")
        task = TaskRecord(dag(step), "scheduled__2026-05-31-03-00", "backfill", "success", 1, start)
        self.airflow.task_records.append(replace(task, end=start + minutes * MINUTE))


@pytest.fixture
def chain(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Chain:
    before = SOURCE
    for step in CHAIN:
        document = staging_query(
            f"t.{step}__1", schedule="5 * * * *", interval="1h", dependencies=[dependency(before, "1h")]
        )
        path = tmp_path / "compiled" / "staging_queries" / "t" / f"{step}__1"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
        before = table(step)
    fake = FakeAirflow(dag_records={dag(step): DagRecord(dag(step)) for step in CHAIN})
    monkeypatch.setattr("airflow_chronon.cli.commands.why.find_server", lambda address: fake)
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setattr("airflow_chronon.cli.commands.why.time.time", lambda: float(NOW))
    return Chain(tmp_path, fake, command)
