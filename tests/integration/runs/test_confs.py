"""From a dropped conf to a landed partition, on a real Airflow."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment, day_label

pytestmark = pytest.mark.soak

ORDERS = staging_query(
    "confs.orders",
    schedule="0 0 * * *",
    reads="confs.raw_orders",
    query="SELECT id, amount * 2 AS doubled, ds FROM confs.raw_orders "
    "WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}",
    airflow={"runner": {"kind": "local"}},
)
CONSUMER = """
from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

asset = Asset(name="chronon://lab/it_confs_orders__1", uri="chronon://lab/it_confs_orders__1")
with DAG("confs_consumer", schedule=PartitionedAssetTimetable(assets=asset)):
    @task
    def read(**context):
        print("woken for", context["partition_key"])

    read()
"""


@pytest.fixture(scope="module")
def orders(deployment: Deployment) -> Iterator[CompiledConf]:
    (deployment.real.dags / "confs_consumer.py").write_text(CONSUMER)
    wait_until(lambda: deployment.real.api.dag("confs_consumer"), timeout=60, why="the consumer is a DAG")
    deployment.deploy(ORDERS)
    yield ORDERS
    deployment.withdraw(ORDERS)
    (deployment.real.dags / "confs_consumer.py").unlink()


def test_a_dropped_conf_waits_for_its_label_and_then_lands_its_partition(
    deployment: Deployment, orders: CompiledConf
) -> None:
    api, label = deployment.real.api, day_label(days_ago=1)
    run = deployment.run_of(orders, label)  # H8: a new conf runs its newest closed partition at once
    deployment.wait_for_task(run, "wait.confs.raw_orders", "deferred")
    assert api.task_states(run)["backfill"] is None

    folder = deployment.real.warehouse / "confs.raw_orders" / f"ds={label}"
    folder.mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT 7 AS id, 21 AS amount) TO '{folder}/part-0.parquet'")
    assert deployment.end_of(run).state == "success"

    landed = deployment.real.warehouse / orders.table / f"ds={label}"
    assert duckdb.sql(f"SELECT id, doubled FROM '{landed}/*.parquet'").fetchall() == [(7, 42)]
    (event,) = deployment.events(run)
    assert event["partition_key"] == label
    assert event["name"] == f"chronon://lab/{orders.table.removeprefix('lab.')}"
    (woken,) = wait_until(lambda: api.runs("confs_consumer"), timeout=60, why="the consumer is woken")
    assert woken.partition_key == label


def test_every_task_says_first_what_it_is_for(deployment: Deployment, orders: CompiledConf) -> None:
    label = day_label(days_ago=1)
    run = deployment.end_of(deployment.run_of(orders, label))
    window = (
        f"partition {label}, window [{label}T00:00:00Z, {day_label(days_ago=0)}T00:00:00Z): backfill writes {label}"
    )
    wait = f"confs.raw_orders ds={label}"
    for task_id, more in {
        "wait.confs.raw_orders": f"waiting for {wait}",
        "backfill": f"reads {wait}",
        "landed": "",
    }.items():
        said = deployment.log(run, task_id)
        assert window in said, said
        assert not more or more in said[: said.index(window) + 3], said


def test_a_wait_is_never_held_by_a_worker(deployment: Deployment, orders: CompiledConf) -> None:
    run = deployment.end_of(deployment.run_of(orders, day_label(days_ago=1)))
    tasks = {task.task_id: task for task in deployment.real.api.tasks(run.dag_id, run.run_id)}
    assert tasks["wait.confs.raw_orders"].pid is None
    assert tasks["backfill"].pid is not None
