"""The store of served features: one SQLite file that a person can query.

``features`` holds the newest upload of every dataset, replaced as a whole, so that a reader sees one partition's values
or the next one's; ``uploads`` says which partition that is; ``metadata`` holds the Joins that are served.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from airflow_chronon.core.partitions.labels import PartitionKey, escape_label
from airflow_chronon.engine.local.computation import Session, refused
from airflow_chronon.engine.local.publish import PART
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import Fault, JobFailed
from airflow_chronon.sql.parquet import literal, unglobbed

_WAIT_SECONDS = 60
_BATCH = 10_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS uploads (dataset TEXT PRIMARY KEY, partition TEXT NOT NULL, ends_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS features (
    dataset TEXT NOT NULL, key_json TEXT NOT NULL, value_json TEXT NOT NULL, PRIMARY KEY (dataset, key_json)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metadata (dataset TEXT PRIMARY KEY, document TEXT NOT NULL);
"""


@dataclass(frozen=True)
class KeyValueStore:
    """One SQLite file. Every change is one transaction; writers wait for each other."""

    path: Path

    def put(self, dataset: str, label: PartitionKey, *, ends_at: int, rows: Iterable[tuple[str, str]]) -> str | None:
        """Replace a dataset's values by those of a partition that ends at ``ends_at`` (seconds).

        Gives the label that is served instead when that is a newer one: nothing is changed then.
        """
        with self._transaction() as connection:
            found = connection.execute("SELECT partition, ends_at FROM uploads WHERE dataset = ?", [dataset]).fetchone()
            if found is not None and found[1] > ends_at:
                return str(found[0])
            connection.execute("DELETE FROM features WHERE dataset = ?", [dataset])
            connection.executemany("INSERT INTO features VALUES (?, ?, ?)", ((dataset, *row) for row in rows))
            connection.execute("INSERT OR REPLACE INTO uploads VALUES (?, ?, ?)", [dataset, label, ends_at])
        return None

    def put_metadata(self, dataset: str, document: str) -> None:
        """Replace what is known of a Join."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", [dataset, document])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
            connection.executescript(_SCHEMA)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


@dataclass(frozen=True)
class UploadToKv:
    """The newest partition of an upload table, put into the store."""

    store: KeyValueStore

    def perform(self, job: JobRequest, session: Session) -> None:
        """Raises :class:`airflow_chronon.errors.JobRefused` when the partition is not there."""
        assert job.window is not None, "a run without a window never gets here"
        label = job.partitions[-1]
        path = session.root / job.table / f"{job.spec.column}={escape_label(label)}" / PART
        if not path.exists():
            remedy = "let the upload write it first"
            raise refused(job, "", f"{job.table} has no partition {job.spec.column}={label}", remedy, rule="C11")
        query = (
            f"SELECT key_json, value_json FROM read_parquet({literal(unglobbed(str(path)))}, hive_partitioning = false)"
        )
        rows = _fetched(session, query)
        try:
            newer = self.store.put(
                job.name, label, ends_at=job.spec.start_of(label) + job.spec.grid.interval, rows=rows
            )
        except sqlite3.Error as error:
            raise _store_failed(job, self.store, error) from error
        if newer is None:
            session.log(f"{self.store.path}: {job.name} serves {job.spec.column}={label}")
        else:
            session.log(
                f"{self.store.path}: {job.name} serves {newer} already, which is newer than {label}: nothing to do"
            )


@dataclass(frozen=True)
class MetadataUpload:
    """What a served Join is made of, put into the store."""

    store: KeyValueStore

    def perform(self, job: JobRequest, session: Session) -> None:
        try:
            self.store.put_metadata(job.name, json.dumps(job.document, sort_keys=True))
        except sqlite3.Error as error:
            raise _store_failed(job, self.store, error) from error
        session.log(f"{self.store.path}: the metadata of {job.name}")


def _fetched(session: Session, query: str) -> Iterator[tuple[str, str]]:
    answer = session.connection.execute(query)
    while batch := answer.fetchmany(_BATCH):
        yield from batch


def _store_failed(job: JobRequest, store: KeyValueStore, error: sqlite3.Error) -> JobFailed:
    remedy = "check the file, its folder and who else writes to it"
    return JobFailed(Fault("runner", "runner.kv_store", f"SQLite says of {store.path}: {error}", remedy), conf=job.conf)
