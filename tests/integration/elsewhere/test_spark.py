"""Real Spark through a ``command``: a worker that is lost in mid-job leaves one writer, and the partition lands (C28)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psutil
import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment
from tests.support.integration.spark import SparkLab

pytestmark = pytest.mark.soak
LABEL = "2026-05-20"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkLab:
    return SparkLab.in_folder(tmp_path_factory.mktemp("spark"))


@pytest.fixture
def hold(spark: SparkLab) -> Iterator[Path]:
    """While this file is there, applications write nothing."""
    hold = spark.folder / f"hold {LABEL}"
    hold.touch()
    yield hold
    hold.unlink(missing_ok=True)
    (spark.folder / "told").unlink(missing_ok=True)


def rows(deployment: Deployment, conf: CompiledConf) -> int:
    partition = deployment.real.warehouse / conf.table / f"ds={LABEL}"
    return len(duckdb.sql(f"SELECT * FROM '{partition}/*.parquet'").fetchall())


def test_a_driver_on_the_worker_goes_with_it(deployment: Deployment, spark: SparkLab, hold: Path) -> None:
    runner = {"kind": "command", "argv": spark.argv, "env": spark.env}
    conf = staging_query("elsewhere.spark_here", airflow={"runner": runner, "retries": 1})
    deployment.deploy(conf)
    run = deployment.real.api.trigger(conf.dag_id, partition_key=LABEL)
    ((_, first),) = wait_until(lambda: spark.told(LABEL), timeout=300, why="Spark has begun")
    task = deployment.task(run, "backfill")
    assert task.pid is not None
    os.kill(task.pid, 9)
    wait_until(lambda: not any(map(psutil.pid_exists, first)), timeout=60, why="Java and Python are gone")
    wait_until(lambda: len(spark.told(LABEL)) == 2, timeout=300, why="the next try has begun")
    hold.unlink()
    assert deployment.end_of(run, timeout=300).state == "success"
    assert [what for what, _ in spark.told(LABEL)] == ["begins", "begins", "ends"]
    assert rows(deployment, conf) == 10


def test_a_driver_elsewhere_outlives_it_and_is_followed(deployment: Deployment, spark: SparkLab, hold: Path) -> None:
    launcher = str(spark.folder / "launcher")
    runner = {
        "kind": "command",
        "argv": [launcher, "submit", "{job_token}", *spark.argv],
        "job_id": r"submitted with ID: (\S+)",
        "status": [launcher, "status", "{job_id}"],
        "cancel": [launcher, "cancel", "{job_id}"],
        "find": [launcher, "find", "{job_token}"],
        "env": spark.env,
    }
    conf = staging_query("elsewhere.spark_there", airflow={"runner": runner, "retries": 1})
    deployment.deploy(conf)
    submitting = spark.folder / "hold submit"
    submitting.touch()
    run = deployment.real.api.trigger(conf.dag_id, partition_key=LABEL)
    wait_until((spark.folder / "submitted").exists, timeout=120, why="the job is submitted")
    task = deployment.task(run, "backfill")
    assert task.pid is not None
    os.kill(task.pid, 9)
    submitting.unlink()
    ((_, processes),) = wait_until(lambda: spark.told(LABEL), timeout=300, why="Spark has begun")
    deployment.wait_for_task(run, "backfill", "deferred", timeout=180)
    assert all(map(psutil.pid_exists, processes)) and deployment.task(run, "backfill").try_number == 2
    hold.unlink()
    assert deployment.end_of(run, timeout=300).state == "success"
    assert [what for what, _ in spark.told(LABEL)] == ["begins", "ends"]
    assert rows(deployment, conf) == 10
