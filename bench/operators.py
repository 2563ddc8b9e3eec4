"""Tasks a minute through the runner ``operator``, beside the bare operator in a DAG by hand, by turns in one Airflow.

It starts an Airflow of its own with SQLite and LocalExecutor. Both DAGs have a task before and a check after the work, and as many
slots of work. It needs the top of the repository and ``examples`` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow_api import DagRun, TaskInstance
from local_airflow import USER, LocalAirflow

from tests.support.integration.airflow_client import AirflowClient, wait_until

ROOT = Path(__file__).resolve().parents[1]
OPERATOR = "airflow.providers.standard.operators.bash.BashOperator"
CONF, BY_HAND = "staging_query.bench.operator__1", "by_hand"
WORKS = {CONF: "backfill", BY_HAND: "work"}
LOADER = """
from airflow_chronon.dags import build_dags

globals().update(build_dags(near=__file__))
"""
DAG_BY_HAND = """
import os

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, task

with DAG("by_hand", schedule=None, max_active_runs=64):

    @task
    def check(**context):
        assert os.path.exists("{table}/ds=" + context["dag_run"].conf["label"] + "/part")

    work = BashOperator(
        task_id="work",
        bash_command="{command}".replace("LABEL", "{{{{ dag_run.conf['label'] }}}}"),
        max_active_tis_per_dag={slots},
    )
    EmptyOperator(task_id="ready") >> work >> check()
"""
SETTINGS = {
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "500",
    "PYTHONPATH": str(ROOT),
    "PYTHONDONTWRITEBYTECODE": "",  # a package that is installed is compiled
}


def write(dags: Path, warehouse: Path, *, slots: int, seconds: float) -> None:
    """The conf with its settings, and the same by hand."""
    folder = dags / "chronon" / "compiled" / "staging_queries" / "bench"
    folder.mkdir(parents=True)
    execution = {"offlineSchedule": "@never"}
    meta = {"name": "bench.operator__1", "team": "bench", "version": "1", "outputNamespace": "bench", "online": 0}
    document = {"metaData": {**meta, "executionInfo": execution}, "query": "SELECT 1", "tableDependencies": []}
    (folder / "operator__1").write_text(json.dumps(document))
    command = f"sleep {seconds} && mkdir -p {warehouse}/bench.operator__1/ds=LABEL && touch {warehouse}/bench.operator__1/ds=LABEL/part"
    runner = {
        "kind": "operator",
        "class": OPERATOR,
        "arguments": {
            "bash_command": command.replace("LABEL", "{partition_key}").replace("bench.operator__1", "{table}")
        },
    }
    settings = {
        "max_active_runs": slots,
        "catalog": {"kind": "filesystem", "root": str(warehouse)},
        "runner": runner,
    }
    (dags / "chronon" / "chronon.yaml").write_text(json.dumps(settings))
    (dags / "by_hand.py").write_text(
        DAG_BY_HAND.format(command=command, slots=slots, table=f"{warehouse}/bench.operator__1")
    )
    (dags / "chronon.py").write_text(LOADER)


@contextmanager
def running(*, slots: int, seconds: float) -> Iterator[AirflowClient]:
    with tempfile.TemporaryDirectory(prefix="operators-") as folder:
        base = Path(folder)
        dags = base / "dags"
        dags.mkdir()
        write(dags, base / "warehouse", slots=slots, seconds=seconds)
        with (
            LocalAirflow(home=base / "home", dags=dags, settings=SETTINGS) as server,
            AirflowClient(url=server.url, user=USER, password=server.password) as api,
        ):
            wait_until(lambda: all(map(api.dag, WORKS)), timeout=180, why="both DAGs are there")
            yield api


def round_of(api: AirflowClient, dag_id: str, labels: list[str]) -> float:
    """Tasks a minute: from the first start of the work to its last end."""
    runs = [
        api.trigger(dag_id, partition_key=label) if dag_id == CONF else api.trigger(dag_id, params={"label": label})
        for label in labels
    ]

    def done() -> list[TaskInstance]:
        found = [
            task for run in runs if _has_ended(api, run) for task in api.tasks(dag_id) if task.run_id == run.run_id
        ]
        return [task for task in found if task.task_id == WORKS[dag_id]]

    tasks = wait_until(lambda: found if len(found := done()) == len(runs) else None, timeout=900, why=dag_id, every=5)
    bad = [task for task in tasks if task.state != "success"]
    assert not bad, bad
    begun, ended = (min(_times(tasks, "start_date")), max(_times(tasks, "end_date")))
    return len(tasks) * 60 / (ended - begun)


def _has_ended(api: AirflowClient, run: DagRun) -> bool:
    return api.run(run.dag_id, run.run_id).state in ("success", "failed")


def _times(tasks: list[TaskInstance], name: str) -> list[float]:
    return [getattr(task, name).timestamp() for task in tasks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each DAG in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5, help="how long the work takes")
    options = parser.parse_args()
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    rates: dict[str, list[float]] = {dag_id: [] for dag_id in WORKS}
    day = datetime(2020, 1, 1, tzinfo=UTC)
    with running(slots=options.slots, seconds=options.seconds) as api:
        for number in range(options.rounds):
            labels = [f"{day + timedelta(days=number * options.runs + each):%Y-%m-%d}" for each in range(options.runs)]
            for dag_id in sorted(WORKS, reverse=number % 2 == 1):
                rates[dag_id].append(round_of(api, dag_id, labels))
                print(f"{dag_id}: {rates[dag_id][-1]:.1f} tasks a minute", file=sys.stderr)
    ours, bare = (statistics.median(rates[dag_id]) for dag_id in (CONF, BY_HAND))
    print(
        f"operator {ours:.1f}, by hand {bare:.1f} tasks a minute: {bare / ours:.2f} times its time (aim: at most 1.15)"
    )


if __name__ == "__main__":
    main()
