"""A run that would cover half a century of minutes fails at once, and stalls nobody (S7)."""

from __future__ import annotations

import pytest

from tests.support.integration.compiled_confs import LAND, shell, staging_query
from tests.support.integration.deployment import Deployment

pytestmark = pytest.mark.soak

RUNNER = {"runner": shell(LAND)}
HUGE = staging_query("huge.minutes", every=1, reads="huge.raw", airflow=RUNNER)
OTHER = staging_query("huge.other", reads="huge.days", airflow=RUNNER)


def test_it_fails_in_one_sentence_while_another_wait_goes_on_and_ends(deployment: Deployment) -> None:
    deployment.deploy(HUGE, OTHER)
    api = deployment.real.api
    other = api.trigger(OTHER.dag_id, partition_key="2026-06-01")
    huge = [api.trigger(HUGE.dag_id, params={"start_ds": "1970-01-01", "end_ds": "2026-06-01"}) for _ in range(3)]
    ended = deployment.ends_of(huge)
    assert {run.state for run in ended} == {"failed"}
    for run in ended:
        assert api.task_states(run)["backfill"] == "failed"
        for task in ("wait.huge.raw", "backfill"):
            (said,) = [line for line in deployment.log(run, task) if "(S7)" in line]
            assert said.startswith(
                "start_ds: the run would cover 29672640 partitions, and one run covers at most 50000"
            )
            assert f"airflow-chronon backfill {HUGE.dag_id} --start-ds 1970-01-01-00-00" in said
    assert api.run(OTHER.dag_id, other.run_id).state == "running"  # it waits on
    deployment.land("huge.days", "2026-06-01")
    (done,) = deployment.ends_of([other])
    assert done.state == "success"
    deployment.withdraw(HUGE, OTHER)
