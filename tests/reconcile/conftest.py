"""No other deployment shares the state root unless a test says so."""

from __future__ import annotations

import pytest

from airflow_chronon.reconcile import gather


@pytest.fixture(autouse=True)
def no_remote_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world keeps its state in a dictionary, which no state root names."""
    monkeypatch.setattr(gather, "open_branches", lambda root: {})
