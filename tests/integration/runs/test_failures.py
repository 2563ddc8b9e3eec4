"""Who is told of a failure: callback and email, once, for whatever task of a run fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.integration.compiled_confs import CompiledConf, shell, staging_query
from tests.support.integration.deployment import Deployment, day_label
from tests.support.integration.witness import CALLBACK, told

pytestmark = pytest.mark.soak

TOLD = {"task_defaults": {"on_failure_callback": CALLBACK, "email": "someone@example.com"}}
WAIT = staging_query("failures.wait", reads="nobody.writes_this", airflow={"sensor": {"timeout": "1s"}, **TOLD})
WORK = staging_query("failures.work", airflow={"runner": shell("exit 1"), **TOLD})
LANDED = staging_query("failures.landed", airflow={"runner": shell("exit 0"), **TOLD})
CONFS = (WAIT, WORK, LANDED)


@pytest.fixture(scope="module")
def failing(deployment: Deployment) -> Iterator[Deployment]:
    deployment.deploy(*CONFS)
    yield deployment
    deployment.abandon(*CONFS)


@pytest.mark.parametrize(
    ("conf", "task_id"),
    [(WAIT, "wait.nobody.writes_this"), (WORK, "backfill"), (LANDED, "landed")],
    ids=["a wait", "the work", "the check that it has landed"],
)
def test_callback_and_email_are_called_once(failing: Deployment, conf: CompiledConf, task_id: str) -> None:
    run = failing.real.api.trigger(conf.dag_id, partition_key=day_label(days_ago=2))
    assert failing.end_of(run).state == "failed"
    assert failing.task(run, task_id).state == "failed"
    warehouse = failing.real.warehouse
    assert told(warehouse, "callback", conf.dag_id) == [f"callback {conf.dag_id} {task_id}"]
    assert len(told(warehouse, "email", conf.dag_id)) == 1
    assert len(told(warehouse, "email", conf.dag_id, task_id)) == 1
