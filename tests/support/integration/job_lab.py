"""A deployment of jobs on a real Airflow: job files that tests change, and a command that tells what it was given."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_api import DagRun

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.plan import facts
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.state.folder import StateFolder, open_state
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import LOADER, Deployment

#: Tells its variables, works for a while, and fails as often as it is told to.
TELL = """
import json, os, sys, time
file, works, fails = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
begun = time.time()
time.sleep(works)
variables = {name: text for name, text in os.environ.items() if name.split("_")[0] in ("HOPS", "CHRONON", "REGION")}
line = {"begun": begun, "ended": time.time(), "arguments": sys.argv[4:], **variables}
with open(file, "a") as told:
    told.write(json.dumps(line) + "\\n")
with open(file) as told:
    sys.exit(1 if sum(1 for _ in told) <= fails else 0)
"""


@dataclass(frozen=True)
class JobLab:
    """One deployment of jobs, of a branch of its own; jobs are of the team ``etl``."""

    here: Deployment

    @classmethod
    def set_up(cls, airflow: RealAirflow, *, branch: str) -> JobLab:
        lab = cls(Deployment.beside(airflow, branch=branch))
        lab.folder.mkdir(parents=True)
        (lab.here.root / "chronon.yaml").write_text(json.dumps({"branch": branch, "retries": 0}))
        lab.tell.parent.mkdir(exist_ok=True)
        lab.tell.write_text(TELL)
        lab.here.loader.write_text(LOADER.format(root=str(lab.here.root)))
        return lab

    @property
    def airflow(self) -> RealAirflow:
        return self.here.airflow

    @property
    def folder(self) -> Path:
        return self.here.root / "jobs" / "etl"

    @property
    def tell(self) -> Path:
        return self.airflow.server.home / "told" / "tell.py"

    def dag_id(self, name: str) -> str:
        return f"{self.here.branch}--job.etl.{name}"

    def write(self, name: str, *, works: float = 0, fails: int = 0, **document: Any) -> str:
        """Put a job file there as a whole, or another into its place; returns the DAG id."""
        argv = [sys.executable, str(self.tell), str(self._told(name)), str(works), str(fails)]
        text = json.dumps({"version": 1, "runner": {"kind": "command", "argv": argv}, **document})
        fresh = self.folder / f".{name}.fresh"
        fresh.write_text(text)
        fresh.rename(self.folder / f"{name}.yaml")
        self.airflow.parse_soon()
        return self.dag_id(name)

    def remove(self, name: str) -> None:
        (self.folder / f"{name}.yaml").unlink()
        self.airflow.parse_soon()

    def seen_since(self, instant: Instant) -> None:
        """As if a reconcile had seen all jobs at an instant: their schedules count from then on."""
        plans = read_conf_root(self.here.root, environ=os.environ).facts().plans.values()
        for plan in plans:
            self.state().write_record(record_after(plan, manifest_of(plan), None, now=instant))
        self.airflow.parse_soon()

    def state(self) -> StateFolder:
        owner = facts.Deployment(self.here.branch, "dags-folder")
        return open_state(str(self.airflow.server.home / "chronon_state"), deployment=owner)

    def reconcile(self) -> str:
        done = self.here.reconcile()
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def scheduled(self, name: str) -> list[str]:
        """The logical dates of a job's scheduled runs, oldest first."""
        found = self.airflow.api.runs(self.dag_id(name), run_type="scheduled")
        return sorted(run.partition_key or "" for run in found)

    def wait_for_runs(self, name: str, count: int = 1, *, timeout: float = 300) -> list[str]:
        def enough() -> list[str]:
            found = self.scheduled(name)
            return found if len(found) >= count else []

        return wait_until(enough, timeout=timeout, why=f"{name} has {count} scheduled runs")

    def ended(self, run: DagRun, *, timeout: float = 300) -> DagRun:
        def look() -> DagRun | None:
            now = self.airflow.api.run(run.dag_id, run.run_id)
            return now if now.state in ("success", "failed") else None

        found = wait_until(look, timeout=timeout, why=f"{run.run_id} ends")
        assert found is not None
        return found

    def told(self, name: str) -> list[Mapping[str, Any]]:
        """What each start of a job's command was given, in the order in which they ended."""
        file = self._told(name)
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for_told(self, name: str, count: int, *, timeout: float = 300) -> list[Mapping[str, Any]]:
        def enough() -> list[Mapping[str, Any]]:
            found = self.told(name)
            return found if len(found) >= count else []

        return wait_until(enough, timeout=timeout, why=f"the command of {name} has run {count} times")

    def _told(self, name: str) -> Path:
        return self.tell.with_name(f"{self.here.branch}.{name}.jsonl")
