"""Tables made of real files, on disk and in fsspec's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Write = Callable[..., None]


@pytest.fixture(params=["disk", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A warehouse: the same tests must hold on a disk and in an object store."""
    if request.param == "disk":
        yield str(tmp_path / "warehouse")
        return
    root = f"memory://{uuid4().hex}"
    yield root
    filesystem, path = fsspec.core.url_to_fs(root)
    if filesystem.exists(path):
        filesystem.rm(path, recursive=True)


@pytest.fixture
def touch(root: str) -> Write:
    """Put an empty or given file below the root."""

    def write(*paths: str, content: bytes = b"x") -> None:
        for path in paths:
            with fsspec.open(f"{root}/{path}", "wb", auto_mkdir=True) as file:
                file.write(content)

    return write


@pytest.fixture
def parquet(root: str) -> Write:
    """Put a Parquet file below the root."""

    def write(path: str, columns: dict[str, Any], **options: Any) -> None:
        with fsspec.open(f"{root}/{path}", "wb", auto_mkdir=True) as file:
            pq.write_table(pa.table(columns), file, **options)

    return write
