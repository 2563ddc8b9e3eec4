"""The embedded engine: DuckDB over Hive-style Parquet folders, in the calling process. No cluster.

Computing and publishing are apart: a module per kind of conf computes, and every kind is published alike.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.calendar.instants import HOUR, duration_text
from airflow_chronon.core.settings.values import amount_in_bytes
from airflow_chronon.engine.local.computation import ON_SPARK, Action, Computation, Output, Session
from airflow_chronon.engine.local.features.group_by import GroupByBackfill, GroupByUpload
from airflow_chronon.engine.local.joins.join import JoinBackfill
from airflow_chronon.engine.local.kv import KeyValueStore, MetadataUpload, UploadToKv
from airflow_chronon.engine.local.memory import memory_ceiling
from airflow_chronon.engine.local.publish import TableWriter, remove_folder, scratch_folder
from airflow_chronon.engine.local.result import Result
from airflow_chronon.engine.local.staging_query import StagingQueryComputation
from airflow_chronon.engine.protocol import JobRequest, Log, NothingToWrite
from airflow_chronon.errors import CatalogError, Fault, JobFailed, JobRefused
from airflow_chronon.extras import optional
from airflow_chronon.sql.confinement import READ_TABLES
from airflow_chronon.sql.parquet import Budget, connect
from airflow_chronon.storage.tables import check_table_name

if TYPE_CHECKING:
    import duckdb

#: What computes each kind of conf in each mode that writes tables (C11).
_COMPUTATIONS: Mapping[tuple[str, str], Callable[[], Computation]] = {
    ("staging_query", "backfill"): StagingQueryComputation,
    ("group_by", "backfill"): GroupByBackfill,
    ("group_by", "upload"): GroupByUpload,
    ("join", "backfill"): JoinBackfill,
}
#: What does the modes that write to the store of features instead.
_ACTIONS: Mapping[tuple[str, str], Callable[[KeyValueStore], Action]] = {
    ("group_by", "upload_to_kv"): UploadToKv,
    ("join", "metadata_upload"): MetadataUpload,
}
#: What the process may take on top of twice the ``memory_limit``: DuckDB counts no texts and lists that functions make.
_OVERHEAD_BYTES, _THREAD_BYTES = 1 << 30, 64 << 20
#: What is not about a partition.
_WITHOUT_WINDOW = frozenset({"metadata_upload"})
_INTERRUPT_SECONDS = 0.2
#: How long interrupted work may go on. A few functions of DuckDB hear of no interrupt within one row, which may take hours:
#: such a thread is left behind. It publishes nothing more, and ends with the task's process, which Airflow ends.
_LAST_SECONDS = 30.0
_KINDS = {"staging_query": "staging queries", "group_by": "GroupBys", "join": "Joins"}


@dataclass
class LocalRunner:
    """Runs one job at a time in a thread of its own, so that a signal reaches ``stop`` while DuckDB works.

    A runner that was stopped runs nothing more.
    """

    warehouse: str  #: the root folder of all tables
    memory_limit: str = "2GB"  #: what queries may take, in DuckDB's own words
    spill_limit: str = "20GB"  #: what they may write below the table when that is not enough
    timeout: int = 6 * HOUR  #: seconds until the work is given up
    threads: int | None = None  #: at least 1; None leaves it to DuckDB
    kv_store: str | None = None  #: the SQLite file that uploads go to; None: below the warehouse
    _stopped: threading.Event = field(default_factory=threading.Event, init=False, repr=False)
    _timed_out: bool = field(default=False, init=False, repr=False)
    _is_left_behind: bool = field(default=False, init=False, repr=False)
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)

    def run(self, job: JobRequest, log: Log) -> None:
        """Compute the job's partitions and publish each; see :class:`airflow_chronon.engine.protocol.Runner`."""
        work = self._work_of(job)
        if job.window is None and job.mode not in _WITHOUT_WINDOW:
            raise NothingToWrite(conf=job.conf)
        if self._stopped.is_set():
            raise _stopped(job)
        try:
            duckdb = optional("duckdb", needed_for="the embedded engine")
            root = Path(self.warehouse).expanduser().absolute()
            spill = scratch_folder(root / check_table_name(job.table))
            connection = connect(root, Budget(self.memory_limit, self.spill_limit, str(spill), self.threads))
        except CatalogError as error:
            raise JobRefused(error.fault, conf=job.conf) from error
        except duckdb.Error as error:
            raise self._failed(job, error, "check the runner's memory_limit and threads") from error
        self._connection = connection
        try:
            session = Session(connection, root, FilesystemCatalog(str(root)), log)
            with memory_ceiling(self._most_memory()):
                self._in_thread(lambda: self._work(job, work, session), connection)
            if self._is_left_behind:
                raise self._too_long(job)
        finally:
            self._connection = None
            if not self._is_left_behind:  # closing waits for what is under way
                connection.close()
            remove_folder(spill)

    def _most_memory(self) -> int:
        threads = self.threads or os.cpu_count() or 1
        return 2 * amount_in_bytes(self.memory_limit) + _OVERHEAD_BYTES + threads * _THREAD_BYTES

    def _in_thread(self, work: Callable[[], None], connection: duckdb.DuckDBPyConnection) -> None:
        """Do the work in a thread that has ended when this returns, also when a signal handler raises here; one that no
        interrupt reaches is left behind."""
        raised: list[BaseException] = []

        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # raised again below, in the caller's thread
                raised.append(error)

        thread = threading.Thread(target=guarded, name="chronon-local", daemon=True)
        deadline = time.monotonic() + self.timeout
        try:
            thread.start()
            while thread.is_alive() and time.monotonic() < deadline + _LAST_SECONDS:
                thread.join(_INTERRUPT_SECONDS)
                self._timed_out = self._timed_out or time.monotonic() > deadline
                if self._stopped.is_set() or self._timed_out:
                    _interrupt(connection)  # again and again: one that comes between two statements is lost
        finally:
            last = min(deadline, time.monotonic()) + _LAST_SECONDS
            while thread.is_alive():
                self.stop()
                if time.monotonic() >= last:
                    self._is_left_behind = True
                    break
                thread.join(_INTERRUPT_SECONDS)
        if raised:
            raise raised[0]

    def stop(self) -> None:
        """Interrupt DuckDB; what is already published stays, whole, and nothing else is left."""
        self._stopped.set()
        connection = self._connection
        if connection is not None:
            _interrupt(connection)

    def _work_of(self, job: JobRequest) -> Computation | Action:
        key = job.conf_type, job.mode
        if key in _COMPUTATIONS:
            return _COMPUTATIONS[key]()
        if key in _ACTIONS:
            return _ACTIONS[key](KeyValueStore(Path(self.kv_store or _default_store(self.warehouse)).expanduser()))
        kind = _KINDS.get(job.conf_type, job.conf_type)
        fault = Fault("runner", "", f"the embedded engine has no mode {job.mode!r} for {kind}", ON_SPARK)
        raise JobRefused(fault, conf=job.conf)

    def _work(self, job: JobRequest, work: Computation | Action, session: Session) -> None:
        import duckdb

        try:
            if isinstance(work, Action):
                work.perform(job, session)
            else:
                self._compute(job, work, session)
        except (duckdb.Error, MemoryError) as error:
            raise self._failed(job, error, "correct the query") from error
        except OSError as error:
            text = f"cannot write {error.filename or session.root / job.table}: {error.strerror or error}"
            raise JobFailed(
                Fault("runner", "", text, "free some space, or give this process the right to write there"),
                conf=job.conf,
            ) from error
        except CatalogError as error:
            raise JobFailed(error.fault, conf=job.conf) from error

    def _compute(self, job: JobRequest, computation: Computation, session: Session) -> None:
        computation.prepare(job, session)
        root, connection = session.root, session.connection
        outputs = computation.outputs(job)
        writers = [TableWriter(root / check_table_name(output.table), job.spec.column, job.conf) for output in outputs]
        for writer in writers:
            writer.check(connection, job.partitions)
        with ExitStack() as stack:
            for writer in writers:
                stack.enter_context(writer.staging())
            computation.compute(job, session)
            written = [
                self._write(job, output, writer, session) for output, writer in zip(outputs, writers, strict=True)
            ]
            for publish in written:  # every table is whole on disk before the first one is seen
                publish()

    def _write(self, job: JobRequest, output: Output, writer: TableWriter, session: Session) -> Callable[[], None]:
        """Write the files of one table; what is returned publishes them."""
        result = Result.checked(session.connection, job, output.relation)
        extra = job.document.get("metaData", {}).get("additionalOutputPartitionColumns")
        if extra:
            names = ", ".join(map(str, extra))
            session.log(f"in the embedded engine, additional partition columns stay columns of the file: {names}")
        written = [
            (writer.write(session.connection, result.query(label), index=index), label)
            for index, label in enumerate(job.partitions)
        ]

        def publish() -> None:
            for path, label in written:
                if self._stopped.is_set():
                    raise _stopped(job)
                writer.publish(path, label)
                session.log(f"{output.table} {job.spec.column}={label}: {result.rows.get(label, 0)} rows")

        return publish

    def _failed(self, job: JobRequest, error: Exception, remedy: str) -> JobFailed:
        if self._stopped.is_set():
            return _stopped(job)
        if self._timed_out:
            return self._too_long(job)
        duckdb = optional("duckdb", needed_for="the embedded engine")
        if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
            remedy = (
                f"correct the query, or raise runner.memory_limit ({self.memory_limit}) or runner.spill_limit "
                f"({self.spill_limit})"
            )
        text = (str(error).strip() or "out of memory").splitlines()[
            0
        ]  # what follows lists candidates and repeats the query
        if isinstance(error, duckdb.PermissionException):
            return JobFailed(
                Fault("S3", "", f"the query reaches outside the warehouse: {text}", READ_TABLES), conf=job.conf
            )
        return JobFailed(Fault("runner", "", f"DuckDB says: {text.rstrip('.')}", remedy), conf=job.conf)

    def _too_long(self, job: JobRequest) -> JobFailed:
        text = f"the work was not done in {duration_text(self.timeout)}, which is all that runner.timeout allows"
        return JobFailed(Fault("S3", "runner.timeout", text, "correct the query, or give it more time"), conf=job.conf)


def _interrupt(connection: duckdb.DuckDBPyConnection) -> None:
    with suppress(optional("duckdb", needed_for="the embedded engine").ConnectionException):
        connection.interrupt()  # closed already: the run has just ended


def _default_store(warehouse: str) -> str:
    """Beside the tables, in a folder whose name no table can have."""
    return str(Path(warehouse).expanduser().absolute() / "_kv" / "features.sqlite")


def _stopped(job: JobRequest) -> JobFailed:
    return JobFailed(Fault("runner", "", "the run was stopped before it was done", "run it again"), conf=job.conf)
