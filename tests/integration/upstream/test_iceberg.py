"""A wait on an Iceberg table in a real Airflow: it ends with the commit, and its connection is one of Airflow's (C16)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.confs import dependency
from tests.support.iceberg import IcebergLake
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.replay_lab import hour, run_replay_lab, unscheduled

pytestmark = pytest.mark.soak


def test_a_commit_ends_the_wait_and_the_partition_lands(tmp_path: Path) -> None:
    lake = IcebergLake(tmp_path / "lake")
    lake.folder.mkdir()
    lake.create("lake.orders", pa.schema({"ts": pa.timestamp("us"), "v": pa.int64()}), {"ts": "hour"})
    properties = lake.properties
    extra = {"type": properties["type"], "warehouse": properties["warehouse"]}
    connection = json.dumps({"conn_type": "iceberg", "host": properties["uri"], "extra": extra})
    with run_replay_lab(tmp_path / "airflow", settings={"AIRFLOW_CONN_LAKE": connection}) as lab:
        settings = lab.airflow.conf_root / "chronon.yaml"
        tables = ", tables: [{match: 'lake.*', kind: iceberg, connection: lake}]}\nrunner"
        settings.write_text(settings.read_text().replace("}\nrunner", tables, 1))
        reads = dependency("lake.orders", "1h", partitionColumn="ts")
        dag_id = lab.deploy(unscheduled("t.ice.hourly__1", "1h", dependencies=[reads]))
        lab.wait_for(dag_id)
        run = lab.airflow.api.trigger(dag_id, partition_key=hour(2))
        waits = f"wait.{'lake.orders'}"
        wait_until(
            lambda: f"lake.orders lacks ts={hour(2)}" in lab.log_of(run, waits),
            timeout=120,
            why="it waits for the hour",
        )
        assert lab.task_state(run, waits) == "deferred"
        label = hour(2)
        moment = f"{label[:10]}T{label[11:13]}:30:00"
        lake.append("lake.orders", [{"ts": pa.scalar(moment).cast(pa.timestamp("us")).as_py(), "v": 1}])
        assert lab.ended(run).state == "success"
        assert (lab.airflow.warehouse / lab.table("t.ice.hourly__1") / f"ds={label}" / "_SUCCESS").exists()
