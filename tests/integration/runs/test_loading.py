"""What a starting task builds: its own DAG and no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.deployment import Deployment

pytestmark = pytest.mark.soak

#: Written down at import: the DAG that was asked for, or nothing when a whole file is parsed.
WITNESS = """
import os
from airflow.sdk import get_parsing_context

with open(os.path.join(os.environ["CHRONON_WAREHOUSE"], "witness.txt"), "a") as file:
    print(get_parsing_context().dag_id, file=file)

def callback(context):
    pass
"""
PLAIN = staging_query("loading.plain")
WATCHED = staging_query(
    "loading.watched", airflow={"task_defaults": {"on_failure_callback": "witness_of_loading.callback"}}
)


@pytest.fixture(scope="module")
def loading(deployment: Deployment) -> Iterator[Deployment]:
    module = deployment.real.dags / "witness_of_loading.py"
    module.write_text(WITNESS)
    deployment.deploy(PLAIN, WATCHED)
    yield deployment
    deployment.withdraw(PLAIN, WATCHED)
    module.unlink()


def test_a_starting_task_builds_only_its_own_dag(loading: Deployment) -> None:
    api = loading.real.api
    runs = [api.trigger(conf.dag_id, partition_key="2026-06-01") for conf in (PLAIN, WATCHED)]
    assert {run.state for run in loading.ends_of(runs)} == {"success"}
    asked = set((loading.real.warehouse / "witness.txt").read_text().split())
    assert asked == {"None", WATCHED.dag_id}  # the dag-processor asks for all, the watched conf's own tasks for it
