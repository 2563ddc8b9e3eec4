"""One Airflow with the accounts of the compose file, whose tasks ask it as ``reader``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_airflow import CONNECTION, Component

from tests.support.integration.accounts import USERS, connection_as
from tests.support.integration.compose_file import services
from tests.support.integration.replay_lab import Lab, run_replay_lab


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """``admin``, ``editor``, which the reconciler takes there, and ``reader``, which tasks take."""
    accounts = services()["api-server"]["environment"][USERS]
    with run_replay_lab(tmp_path_factory.mktemp("rights"), settings={USERS: accounts}) as running:
        server = running.airflow.server
        server.environment[CONNECTION] = connection_as(running.airflow, "reader")
        for component in (Component.SCHEDULER, Component.TRIGGERER):
            server.restart_component(component, timeout=240)
        yield running
