"""What the commands against a running Airflow cost: seconds and API calls of reconciles, and of planning a long replay.

It starts an Airflow of its own with SQLite, deploys so many confs, and takes some of them away again. Beside each
reconcile stands one plain listing of all DAGs through the same client: what nobody can do without. It needs the top of the
repository and ``examples`` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from local_airflow import LocalAirflow

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.login import find_login
from airflow_chronon.airflow_api.records import BackfillRequest, Reprocess
from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.plan.facts import CHRONON_TAG, Deployment
from airflow_chronon.reconcile.gather import Place
from airflow_chronon.reconcile.run import Reconciled, reconcile
from airflow_chronon.state.folder import open_state
from tests.support.confs import staging_query

ROOT = Path(__file__).resolve().parents[1]
LOADER = """
from airflow_chronon.dags import build_dags

globals().update(build_dags(near=__file__))
"""
SETTINGS = {
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
    "AIRFLOW__DAG_PROCESSOR__STALE_DAG_THRESHOLD": "60",
    "AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL": "3",
    "PYTHONPATH": str(ROOT),
}
HOURLY = "t.hourly__1"


@dataclass(frozen=True)
class Cost:
    """Of one thing done through the API."""

    seconds: float
    calls: int

    def __str__(self) -> str:
        return f"{self.seconds:6.2f} s {self.calls:5d} calls"


@dataclass(frozen=True)
class Bench:
    """A deployment on the Airflow of this run."""

    server: LocalAirflow
    root: Path

    def write(self, names: list[str]) -> None:
        """Deploy these confs and no others; none of them has a schedule."""
        fresh = self.root.with_name("fresh")
        folder = fresh / "compiled" / "staging_queries" / "t"
        folder.mkdir(parents=True)
        for name in names:
            grid = {"interval": "1h", "schedule": None} if name == HOURLY else {"schedule": None}
            (folder / name.removeprefix("t.")).write_text(json.dumps(staging_query(name, **grid)))
        shutil.rmtree(self.root, ignore_errors=True)
        fresh.rename(self.root)

    def place(self) -> Place:
        root = read_conf_root(self.root, environ={})
        deployment = Deployment(root.branch, "dags-folder")
        state_root = str(self.server.home / "chronon_state")
        return Place(root, deployment, open_state(state_root, deployment=deployment), state_root, self.client())

    def client(self) -> AirflowRest:
        login = find_login(self.server.environment)
        assert login is not None
        return AirflowRest(login)

    def reconciled(self) -> tuple[Reconciled, Cost]:
        """One reconcile from the files to its end."""
        begun = time.perf_counter()
        place = self.place()
        done = reconcile(place, by="bench", now=int(time.time()))
        cost = Cost(time.perf_counter() - begun, place.server.calls)  # type: ignore[attr-defined]
        assert not done.outcome.failed, done.outcome.failed
        return done, cost

    def listing(self) -> Cost:
        """All DAGs listed once, and nothing else."""
        client = self.client()
        begun = time.perf_counter()
        client.dags(tags=(CHRONON_TAG,))
        return Cost(time.perf_counter() - begun, client.calls)

    def wait_for(self, count: int) -> float:
        """Seconds until Airflow has so many DAGs."""
        begun, client = time.perf_counter(), self.client()
        while len([dag for dag in client.dags(tags=(CHRONON_TAG,)) if not dag.is_stale]) != count:
            if time.perf_counter() - begun > 300:
                raise TimeoutError(f"Airflow does not have {count} DAGs after 300 seconds")
            time.sleep(2)
        return time.perf_counter() - begun

    def command(self, *arguments: str) -> float:
        """Seconds of a whole command, its start included."""
        begun = time.perf_counter()
        environment = {**os.environ, **self.server.environment}
        command = [sys.executable, "-m", "airflow_chronon.cli.main", *arguments, "--root", str(self.root)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--dags", type=int, nargs="+", default=[300, 1000], help="so many DAGs (default 300, then 1000)"
    )
    options = parser.parse_args()
    for count in options.dags:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), count)


def measure(folder: Path, count: int) -> None:
    dags = folder / "dags"
    dags.mkdir()
    (dags / "loader.py").write_text(LOADER)
    settings = {**SETTINGS, "AIRFLOW__CHRONON__CONF_ROOT": str(folder / "chronon")}
    with LocalAirflow(home=folder / "home", dags=dags, settings=settings) as server:
        bench = Bench(server, folder / "chronon")
        names = [HOURLY, *(f"t.query{number}__1" for number in range(count - 1))]
        bench.write(names)
        print(f"{count} confs are DAGs after {bench.wait_for(count):.0f} s")
        print(f"  first reconcile    {bench.reconciled()[1]}")
        for _ in range(3):
            _, idle = bench.reconciled()
            print(f"  idle reconcile     {idle} beside {bench.listing()} of one listing of the DAGs")
        print(f"  idle, as a command {bench.command('reconcile'):6.2f} s")
        gone = count // 10
        bench.write(names[: count - gone])
        total, rounds = Cost(0, 0), 0
        while True:
            done, cost = bench.reconciled()
            total, rounds = Cost(total.seconds + cost.seconds, total.calls + cost.calls), rounds + 1
            if done.plan.is_up_to_date:
                break
            time.sleep(3)
        print(
            f"  {gone} retired         {total} in {rounds} reconciles: {(total.calls - rounds * idle.calls) / gone:.1f} calls each"
        )
        plan_a_year(bench)


def plan_a_year(bench: Bench) -> None:
    """A year of hourly labels, planned and not run."""
    end = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = end - timedelta(days=365)
    first, last = int(start.timestamp()), int(end.timestamp()) - 3600
    begun = time.perf_counter()
    planned = bench.client().plan_backfill(BackfillRequest(f"staging_query.{HOURLY}", first, last, Reprocess.NONE, 4))
    alone = time.perf_counter() - begun
    days = ["--start-ds", f"{start:%Y-%m-%d}", "--end-ds", f"{end - timedelta(days=1):%Y-%m-%d}"]
    whole = bench.command("backfill", HOURLY, *days, "--all", "--dry-run")
    print(f"  {len(planned)} hours planned {whole:6.2f} s as a command, beside {alone:.2f} s of Airflow's own dry run")


if __name__ == "__main__":
    main()
