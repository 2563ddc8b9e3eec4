"""A reconciler that is killed on a real Airflow: the next one ends in the same state, and no history is lost."""

from __future__ import annotations

import random
import signal
import subprocess
import sys

import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import Deployment

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("kills", [pytest.param(3, id="three"), pytest.param(20, id="twenty")])
def test_a_killed_reconciler_loses_nothing(reconciled_airflow: RealAirflow, kills: int) -> None:
    here = Deployment.beside(reconciled_airflow, branch=f"kill{kills}")
    going = [f"t.going{number}__1" for number in range(4)]
    staying = [f"t.staying{number}__1" for number in range(8)]
    here.write(*going, *staying)
    ids = {name: f"{here.branch}--staging_query.{name}" for name in (*going, *staying)}
    for name in (going[0], staying[-1]):
        here.wait_for(ids[name])
    assert here.reconcile().returncode == 0
    runs = {name: reconciled_airflow.api.trigger(ids[name]) for name in going}
    for name, run in runs.items():
        wait_until(
            lambda name=name, run=run: reconciled_airflow.api.run(ids[name], run.run_id).state == "success",  # type: ignore[misc]
            timeout=240,
            why="the run ends",
        )
    here.write(*staying)
    chance = random.Random(kills)
    arguments = [sys.executable, "-m", "airflow_chronon.cli.main", "reconcile", "--root", str(here.root)]
    for _ in range(kills):
        victim = subprocess.Popen(
            arguments, env=reconciled_airflow.server.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            victim.wait(timeout=chance.uniform(0.5, 6))
        except subprocess.TimeoutExpired:
            victim.send_signal(signal.SIGKILL)
            victim.wait()
    here.reconciled_until(lambda: all(here.is_gone(ids[name]) for name in going), why="what was to go is gone")
    here.reconciled_until(lambda: not here.retiring(), why="no retirement is left")
    for name, run in runs.items():
        archived = [line for line in here.archived(ids[name]) if line["kind"] == "run"]
        assert [line["dag_run_id"] for line in archived] == [run.run_id]
    assert set(here.records()) == {ids[name] for name in staying}
    assert not any(here.is_gone(ids[name]) for name in staying)
