"""State files on a disk and in an object store, which must behave alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from airflow_chronon.state.files import open_state_files
from airflow_chronon.storage.files import Storage


@pytest.fixture(params=["disk", "object store"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A state root that is not there yet."""
    if request.param == "disk":
        return str(tmp_path / "state")
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    return "memory://bucket/state"


@pytest.fixture
def files(root: str) -> Storage:
    return open_state_files(root)


@pytest.fixture
def reopen(root: str) -> Callable[[], Storage]:
    """Another process that opens the same root."""
    return lambda: open_state_files(root)
