"""State files on a disk, in an object store and on S3, which must behave alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from airflow_chronon.state.files import open_state_files
from airflow_chronon.storage.files import Storage
from tests.support.s3_server import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """An S3 with one empty bucket, which this process finds by its environment as a pod would."""
    for name, text in s3.environment.items():
        monkeypatch.setenv(name, text)
    s3.fresh_bucket()
    return s3


@pytest.fixture(params=["disk", "object store", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A state root that is not there yet."""
    if request.param == "disk":
        return str(tmp_path / "state")
    if request.param == "s3":
        request.getfixturevalue("bucket")
        return "s3://bucket/chronon_state"
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
