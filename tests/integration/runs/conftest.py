"""One Airflow for the tests of confs that run, ended when the last of them is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.integration.deployment import Deployment
from tests.support.integration.real_airflow import RealAirflow, run_real_airflow


@pytest.fixture(scope="package")
def real_airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """SQLite and LocalExecutor; give DAGs and tables names of your own."""
    settings = {"AIRFLOW__EMAIL__EMAIL_BACKEND": "tests.support.integration.witness.send_email"}
    with run_real_airflow(base=tmp_path_factory.mktemp("airflow"), settings=settings) as running:
        yield running


@pytest.fixture(scope="package")
def deployment(real_airflow: RealAirflow) -> Deployment:
    """The Chronon deployment of that Airflow: loader files and settings are there, confs come with the tests."""
    found = Deployment(real_airflow)
    found.set_up()
    return found
