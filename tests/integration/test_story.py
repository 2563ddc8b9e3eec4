"""One whole way of a conf on a real Airflow: dropped, run, replayed, and retired when its file is gone.

Everything else that needs a real Airflow is in the folders beside this file and runs with ``make soak``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from airflow_api import DagRun

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.deployment import Deployment, day_label
from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import Deployment as Reconciled
from tests.support.integration.reconcile_lab import run_reconcile_airflow

STAYS = staging_query("story.stays")
ORDERS = staging_query("story.orders", schedule="0 0 * * *", reads="story.raw")


def _shows_what_it_is(airflow: RealAirflow, run: DagRun) -> None:
    """In lists, in the grid, in the asset graph and among the rendered templates of its work."""
    dag = airflow.api.request("GET", f"/dags/{run.dag_id}")
    assert dag["dag_display_name"] == f"{ORDERS.name} (staging query)"
    assert dag["description"].endswith("at 0 0 * * * UTC")
    task = f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}/taskInstances"
    assert airflow.api.request("GET", f"{task}/wait.story.raw")["task_display_name"] == "raw"
    query = airflow.api.request("GET", f"{task}/backfill")["rendered_fields"]["query"]
    assert "{{" not in query and query.startswith("SELECT")
    assets = {asset["uri"]: asset for asset in airflow.api.assets(dag_id=run.dag_id)}
    assert [each["task_id"] for each in assets["chronon://story/raw"]["consuming_tasks"]] == ["wait.story.raw"]
    [written] = [asset for asset in assets.values() if asset["producing_tasks"]]
    assert written["extra"]["conf"] == f"staging_query/{ORDERS.name}"


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[RealAirflow]:
    with run_reconcile_airflow(tmp_path) as running:
        yield running


def _tells_no_secret(deployment: Deployment) -> None:
    """A job that prints its environment and its arguments, and a run that names what is to be executed (S4, S5)."""
    airflow = deployment.real
    path = airflow.conf_root / "jobs" / "story" / "tells.yaml"
    path.parent.mkdir(parents=True)
    argv = ["sh", "-c", "env; echo told: $0", "${AIRFLOW__CORE__FERNET_KEY}"]
    path.write_text(json.dumps({"version": 1, "retries": 0, "runner": {"argv": argv}}))
    airflow.parse_soon()
    dag_id, own = "job.story.tells", airflow.server.environment
    wait_until(lambda: dag_id in {dag["dag_id"] for dag in airflow.api.dags()}, timeout=90, why="the job is a DAG")

    run = airflow.api.trigger(dag_id)
    assert deployment.end_of(run).state == "success"
    log = airflow.api.log_text(deployment.task(run, "run"))
    assert "CHRONON_RUN_ID=" in log and "AIRFLOW_HOME=" in log
    assert (
        "'${AIRFLOW__CORE__FERNET_KEY}']" in log and "told: ***" in log
    )  # S4: as written, and masked where it is told
    held = [name for name in own if name.startswith(("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_"))]
    assert "AIRFLOW__API_AUTH__JWT_SECRET" in held and not [name for name in held if f"{name}=" in log]  # S5
    secrets = ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__API__SECRET_KEY")
    assert not [name for name in secrets if own[name] in log] and airflow.server.password not in log

    refused = airflow.api.trigger(dag_id, params={"env": {"BASH_ENV": "/tmp/evil"}})
    assert deployment.end_of(refused).state == "failed"
    said = airflow.api.log_text(deployment.task(refused, "run"))
    assert "a run may not set BASH_ENV" in said and "CHRONON_RUN_ID=" not in said  # S5: nothing was started


def test_a_conf_is_dropped_runs_is_replayed_and_is_retired(airflow: RealAirflow) -> None:
    deployment = Deployment(airflow)
    commands = Reconciled(airflow, airflow.conf_root, airflow.dags / "chronon.py")
    yesterday, earlier = day_label(days_ago=1), [day_label(days_ago=3), day_label(days_ago=2)]
    deployment.set_up()
    deployment.deploy(STAYS, ORDERS)
    done = commands.reconcile()
    assert done.returncode == 0, done.stdout + done.stderr

    run = deployment.run_of(ORDERS, yesterday)  # H8: the newest closed partition, at once
    deployment.wait_for_task(run, "wait.story.raw", "deferred")  # C16: without a worker
    deployment.land("story.raw", yesterday)
    assert deployment.end_of(run).state == "success"
    assert deployment.landed(ORDERS) == {yesterday}
    _shows_what_it_is(airflow, run)

    deployment.land("story.raw", *earlier)
    span = ("--start-ds", earlier[0], "--end-ds", earlier[1])  # C27: both inclusive
    done = commands.command("backfill", ORDERS.dag_id, *span, "--wait", "--root", str(airflow.conf_root))
    assert done.returncode == 0, done.stdout + done.stderr
    assert deployment.landed(ORDERS) == {*earlier, yesterday}

    _tells_no_secret(deployment)

    (airflow.conf_root / "compiled" / ORDERS.file).unlink()
    commands.reconciled_until(lambda: commands.is_gone(ORDERS.dag_id), why="the DAG of the conf is gone")  # C23
    archived = [line["partition_key"] for line in commands.archived(ORDERS.dag_id) if line["kind"] == "run"]
    assert sorted(map(str, archived)) == [*earlier, yesterday]
    assert deployment.landed(ORDERS) == {*earlier, yesterday}  # what was written stays
    assert airflow.api.dag(STAYS.dag_id) is not None
