"""One Airflow for the tests of replays, ended when the last of them is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.integration.replay_lab import Lab, run_replay_lab


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Its jobs tell what they do, and can be held."""
    with run_replay_lab(tmp_path_factory.mktemp("replays")) as running:
        yield running
