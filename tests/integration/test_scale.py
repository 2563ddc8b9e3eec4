"""What a large tree needs: a long interval between parses, at which changes show all the same, and a scheduler that passes over runs
that only wait."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment, day_label, midnight
from tests.support.integration.real_airflow import RealAirflow, run_real_airflow

pytestmark = pytest.mark.soak

WAITING = 12
SETTINGS = {
    "AIRFLOW__CHRONON__PASS_OVER_WAITING_RUNS": "True",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
    "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "5",
}


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Its scheduler looks at fewer runs a loop than wait, and its files are parsed once an hour."""
    with run_real_airflow(base=tmp_path_factory.mktemp("scale"), settings=SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def deployment(airflow: RealAirflow) -> Deployment:
    """Confs of which each has a run that waits."""
    found = Deployment(airflow)
    for number in range(WAITING):
        write(airflow, staging_query(f"waiting.n{number}", schedule="@daily", reads=f"lake.t{number}"))
    write(airflow, staging_query("replayed.daily"))
    found.set_up()
    wait_until(lambda: len(airflow.api.runs("~", state="running")) >= WAITING, timeout=120, why="a run of each waits")
    return found


def write(airflow: RealAirflow, conf: CompiledConf) -> Path:
    """Drop a conf and touch nothing else."""
    path = airflow.conf_root / "compiled" / conf.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(conf.document))
    return path


def reconcile(airflow: RealAirflow) -> None:
    command = [sys.executable, "-m", "airflow_chronon", "reconcile", "--root", str(airflow.conf_root)]
    done = subprocess.run(
        command, env=airflow.server.environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_replays_run_while_more_runs_wait_than_a_loop_takes(deployment: Deployment) -> None:
    """Airflow 3.3 by itself would never look at them: its own backfills come after all other runs."""
    conf = staging_query("replayed.daily")
    first, last = midnight(days_ago=3), midnight(days_ago=2)
    deployment.real.api.backfill(conf.dag_id, start=first, end=last)
    wait_until(
        lambda: deployment.landed(conf) >= {day_label(days_ago=3), day_label(days_ago=2)},
        timeout=90,
        why="the replays have landed",
    )


def test_a_run_whose_wait_ends_goes_on(deployment: Deployment) -> None:
    for number in (3, 11):
        conf = staging_query(f"waiting.n{number}", schedule="@daily", reads=f"lake.t{number}")
        (run,) = deployment.runs(conf)
        deployment.land(f"lake.t{number}", day_label(days_ago=1))
        assert deployment.end_of(run, timeout=90).state == "success"
        wait, work = deployment.task(run, f"wait.lake.t{number}"), deployment.task(run, "backfill")
        assert wait.end_date is not None and work.start_date is not None
        print(f"work began {(work.start_date - wait.end_date) / timedelta(seconds=1):.1f} s after its wait's end")


def test_a_new_conf_shows_after_the_next_reconcile(deployment: Deployment) -> None:  # C23
    airflow = deployment.real
    reconcile(airflow)
    new = staging_query("dropped.later")
    write(airflow, new)
    reconcile(airflow)
    deployment.wait_for_dags(new)


def test_a_bad_conf_is_an_import_error_and_mended_none_any_more(deployment: Deployment) -> None:  # C23
    airflow = deployment.real
    bad = staging_query("dropped.bad", schedule="0 0 31 2 *")
    path = write(airflow, bad)
    reconcile(airflow)
    wait_until(lambda: any("dropped.bad" in line for line in deployment.import_errors()), timeout=60, why="it is named")
    path.unlink()
    reconcile(airflow)
    wait_until(lambda: not deployment.import_errors(), timeout=60, why="it is named no longer")


def test_a_conf_that_is_gone_is_off_after_the_next_reconcile(deployment: Deployment) -> None:  # C23
    airflow = deployment.real
    gone = staging_query("dropped.later")
    shutil.move(airflow.conf_root / "compiled" / gone.file, airflow.conf_root / "elsewhere")
    reconcile(airflow)

    def is_off() -> bool:
        found = airflow.api.dag(gone.dag_id)
        return found is None or found["is_stale"] or any(tag["name"] == "off" for tag in found["tags"])

    wait_until(is_off, timeout=60, why="it fires no more")
