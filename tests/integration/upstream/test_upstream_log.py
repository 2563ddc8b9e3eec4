"""Waits in a real triggerer: why a partition is not there, from what the reconciler keeps (C30), and for how long they wait."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.login import login_of_text
from airflow_chronon.airflow_api.waiting import seconds_waited
from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.deployment import Deployment, day_label
from tests.support.integration.real_airflow import run_real_airflow

pytestmark = pytest.mark.soak

DAYS = staging_query("upstream.days", schedule="0 0 * * *", reads="raw.orders")
AFTER = staging_query("upstream.after", schedule="0 0 * * *", reads=DAYS.table)


def test_the_log_of_a_wait_follows_its_producer(tmp_path: Path) -> None:
    label = day_label(days_ago=1)
    with run_real_airflow(base=tmp_path / "airflow") as real:
        deployment = Deployment(real)
        deployment.set_up()
        shutil.copy(ROOT / "dags" / "chronon_reconciler.py", real.dags / "chronon_reconciler.py")
        deployment.deploy(DAYS)
        producer = deployment.run_of(DAYS, label)
        deployment.wait_for_task(producer, "wait.raw.orders", "deferred")
        wait_until(
            lambda: any(dag["dag_id"] == "chronon_reconciler" for dag in real.api.dags()),
            timeout=90,
            why="the reconciler is a DAG",
        )
        survey = real.api.trigger("chronon_reconciler")
        deployment.wait_for_task(survey, "survey", "success", timeout=180)
        deployment.deploy(AFTER)
        run = deployment.run_of(AFTER, label)
        deployment.wait_for_task(run, f"wait.{DAYS.table}", "deferred")
        server = AirflowRest(login_of_text(real.server.environment["AIRFLOW_CONN_CHRONON_AIRFLOW"]))
        waited = seconds_waited(server, now=time.time())
        assert set(waited) == {DAYS.dag_id, AFTER.dag_id}
        assert 0 < waited[AFTER.dag_id] < waited[DAYS.dag_id]
        told = [
            f"staging_query/{DAYS.name} {label}: waiting (wait.raw.orders not over)",
            f"|  run {producer.run_id} of {DAYS.dag_id}",
            f"+- raw.orders {label}: not landed",
        ]

        def is_told() -> bool:
            return set(told) <= set(deployment.log(run, f"wait.{DAYS.table}"))

        wait_until(is_told, timeout=60, why="the wait tells why its partition is not there")
