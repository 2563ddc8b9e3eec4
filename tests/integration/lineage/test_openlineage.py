"""What Airflow's provider of OpenLineage sends of a real run, to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.deployment import Deployment, day_label
from tests.support.integration.real_airflow import run_real_airflow

pytestmark = pytest.mark.soak


def test_a_run_tells_what_it_read_and_wrote(tmp_path: Path) -> None:
    sent = tmp_path / "lineage.jsonl"
    settings = {
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(sent), "append": True}),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "lab",
    }
    conf, label = staging_query("lineage.daily", reads="raw.orders"), day_label(days_ago=2)
    with run_real_airflow(base=tmp_path / "airflow", settings=settings) as real:
        deployment = Deployment(real)
        deployment.set_up()
        deployment.deploy(conf)
        deployment.land("raw.orders", label)
        run = deployment.end_of(real.api.trigger(conf.dag_id, partition_key=label))
        assert run.state == "success"

        def told() -> dict[str, Any] | None:
            events = [json.loads(line) for line in sent.read_text().splitlines()] if sent.exists() else []
            ended = [event for event in events if event["eventType"] == "COMPLETE"]
            return next((each for each in ended if each["job"]["name"] == f"{conf.dag_id}.landed"), None)

        event = wait_until(told, timeout=60, why="the end of the last task is told")
    assert event is not None
    partition = {"type": "partition", "partitions": [{"dimensions": {"ds": label}, "identifier": f"ds={label}"}]}
    (read,) = event["inputs"]
    assert (read["namespace"], read["name"]) == ("chronon", "raw.orders")
    assert read["inputFacets"]["subset"]["inputCondition"] == partition
    (written,) = event["outputs"]
    assert (written["namespace"], written["name"]) == ("chronon", conf.table)
    assert written["outputFacets"]["subset"]["outputCondition"] == partition
