"""A deployment whose processes are killed: each partition written, never by two at a time, no run left behind (C28).

Two schedulers, two triggerers, 30 confs on minute grids with jobs of 2 to 90 seconds, a SIGKILL every 20 seconds, on
PostgreSQL, with LocalExecutor and with Celery. `CHRONON_SOAK_MINUTES` says for how long, `CHRONON_SOAK_SEED` which kills
and which jobs; the figures are printed at the end, see them with `pytest -s`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from airflow_api import ApiError, DagRun

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import AirflowClient
from tests.support.integration.compiled_confs import CompiledConf
from tests.support.integration.compose_processes import ComposeProcesses, Executor, compose_processes
from tests.support.integration.kills import Killer, ServiceManager
from tests.support.integration.witnessed_jobs import Life, Witness, beside_each_other, chains

pytestmark = pytest.mark.soak

MINUTES = float(os.environ.get("CHRONON_SOAK_MINUTES", "15"))
SEED = int(os.environ.get("CHRONON_SOAK_SEED", "1"))
KILL_EVERY = 20.0  #: seconds
DRAINED_WITHIN = 30.0  #: minutes
LANDED_WITHIN = 30.0  #: seconds; those that took longer are printed with the kills between
GRIDS = (1, 2, 3, 4, 5, 6, 10, 5, 6, 10)  #: minutes
STEPS = 3
#: Slots for every job, and tries that come sooner than a deployment needs them: a quarter of an hour is short. A
#: ``scheduler_health_check_threshold`` of 15 s is too short for two cores: schedulers that live are taken for dead, and their tasks reset.
SETTINGS = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "120",
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "30",
    "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "5",
    "AIRFLOW__CORE__PARALLELISM": "12",
    "AIRFLOW__CELERY__WORKER_CONCURRENCY": "12",
}
FINAL = ("success", "failed")


@pytest.mark.parametrize("executor", list(Executor), ids=lambda each: each.name.lower())
def test_kills_cost_no_partition_and_make_no_second_writer(executor: Executor, tmp_path: Path) -> None:
    witness = Witness(tmp_path / "lab", seed=SEED)
    confs = chains(GRIDS, length=STEPS)
    began = int(time.time()) // 60 * 60
    closed = began + int(MINUTES * 60) // 60 * 60  # no partition ends after it
    deploy(tmp_path / "dags", confs, witness=witness, start=began - 600, end=closed)
    with compose_processes(tmp_path, executor=executor, settings=SETTINGS) as processes:
        manager = ServiceManager(processes)
        killer = Killer(processes, witness.script, random.Random(SEED))
        until, next_kill = time.monotonic() + MINUTES * 60, time.monotonic() + KILL_EVERY
        while time.monotonic() < until:
            manager.look()
            if time.monotonic() >= next_kill:
                lost = killer.kill()
                if executor is Executor.LOCAL and lost is not None:
                    manager.restart(lost)
                next_kill += KILL_EVERY
            time.sleep(0.2)
        expected = {conf.dag_id: labels_of(every, since=began - 600, until=closed) for conf, every in with_grids(confs)}
        runs = drained(processes, manager, expected)
        lives = witness.lives()
        delays = landed_after(processes, runs, lives)
        report(executor, killer, manager, lives, delays)
    twice = beside_each_other(lives)
    assert [life for life in lives if life.found_another] == [] == twice, twice
    assert {dag_id: [run.partition_key for run in found] for dag_id, found in runs.items()} == expected
    assert Counter(run.state for found in runs.values() for run in found) == {
        "success": sum(map(len, expected.values()))
    }
    for conf in confs:
        folders = (processes.volume("warehouse") / conf.table).glob("ds=*/_SUCCESS")
        assert sorted(path.parent.name.removeprefix("ds=") for path in folders) == expected[conf.dag_id]
    assert sum(map(len, expected.values())) == len(delays)


def deploy(dags: Path, confs: Sequence[CompiledConf], *, witness: Witness, start: int, end: int) -> None:
    root = dags / "chronon"
    for conf in confs:
        path = root / "compiled" / conf.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(conf.document))
    settings = {
        "start_date": instant(start),
        "end_date": instant(end),
        "catchup": True,
        "retries": 50,  # a kill may cost a try
        "runner": witness.runner,
        "catalog": {"kind": "filesystem", "root": "${CHRONON_WAREHOUSE}"},
        "sensor": {"poll_seconds": 5},
    }
    (root / "chronon.yaml").write_text(json.dumps(settings))  # JSON is YAML
    for loader in (ROOT / "dags").glob("*.py"):
        shutil.copy(loader, dags / loader.name)


def with_grids(confs: Sequence[CompiledConf]) -> list[tuple[CompiledConf, int]]:
    """Each conf with the length of its partitions, in seconds."""
    return [(conf, GRIDS[place // STEPS] * 60) for place, conf in enumerate(confs)]


def labels_of(every: int, *, since: int, until: int) -> list[str]:
    """The labels of the partitions that begin at ``since`` or later and end at ``until`` or earlier."""
    first = -(-since // every) * every
    return [f"{at(start):%Y-%m-%d-%H-%M}" for start in range(first, until - every + 1, every)]


def drained(
    processes: ComposeProcesses, manager: ServiceManager, expected: dict[str, list[str]]
) -> dict[str, list[DagRun]]:
    """The runs of each DAG once all that are expected have ended, or when they have had time enough."""
    until, found = time.monotonic() + DRAINED_WITHIN * 60, dict[str, list[DagRun]]()
    with processes.client("editor") as api:
        while time.monotonic() < until:
            manager.look()
            try:
                found = {
                    dag_id: sorted(api.runs(dag_id), key=lambda run: run.partition_key or "") for dag_id in expected
                }
            except (ApiError, httpx.TransportError):  # it may be starting
                time.sleep(2)
                continue
            ended = sum(run.state in FINAL for runs in found.values() for run in runs)
            if ended >= sum(map(len, expected.values())):
                break
            time.sleep(10)  # an api-server has more to do than to answer this
    return found


def landed_after(
    processes: ComposeProcesses, runs: dict[str, list[DagRun]], lives: Sequence[Life]
) -> dict[tuple[str, str], tuple[float, float]]:
    """By table and label, when the last job of a run ended, and how many seconds later its ``landed`` began."""
    ends: dict[tuple[str, str], float] = {}
    for life in lives:
        if life.ended:
            ends |= {(life.table, label): life.last for label in life.labels}
    found = {}
    with processes.client("editor") as api:
        for run in (run for each in runs.values() for run in each):
            table = f"lab.{run.dag_id.partition('.')[2].replace('.', '_')}"
            end = ends.get((table, run.partition_key or ""))
            starts = [begin for begin in starts_of(api, run) if end is not None and begin >= end - 1]
            if starts and end is not None:
                found[table, run.partition_key or ""] = (end, min(starts) - end)
    return found


def starts_of(api: AirflowClient, run: DagRun) -> list[float]:
    """When each try of the task ``landed`` began."""
    path = f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}/taskInstances/landed/tries"
    tries = api.request("GET", path)["task_instances"]
    return [datetime.fromisoformat(each["start_date"]).timestamp() for each in tries if each["start_date"]]


def report(
    executor: Executor,
    killer: Killer,
    manager: ServiceManager,
    lives: Sequence[Life],
    delays: dict[tuple[str, str], tuple[float, float]],
) -> None:
    """The figures, for people."""
    print(
        f"\n{executor.value}, {MINUTES:g} minutes, seed {SEED}: {len(killer.done)} kills, {manager.restarts} restarts"
    )
    for kill in killer.done:
        print(f"  {kill}")
    cut = sum(not life.ended for life in lives)
    print(f"jobs: {len(lives)}, of which {cut} were cut off; at one time with another: {len(beside_each_other(lives))}")
    for first, second in beside_each_other(lives):
        print(f"  {second.began - first.began:+.1f} s after {first}: {second}")
    if delays:
        ordered = sorted(delay for _, delay in delays.values())
        print(
            f"landed began after its work's end, of {len(ordered)} partitions: median {statistics.median(ordered):.1f} s,"
            f" 95th {ordered[int(len(ordered) * 0.95)]:.1f} s, max {ordered[-1]:.1f} s"
        )
        for (table, label), (end, delay) in delays.items():
            if delay > LANDED_WITHIN:
                between = [kill for kill in killer.done if end - 1 <= float(kill.split()[0]) <= end + delay]
                print(f"  {delay:.1f} s, {table} {label}, work ended at {end:.1f}: {'; '.join(between) or 'no kill'}")


def instant(seconds: int) -> str:
    return f"{at(seconds):%Y-%m-%dT%H:%M:%SZ}"


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
