"""The worst files beside good ones: a reconcile of a real Airflow is green, and good jobs become active (S1)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import Deployment
from tests.support.integration.worst_files import CONFS, HEAD, JOBS, drop_worst_files

pytestmark = pytest.mark.soak

CONF, JOB = "hostile--staging_query.t.good__1", "hostile--job.victim.good"


@pytest.fixture
def here(reconciled_airflow: RealAirflow) -> Iterator[Deployment]:
    """A branch of its own that holds the worst files and two good ones."""
    found = Deployment.beside(reconciled_airflow, branch="hostile")
    found.write("t.good__1")
    paths: tuple[Path, ...] = drop_worst_files(found.root, dags=reconciled_airflow.dags)
    job = found.root / "jobs" / "victim" / "good.yaml"
    job.parent.mkdir()
    job.write_text(f"{HEAD}schedule: {{cron_expression: '0 0 * * *'}}\n")
    reconciled_airflow.parse_soon()
    yield found
    found.loader.unlink()
    paths[-1].unlink()
    shutil.rmtree(found.root)


def test_a_reconcile_is_green_and_names_what_is_bad(here: Deployment) -> None:  # S1
    here.wait_for(CONF)
    done = here.reconcile()
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
    for key in (*(f"staging_query/hostile.{name}__1" for name in CONFS), *(f"job/hostile.{name}" for name in JOBS)):
        assert key in done.stdout or key == "job/hostile.exits", done.stdout  # its module is looked at where it runs
    records = here.records()
    assert records[JOB].active_since is not None and CONF in records
    here.reconciled_until(here.is_settled, why="there is nothing left to do")
