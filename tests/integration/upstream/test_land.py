"""``airflow-chronon land`` against a real Airflow: a wait on a partition that never comes passes, and says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_chronon.cli.main import main
from tests.support.confs import dependency
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.replay_lab import Lab, hour, run_replay_lab, unscheduled

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with run_replay_lab(tmp_path_factory.mktemp("land")) as running:
        yield running


@pytest.mark.parametrize("never", [True, False], ids=["never", "landed"])
def test_a_wait_passes_with_a_word_and_says_so(lab: Lab, monkeypatch: pytest.MonkeyPatch, never: bool) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CHRONON_AIRFLOW", lab.airflow.server.environment["AIRFLOW_CONN_CHRONON_AIRFLOW"])
    table = f"vendor.prices_{never}".lower()
    dag_id = lab.deploy(unscheduled(f"t.land.{never}__1".lower(), "1h", dependencies=[dependency(table, "1h")]))
    lab.wait_for(dag_id)
    run = lab.airflow.api.trigger(dag_id, partition_key=hour(2))
    waits = f"wait.{table}"
    wait_until(lambda: f"{table} is not there yet" in lab.log_of(run, waits), timeout=120, why="it waits")
    assert main(["land", table, hour(2), *(["--never"] if never else [])]) == 0
    assert lab.ended(run).state == "success"
    told = "is absent on purpose (land)" if never else "is there by somebody's word (land)"
    assert f"{table} ds={hour(2)} {told}" in lab.log_of(run, waits)
