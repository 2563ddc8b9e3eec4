"""The runner ``operator`` in a real Airflow: one that defers, and Spark whose worker is lost in mid-job (C28)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment
from tests.support.integration.spark import SparkLab

pytestmark = pytest.mark.soak

LABEL = "2026-06-01"
WAREHOUSE = "${CHRONON_WAREHOUSE}"


def _conf(name: str, class_path: str, arguments: dict[str, Any]) -> CompiledConf:
    runner = {"kind": "operator", "class": class_path, "arguments": arguments}
    return staging_query(f"operators.{name}", airflow={"runner": runner, "retries": 2})


DEFERRING = _conf(
    "deferring",
    "tests.support.work_operators.DeferringOperator",
    {
        "seen": f"{WAREHOUSE}/deferring.seen",
        "awaits": f"{WAREHOUSE}/deferring.go",
        "table_folder": f"{WAREHOUSE}/{{table}}/ds={{partition_key}}",
        "note": "{job_token}",
    },
)


def _gone(*pids: int) -> bool:
    return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids)


def test_one_that_defers_holds_no_worker_and_goes_on_when_its_job_has_ended(deployment: Deployment) -> None:
    seen = deployment.real.warehouse / "deferring.seen"

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in seen.read_text().splitlines()]

    deployment.deploy(DEFERRING)
    run = deployment.real.api.trigger(DEFERRING.dag_id, partition_key=LABEL)
    deployment.wait_for_task(run, "backfill", "deferred", timeout=120)
    (submitted,) = lines()
    wait_until(lambda: _gone(submitted["pid"]), timeout=60, why="the worker is free")
    (deployment.real.warehouse / "deferring.go").touch()
    assert deployment.end_of(run).state == "success"
    assert [line["what"] for line in lines()] == ["submitted", "went on", "execute"]
    assert {line["note"] for line in lines()} == {submitted["note"]}  # one token for all of it
    assert deployment.landed(DEFERRING) == {LABEL}
    assert len(deployment.events(run)) == 1
    path = f"/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/backfill/links"
    links = deployment.real.api.request("GET", path)["extra_links"]
    assert links == {"Job": "https://jobs.example/job-1"}  # the operator's own


@pytest.fixture
def hold(spark: SparkLab) -> Iterator[Path]:
    """While this file is there, applications write nothing."""
    hold = spark.folder / f"hold {LABEL}"
    hold.touch()
    yield hold
    hold.unlink(missing_ok=True)
    (spark.folder / "told").unlink(missing_ok=True)


def _spark(name: str, spark: SparkLab) -> CompiledConf:
    return _conf(
        name,
        "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator",
        {
            "application": str(spark.folder / "application.py"),
            "application_args": ["{partition_key}", f"{WAREHOUSE}/{{table}}", str(spark.folder)],
            "driver_memory": "512m",
            "conf": {
                "{spark_conf}": "{spark_conf}",
                "spark.ui.enabled": "false",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.host": "127.0.0.1",
            },
            "env_vars": "{env}",
        },
    )


def _began(deployment: Deployment, spark: SparkLab, times: int) -> list[int]:
    """The processes of the newest try, once it is the so-manieth to have begun."""

    def told() -> list[list[int]]:
        deployment.real.server.check_alive()
        found = [pids for what, pids in spark.told(LABEL) if what == "begins"]
        return found if len(found) >= times else []

    found = wait_until(told, timeout=300, why=f"Spark has begun {times} times")
    assert len(found) == times
    return found[-1]


def test_spark_whose_worker_is_killed_ends_with_it_and_the_next_try_lands(
    deployment: Deployment, spark: SparkLab, hold: Path
) -> None:
    conf = _spark("spark", spark)
    deployment.deploy(conf)
    run = deployment.real.api.trigger(conf.dag_id, partition_key=LABEL)
    first = _began(deployment, spark, 1)
    task = deployment.task(run, "backfill")
    assert task.pid is not None
    os.kill(task.pid, signal.SIGKILL)
    wait_until(lambda: _gone(*first), timeout=60, why="Java and Python are gone")
    _began(deployment, spark, 2)
    hold.unlink()
    assert deployment.end_of(run, timeout=300).state == "success"
    assert [what for what, _ in spark.told(LABEL)] == ["begins", "begins", "ends"]
    assert deployment.landed(conf) == {LABEL}


def test_spark_whose_supervisor_is_killed_ends_too(deployment: Deployment, spark: SparkLab, hold: Path) -> None:
    # Airflow starts the task anew: there would be a second writer beside it
    conf = _spark("supervised", spark)
    deployment.deploy(conf)
    run = deployment.real.api.trigger(conf.dag_id, partition_key=LABEL)
    first = _began(deployment, spark, 1)
    runner = psutil.Process(deployment.task(run, "backfill").pid)
    supervisor = runner.parent()
    assert supervisor is not None
    supervisor.kill()
    wait_until(lambda: _gone(*first, runner.pid), timeout=60, why="Spark and the process that ran it are gone")
    deployment.real.api.mark_run(run, "failed")
    assert "ends" not in [what for what, _ in spark.told(LABEL)]
