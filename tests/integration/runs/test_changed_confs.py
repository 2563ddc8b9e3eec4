"""Confs that are changed while a run of them works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import LAND, shell, staging_query
from tests.support.integration.deployment import Deployment, day_label

pytestmark = pytest.mark.soak

HELD = {"runner": shell('until [ -e "$CHRONON_WAREHOUSE/changed.go" ]; do sleep 0.2; done\n' + LAND)}
BEFORE = staging_query("changed.grows", airflow=HELD)
AFTER = staging_query("changed.grows", airflow=HELD, reads="nobody.writes_this")


@pytest.fixture
def changed(deployment: Deployment) -> Iterator[Deployment]:
    deployment.deploy(BEFORE)
    yield deployment
    deployment.abandon(BEFORE)


def test_a_dependency_that_is_added_while_a_run_works_does_not_keep_the_run_from_ending(changed: Deployment) -> None:
    api, label = changed.real.api, day_label(days_ago=2)
    run = api.trigger(BEFORE.dag_id, partition_key=label)
    changed.wait_for_task(run, "backfill", "running", timeout=120)
    changed.drop(AFTER)
    wait_until(
        lambda: "wait.nobody.writes_this" in api.task_states(run), timeout=120, why="Airflow adds the wait to the run"
    )
    (changed.real.warehouse / "changed.go").touch()
    assert changed.end_of(run).state == "success"
    assert label in changed.landed(AFTER)
    assert "the run has gone ahead without this wait" in "\n".join(changed.log(run, "wait.nobody.writes_this"))
    later = api.trigger(AFTER.dag_id, partition_key=day_label(days_ago=3))
    changed.wait_for_task(later, "wait.nobody.writes_this", "deferred", timeout=120)
    assert api.task_states(later)["backfill"] is None  # a run that begins with the new conf waits
