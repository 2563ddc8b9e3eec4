"""The embedded engine: DuckDB over Hive-style Parquet folders, in the calling process. No cluster.

Computing and publishing are apart: a module per kind of conf computes, and every kind is published alike.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_chronon.catalogs.extras import optional
from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.catalogs.parquet_views import connect, literal
from airflow_chronon.catalogs.storage import LocalStorage, check_table_name
from airflow_chronon.engine.local.computation import Computation, Session
from airflow_chronon.engine.local.publish import TableWriter
from airflow_chronon.engine.local.result import Result
from airflow_chronon.engine.local.staging_query import StagingQueryComputation
from airflow_chronon.engine.protocol import JobRequest, Log, NothingToWrite
from airflow_chronon.errors import CatalogError, Fault, JobFailed, JobRefused

if TYPE_CHECKING:
    import duckdb

#: What computes each kind of conf in each mode. GroupBys and Joins join here.
_COMPUTATIONS: Mapping[tuple[str, str], Callable[[], Computation]] = {
    ("staging_query", "backfill"): StagingQueryComputation
}
_INTERRUPT_SECONDS = 0.2
_KINDS = {"staging_query": "staging queries", "group_by": "GroupBys", "join": "Joins"}


@dataclass
class LocalRunner:
    """Runs one job at a time in a thread of its own, so that a signal reaches ``stop`` while DuckDB works.

    A runner that was stopped runs nothing more.
    """

    warehouse: str  #: the root folder of all tables
    memory_limit: str | None = None  #: DuckDB's own words, such as ``2GB``; None leaves it to DuckDB
    threads: int | None = None  #: at least 1; None leaves it to DuckDB
    _stopped: threading.Event = field(default_factory=threading.Event, init=False, repr=False)
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)

    def run(self, job: JobRequest, log: Log) -> None:
        """Compute the job's partitions and publish each; see :class:`airflow_chronon.engine.protocol.Runner`."""
        computation = self._computation(job)
        if job.window is None:
            raise NothingToWrite(conf=job.conf)
        if self._stopped.is_set():
            raise _stopped(job)
        try:
            duckdb = optional("duckdb", needed_for="the embedded engine")
            check_table_name(job.table)
            connection = connect(self._settings())
        except CatalogError as error:
            raise JobRefused(error.fault, conf=job.conf) from error
        except duckdb.Error as error:
            raise self._failed(job, error, "check the runner's memory_limit and threads") from error
        self._connection = connection
        try:
            self._in_thread(lambda: self._work(job, computation, connection, log), connection)
        finally:
            self._connection = None
            connection.close()

    def _in_thread(self, work: Callable[[], None], connection: duckdb.DuckDBPyConnection) -> None:
        """Do the work in a thread that has ended when this returns, also when a signal handler raises here."""
        raised: list[BaseException] = []

        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # raised again below, in the caller's thread
                raised.append(error)

        thread = threading.Thread(target=guarded, name="chronon-local", daemon=True)
        try:
            thread.start()
            while thread.is_alive():
                thread.join(_INTERRUPT_SECONDS)
                if self._stopped.is_set():
                    _interrupt(connection)  # again and again: one that comes between two statements is lost
        finally:
            while thread.is_alive():
                self.stop()
                thread.join(_INTERRUPT_SECONDS)
        if raised:
            raise raised[0]

    def stop(self) -> None:
        """Interrupt DuckDB; what is already published stays, whole, and nothing else is left."""
        self._stopped.set()
        connection = self._connection
        if connection is not None:
            _interrupt(connection)

    def _settings(self) -> dict[str, str]:
        settings = {"memory_limit": self.memory_limit, "threads": self.threads}
        return {key: str(value) for key, value in settings.items() if value is not None}

    @staticmethod
    def _computation(job: JobRequest) -> Computation:
        build = _COMPUTATIONS.get((job.conf_type, job.mode))
        if build is None:
            kind = _KINDS.get(job.conf_type, job.conf_type)
            what = (
                f"does not compute {kind} yet"
                if job.conf_type != "staging_query"
                else f"has no mode {job.mode!r} for {kind}"
            )
            remedy = "run it with the command runner, or wait for a later version"
            raise JobRefused(Fault("runner", "", f"the embedded engine {what}", remedy), conf=job.conf)
        return build()

    def _work(self, job: JobRequest, computation: Computation, connection: duckdb.DuckDBPyConnection, log: Log) -> None:
        import duckdb

        storage = LocalStorage(Path(self.warehouse).expanduser().absolute())
        session = Session(connection, storage, FilesystemCatalog(str(storage.root)), log)
        writer = TableWriter(storage.root / job.table, job.spec.column, job.conf)
        try:
            computation.prepare(job, session)
            writer.check(connection, job.partitions)
            with writer.staging() as staging:
                connection.execute(f"SET temp_directory = {literal(str(staging / 'spill'))}")
                computation.compute(job, session)
                self._write(job, writer, connection, log)
        except duckdb.Error as error:
            raise self._failed(job, error, "correct the query, or give the runner more memory or disk") from error
        except OSError as error:
            text = f"cannot write {error.filename or writer.folder}: {error.strerror or error}"
            raise JobFailed(
                Fault("runner", "", text, "free some space, or give this process the right to write there"),
                conf=job.conf,
            ) from error
        except CatalogError as error:
            raise JobFailed(error.fault, conf=job.conf) from error

    def _write(self, job: JobRequest, writer: TableWriter, connection: duckdb.DuckDBPyConnection, log: Log) -> None:
        result = Result.checked(connection, job)
        extra = job.document.get("metaData", {}).get("additionalOutputPartitionColumns")
        if extra:
            names = ", ".join(map(str, extra))
            log(f"in the embedded engine, additional partition columns stay columns of the file: {names}")
        written = [
            (writer.write(connection, result.query(label), index=index), label)
            for index, label in enumerate(job.partitions)
        ]
        for path, label in written:
            if self._stopped.is_set():
                raise _stopped(job)
            writer.publish(path, label)
            log(f"{job.table} {job.spec.column}={label}: {result.rows.get(label, 0)} rows")

    def _failed(self, job: JobRequest, error: Exception, remedy: str) -> JobFailed:
        if self._stopped.is_set():
            return _stopped(job)
        text = str(error).strip().splitlines()[0]  # what follows lists candidates and repeats the query
        return JobFailed(Fault("runner", "", f"DuckDB says: {text.rstrip('.')}", remedy), conf=job.conf)


def _interrupt(connection: duckdb.DuckDBPyConnection) -> None:
    with suppress(optional("duckdb", needed_for="the embedded engine").ConnectionException):
        connection.interrupt()  # closed already: the run has just ended


def _stopped(job: JobRequest) -> JobFailed:
    return JobFailed(Fault("runner", "", "the run was stopped before it was done", "run it again"), conf=job.conf)
