"""A stub of Airflow's API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_chronon.airflow_api import transport
from tests.support.stub_server import StubServer, stub_server


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    """The server; a second try comes at once."""
    monkeypatch.setattr(transport.Transport.__init__, "__kwdefaults__", {"pause": lambda seconds: None})
    with stub_server() as running:
        yield running
