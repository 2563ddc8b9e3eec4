"""One Airflow for the tests of jobs, ended when the last of them is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.real_airflow import RealAirflow
from tests.integration.reconciling.reconcile_lab import run_reconcile_airflow


@pytest.fixture(scope="package")
def reconciled_airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Its deployment is reconciled: jobs do not fire before."""
    with run_reconcile_airflow(tmp_path_factory.mktemp("jobs")) as running:
        yield running
