"""One Airflow for the tests of the reconciler and of jobs, which do not fire before a reconcile; ended when the last of them is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import run_reconcile_airflow


@pytest.fixture(scope="package")
def reconciled_airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Each test deploys a branch of its own there."""
    with run_reconcile_airflow(tmp_path_factory.mktemp("reconcile")) as running:
        yield running
