"""The sample tree as a newcomer deploys it: the loader files and the compiled confs, and no settings at all (C30)."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from shop_data import write_source_data

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.deployment import utc_now
from tests.support.integration.real_airflow import RealAirflow, run_real_airflow

pytestmark = pytest.mark.soak

CONFS = 15


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[RealAirflow]:
    with run_real_airflow(base=tmp_path) as running:
        yield running


def test_no_first_run_is_left_waiting(airflow: RealAirflow, tmp_path: Path) -> None:
    write_source_data(warehouse=tmp_path / "home" / "warehouse", now=utc_now(), days=10)
    for loader in ("chronon.py", "chronon_import_errors.py"):
        shutil.copy(ROOT / "dags" / loader, airflow.dags / loader)
    shutil.copytree(ROOT / "dags" / "chronon" / "compiled", airflow.conf_root / "compiled")
    wait_until(lambda: len(airflow.api.dags()) == CONFS, timeout=120, why="every conf is a DAG")

    def all_ended() -> bool:
        runs = airflow.api.runs()
        with_runs = {run.dag_id for run in runs}
        return len(with_runs) == CONFS and all(run.state in ("success", "failed") for run in runs)

    # waits look once a minute, and end when what they wait for was hopeless in two polls running
    wait_until(all_ended, timeout=600, why="the first run of every conf has ended")
    states = Counter(run.state for run in airflow.api.runs())
    assert set(states) == {"success"}, states
