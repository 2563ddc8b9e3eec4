"""How fast the backlog of one schedule drains, and by how much others are late meanwhile (H17).

It starts an Airflow of its own with SQLite and LocalExecutor: one job that has missed so many minutes and catches up, and
others that fire every minute. Every command ends at once, so that only the scheduling counts. It needs the top of the
repository and ``examples`` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow_api import TaskInstance
from local_airflow import USER, LocalAirflow

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.plan import facts
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.state.folder import open_state
from tests.support.integration.airflow_client import AirflowClient, wait_until

ROOT = Path(__file__).resolve().parents[1]
LOADER = """
from airflow_chronon.dags import build_dags

globals().update(build_dags(near=__file__))
"""
BACKLOG, OTHER = "backlog", "other"
#: With 20 or more runs waiting for their turn, Airflow's default of 20 runs a loop makes others late.
SETTINGS = {
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "500",
    "PYTHONPATH": str(ROOT),
}


@dataclass(frozen=True)
class Load:
    """What is scheduled."""

    missed: int  #: intervals of the one job
    slots: int  #: its ``max_active_runs``
    others: int
    pending: int  #: its ``max_pending_runs``
    workers: int  #: Airflow's ``parallelism``


@dataclass(frozen=True)
class Drained:
    """What was measured."""

    seconds: float  #: from the first start of the backlog's runs to the last end
    intervals: int
    late: tuple[float, ...]  #: seconds from a fire of another job to the start of its task
    late_alone: tuple[float, ...]  #: the same after the drain, when nothing but these others is due

    def __str__(self) -> str:
        rate = self.intervals * 60 / self.seconds
        return (
            f"{self.intervals} intervals in {self.seconds:.0f} s: {rate:.0f} a minute\n"
            f"others meanwhile: {_in_words(self.late)}\nothers alone: {_in_words(self.late_alone)}"
        )


def _in_words(late: tuple[float, ...]) -> str:
    if not late:
        return "none"
    middle, above = sorted(late)[len(late) // 2], sum(each > 10 for each in late)
    return (
        f"{len(late)} runs, late by {middle:.1f} s in the middle, {max(late):.1f} s at most, {above} by more than 10 s"
    )


def write(root: Path, load: Load, *, start: datetime) -> None:
    """The job files; the others begin with the next minute."""
    folder = root / "jobs" / "etl"
    folder.mkdir(parents=True)
    (root / "chronon.yaml").write_text("retries: 0\n")
    job = {"version": 1, "runner": {"kind": "command", "argv": ["true"]}}
    every_minute = {"cron_expression": "* * * * *"}
    for number in range(load.others):
        (folder / f"{OTHER}_{number:02}.yaml").write_text(json.dumps({**job, "schedule": every_minute}))
    first = start - timedelta(minutes=load.missed)
    caught_up = {**every_minute, "catchup": True, "start_time": first.isoformat(), "max_active_runs": load.slots}
    (folder / f"{BACKLOG}.yaml").write_text(
        json.dumps({**job, "max_pending_runs": load.pending, "schedule": caught_up})
    )


@contextmanager
def running(load: Load) -> Iterator[AirflowClient]:
    """An Airflow that has just begun on the backlog."""
    with tempfile.TemporaryDirectory(prefix="drain-") as folder:
        base = Path(folder)
        dags, home = base / "dags", base / "home"
        root = dags / "chronon"
        root.mkdir(parents=True)
        write(root, load, start=datetime.now(UTC).replace(second=0, microsecond=0))
        plans = read_conf_root(root, environ=os.environ).facts().plans.values()
        state = open_state(str(home / "chronon_state"), deployment=facts.Deployment("main", "dags-folder"))
        settings = {**SETTINGS, "AIRFLOW__CORE__PARALLELISM": str(load.workers)}
        for plan in plans:
            state.write_record(record_after(plan, manifest_of(plan), None, now=int(time.time())))
        with (
            LocalAirflow(home=home, dags=dags, settings=settings) as server,
            AirflowClient(url=server.url, user=USER, password=server.password) as api,
        ):
            (dags / "chronon.py").write_text(LOADER)
            yield api


def drain(api: AirflowClient, load: Load, *, timeout: float) -> Drained:
    """Wait until the backlog has been worked off."""
    dag_id = f"job.etl.{BACKLOG}"

    def done() -> list[TaskInstance]:
        found = api.tasks(dag_id, state="success") if api.dag(dag_id) else []
        print(f"\r{len(found)} of {load.missed}", end="", file=sys.stderr)
        return found if len(found) >= load.missed else []

    wait_until(done, timeout=timeout, why="the backlog is drained", every=5)
    print(file=sys.stderr)
    tasks = sorted(api.tasks(dag_id, state="success"), key=_end)[: load.missed]
    begun, ended = min(map(_start, tasks)), _end(tasks[-1])
    quiet = (time.time() // 60 + 1) * 60
    wait_until(lambda: time.time() > quiet + 2 * 60 + 50, timeout=240, why="three more fires pass", every=5)
    return Drained(ended - begun, len(tasks), _late(api, begun, ended), _late(api, quiet - 1, time.time()))


def _late(api: AirflowClient, begun: float, ended: float) -> tuple[float, ...]:
    """Of every fire of the others in ``[begun, ended)``, how long its task did not start; until now when it has not."""
    late = []
    for dag in api.dags():
        if f".{OTHER}_" in dag["dag_id"]:
            fires = {run.run_id: run.run_after.timestamp() for run in api.runs(dag["dag_id"])}
            for task in api.tasks(dag["dag_id"]):
                fire = fires[task.run_id]
                if begun <= fire < ended:
                    late.append((_start(task) or time.time()) - fire)
    return tuple(late)


def _start(task: TaskInstance) -> float:
    return task.start_date.timestamp() if task.start_date else 0.0


def _end(task: TaskInstance) -> float:
    return task.end_date.timestamp() if task.end_date else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missed", type=int, default=200)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--others", type=int, default=20)
    parser.add_argument("--pending", type=int, default=64)
    parser.add_argument(
        "--workers", type=int, default=32, help="how many tasks Airflow runs at once; 32 is its default"
    )
    parser.add_argument("--timeout", type=float, default=1200)
    options = parser.parse_args()
    load = Load(options.missed, options.slots, options.others, options.pending, options.workers)
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    with running(load) as api:
        print(drain(api, load, timeout=options.timeout))


if __name__ == "__main__":
    main()
