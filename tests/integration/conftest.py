"""Fixtures that start real servers on 127.0.0.1: one Airflow for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.deployment import Deployment
from tests.integration.real_airflow import RealAirflow, run_real_airflow
from tests.integration.reconcile_lab import run_reconcile_airflow
from tests.integration.replay_lab import Lab, run_replay_lab


@pytest.fixture(scope="session")
def real_airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """One Airflow (SQLite, LocalExecutor) for every test that asks: give DAGs and tables names of your own."""
    with run_real_airflow(base=tmp_path_factory.mktemp("airflow")) as running:
        yield running


@pytest.fixture(scope="session")
def deployment(real_airflow: RealAirflow) -> Deployment:
    """The Chronon deployment of that Airflow: loader files and settings are there, confs come with the tests."""
    found = Deployment(real_airflow)
    found.set_up()
    return found


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One Airflow for the tests of replays: its jobs tell what they do, and can be held."""
    with run_replay_lab(tmp_path_factory.mktemp("replays")) as running:
        yield running


@pytest.fixture(scope="session")
def reconciled_airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """One Airflow for the tests of the reconciler; each deploys a branch of its own there."""
    with run_reconcile_airflow(tmp_path_factory.mktemp("reconcile")) as running:
        yield running
