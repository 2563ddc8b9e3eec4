"""What runs that only wait cost Airflow's scheduler, and what parsing their confs again costs the dag-processor.

The scheduler's own code runs in this process, loop by loop, against a PostgreSQL server of its own: processor time is counted, that
of PostgreSQL beside it, so what else the machine does counts less than in a measurement by the clock. No data is there, so every conf
gets one run that waits for ever. Needs PostgreSQL's server programs, and the top of the repository and ``examples`` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cachetools import LRUCache

from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.postgres_server import PostgresServer, postgres_server

TICKS = os.sysconf("SC_CLK_TCK")
LOADER = "from airflow_chronon.dags import build_dags\n\nglobals().update(build_dags(near=__file__))\n"
SETTINGS = "confs_may_set: [runner]\ncatalog: {kind: filesystem, root: warehouse}\n"


@dataclass(frozen=True)
class Cost:
    """Processor milliseconds."""

    scheduler: float
    postgres: float
    runs: int  #: that were looked at

    def __str__(self) -> str:
        each = f"; {self.scheduler / self.runs:.2f} and {self.postgres / self.runs:.2f} ms a run" if self.runs else ""
        return f"{self.runs} runs: scheduler {self.scheduler:.0f} ms, PostgreSQL {self.postgres:.0f} ms{each}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--confs", type=int, default=1000, help="so many waiting runs (default 1000)")
    parser.add_argument("--repeat", type=int, default=2, help="the best of so many loops counts (default 2)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # PostgreSQL goes too
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="waiting-") as folder, postgres_server() as postgres:
        dags = Path(folder, "dags")
        write_tree(dags, options.confs)
        migrate(Path(folder, "home"), dags, postgres)
        parse(dags)
        measure(postgres, confs=options.confs, repeat=options.repeat)
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


def write_tree(dags: Path, confs: int) -> None:
    """Confs that each read one table of their own which never comes."""
    root = dags / "chronon"
    for number in range(confs):
        runner = {"kind": "command", "argv": ["true"]}
        conf = staging_query(
            f"waiting.n{number:05}", schedule="@daily", reads=f"lake.t{number}", airflow={"runner": runner}
        )
        path = root / "compiled" / conf.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(conf.document))
    (root / "chronon.yaml").write_text(SETTINGS)
    (dags / "chronon.py").write_text(LOADER)


def migrate(home: Path, dags: Path, postgres: PostgresServer) -> None:
    """Airflow's tables, and this process's settings, before anything imports Airflow."""
    address = f"{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}"
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "600",  # by the clock: on a busy machine 30 s are soon over
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{address}",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "500",
        "AIRFLOW__SCHEDULER__MAX_DAGRUNS_TO_CREATE_PER_LOOP": "500",
    }
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)


def parse(dags: Path) -> None:
    """What the dag-processor does with a loader file: build, then store; the second time nothing has changed."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.utils.session import create_session

    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)  # type: ignore[no-untyped-call]
    for what in ("first parse", "unchanged parse"):
        begun = time.process_time()
        bag = DagBag(dags, bundle_path=dags, bundle_name="dags-folder")
        built = time.process_time()
        sync_bag_to_db(bag, "dags-folder", None)
        stored = time.process_time()
        print(
            f"{what}: {len(bag.dags)} DAGs, build {built - begun:.1f} s, serialise and store {stored - built:.1f} s",
            flush=True,
        )


def measure(postgres: PostgresServer, *, confs: int, repeat: int) -> None:
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    from airflow_chronon.airflow.waiting_runs import pass_over_waiting_runs

    job = Job()  # type: ignore[no-untyped-call]
    runner = SchedulerJobRunner(job=job)
    with create_session() as session:
        session.add(job)

    def loop() -> None:
        with create_session() as session:
            runner._do_scheduling(session)
            session.expunge_all()

    def best(runs: int) -> Cost:
        DagRun.DEFAULT_DAGRUNS_TO_EXAMINE = runs
        costs = []
        for _ in range(repeat):
            mine, theirs = time.process_time(), processor_time(postgres)
            loop()
            costs.append(
                Cost(1e3 * (time.process_time() - mine), 1e3 * (processor_time(postgres) - theirs), min(runs, confs))
            )
        return min(costs, key=lambda cost: cost.scheduler)

    def show(what: str, cost: Cost) -> None:
        print(f"{what}: {cost}", flush=True)

    for _ in range(100):
        if sql("SELECT count(*) FROM task_instance WHERE state = 'deferred'") >= confs:
            break
        loop()
    print(f"{confs} runs wait, of {sql('SELECT count(*) FROM task_instance') // confs} tasks each")
    bag = runner.scheduler_dag_bag
    held = bag._dags.maxsize  # type: ignore[attr-defined]
    bag._dags = LRUCache(maxsize=2 * confs)
    best(confs)  # fills it
    show("a loop that looks at all, its cache of DAGs large enough", best(confs))
    show("a loop that looks at 100, likewise", best(100))
    bag._dags = LRUCache(maxsize=min(int(held), confs // 2))
    show("a loop that looks at all, its cache too small (Airflow 3.3 holds 512)", best(confs))
    change("UPDATE dag_run SET bundle_version = 'v1'")
    bag._dags = LRUCache(maxsize=2 * confs)
    best(confs)
    show("a loop that looks at all, DAGs of a versioned bundle, cache large enough", best(confs))
    change("UPDATE task_instance SET updated_at = now() - interval '1 hour'")
    pass_over_waiting_runs()
    cost = best(confs)
    show("a loop that passes over runs that only wait", Cost(cost.scheduler, cost.postgres, 0))


def sql(query: str) -> int:
    from airflow.utils.session import create_session
    from sqlalchemy import text

    with create_session() as session:
        return int(session.execute(text(query)).scalar_one())


def change(statement: str) -> None:
    from airflow.utils.session import create_session
    from sqlalchemy import text

    with create_session() as session:
        session.execute(text(statement))


def processor_time(postgres: PostgresServer) -> float:
    """Seconds that the server's processes have worked so far."""
    return sum(_server_processes(postgres.port))


def _server_processes(port: int) -> Iterator[float]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command, stat = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
            parent = Path("/proc", stat.rpartition(")")[2].split()[1], "cmdline").read_bytes()
        except OSError:
            continue
        if f"-p\0{port}".encode() in command + b"\0" + parent:
            fields = stat.rpartition(")")[2].split()
            yield (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main()
