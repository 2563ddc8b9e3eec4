"""Writing partitions so that a reader, and a crash, see the old one or the new one and never half (C28).

A partition is one file, ``part-0.parquet``. It is written below the table into a folder of its own, flushed to disk,
and moved into place by one rename: a folder cannot be renamed over a filled one, a file can.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow_chronon.core.partitions.labels import PartitionKey, escape_label
from airflow_chronon.errors import CatalogError, Fault, JobRefused
from airflow_chronon.sql.parquet import literal, unglobbed
from airflow_chronon.storage.files import flush
from airflow_chronon.storage.layout import SUCCESS_FILE, is_data_file, is_hidden

if TYPE_CHECKING:
    import duckdb

PART = "part-0.parquet"
#: The key in a Parquet footer that says who wrote the file.
WRITER_KEY = "airflow_chronon.conf"

_REMOVALS, _REMOVAL_SECONDS = 20, 0.1  #: how often a staging folder is removed, and how long between two tries
_STAGING = "_chronon-"
_LEFTOVER_SECONDS = 24 * 60 * 60


def scratch_folder(table: Path) -> Path:
    """A folder below a table that is this run's own; made by whoever writes there first."""
    return table / f"{_STAGING}{os.getpid()}-{uuid4().hex}"


@dataclass
class TableWriter:
    """Writes partitions of one table; two writers never share a staging folder, and the last rename wins."""

    folder: Path  #: ``<root>/<table>``
    column: str  #: the partition column
    conf: str  #: ``type/name``, written into each file
    _staging: Path | None = field(default=None, init=False, repr=False)

    def partition(self, label: PartitionKey) -> Path:
        """The folder of a label."""
        return self.folder / f"{self.column}={escape_label(label)}"

    def check(self, connection: duckdb.DuckDBPyConnection, labels: tuple[PartitionKey, ...]) -> None:
        """Refuse before any work when a folder holds data that this engine did not write: it would be read beside ours.

        Raises :class:`JobRefused` naming the first such file.
        """
        for label in labels:
            foreign = self._foreign(connection, self.partition(label))
            if foreign is not None:
                message = f"{foreign} was not written by the embedded engine, and would be read beside the new rows"
                remedy = "move it away, or write this table with one runner only"
                raise JobRefused(Fault("C28", "", message, remedy), conf=self.conf)

    def _foreign(self, connection: duckdb.DuckDBPyConnection, partition: Path) -> Path | None:
        if not partition.exists():
            return None
        if not partition.is_dir():
            return partition
        for path in _data_below(partition):
            if path != partition / PART or not self._is_ours(connection, path):
                return path
        return None

    @staticmethod
    def _is_ours(connection: duckdb.DuckDBPyConnection, path: Path) -> bool:
        from duckdb import Error

        query = "SELECT count(*) FROM parquet_kv_metadata(?) WHERE decode(key) = ?"
        try:
            found = connection.execute(query, [unglobbed(str(path)), WRITER_KEY]).fetchone()
        except Error:
            return False  # broken, or no Parquet: whoever put it there should look at it
        return bool(found and found[0])

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder of this run's own below the table, removed afterwards; leftovers of killed runs go first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_leftovers()
        self._staging = scratch_folder(self.folder)
        self._staging.mkdir()
        try:
            yield self._staging
        finally:
            remove_folder(self._staging)
            self._staging = None

    def _remove_leftovers(self) -> None:
        oldest = time.time() - _LEFTOVER_SECONDS
        for path in self.folder.glob(f"{_STAGING}*"):
            try:
                changed = max(place.stat().st_mtime for place in (path, *path.rglob("*")))
            except OSError:
                continue  # its own run is at work in it
            if changed < oldest:
                shutil.rmtree(path, ignore_errors=True)

    def write(self, connection: duckdb.DuckDBPyConnection, query: str, *, index: int) -> Path:
        """Write the rows of a query into the staging folder, in the order of their values, and flush them to disk.

        Threads give rows in any order: sorted, the same rows make the same file, byte for byte, whenever it is written
        again. A query without rows still gives a file, with its columns.
        """
        assert self._staging is not None, "write() belongs inside staging()"
        path = self._staging / f"part-{index}.parquet"
        writer = f"KV_METADATA {{{literal(WRITER_KEY)}: {literal(self.conf)}}}"
        connection.execute(
            f"COPY (SELECT * FROM ({query}) ORDER BY ALL) TO {literal(str(path))} (FORMAT parquet, {writer})"
        )
        flush(path)
        return path

    def publish(self, written: Path, label: PartitionKey) -> None:
        """Move a written file into its partition: the one step that a reader can see."""
        partition = self.partition(label)
        partition.mkdir(exist_ok=True)
        os.replace(written, partition / PART)
        (partition / SUCCESS_FILE).touch()
        flush(partition)
        flush(self.folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder; the threads of a query that was interrupted may still have added a file while that was done."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_REMOVAL_SECONDS)


def _data_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if not is_hidden(path.name):
                yield from _data_below(path)
            continue
        try:
            data = is_data_file(path.name)
        except CatalogError:
            data = True
        if data:
            yield path
