"""The runner protocol: what a run asks for, and what a runner answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.confs.documents import Dialect
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.errors import Fault, JobRefused

Log = Callable[[str], None]


@dataclass(frozen=True)
class JobRequest:
    """One mode of one conf for one window: everything a runner may need, and nothing of Airflow."""

    conf_type: str  #: ``staging_query``, ``group_by`` or ``join``
    name: str  #: ``metaData.name``
    mode: str  #: ``backfill``, ``upload``, ``upload_to_kv`` or ``metadata_upload`` (C11)
    document: Mapping[str, Any] = field(repr=False)  #: the compiled conf
    path: str  #: the file it was read from
    table: str  #: the full name of the table that this mode writes
    spec: PartitionSpec  #: the grid, format and column of that table
    window: TimeWindow | None  #: what the run covers; None for a manual run without one (H7)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  #: the run's variables (H5)
    inputs: tuple[TableDependency, ...] = field(default=(), repr=False)  #: what it reads, when the whole tree is known
    token: str = ""  #: of the job that a command submits elsewhere; see :mod:`airflow_chronon.engine.remote`
    dialect: Dialect = Dialect.CURRENT  #: how the file is written, and so which driver reads it (D6)

    @property
    def conf(self) -> str:
        """``type/name``, as people write it."""
        return f"{self.conf_type}/{self.name}"

    @property
    def partitions(self) -> tuple[PartitionKey, ...]:
        """The labels to write, oldest first; empty without a window."""
        return self.spec.labels(self.window.start, self.window.end) if self.window else ()


class NothingToWrite(JobRefused):
    """A manual run without a window: no partition was asked for, so there is none to write (H7)."""

    def __init__(self, *, conf: str) -> None:
        remedy = "give a partition key, or start_ds and end_ds"
        super().__init__(Fault("H7", "", "no partition was asked for", remedy), conf=conf)


class Runner(Protocol):
    """Does the work of a job in the calling process, or waits for whoever does it.

    ``run`` returns when the work has ended well and raises :class:`airflow_chronon.errors.JobFailed` otherwise
    (:class:`airflow_chronon.errors.JobRefused` before any work, when it cannot do the job at all). ``stop`` may be
    called from a signal handler or another thread while ``run`` is under way; ``run`` then raises soon and leaves
    nothing running.
    """

    def run(self, job: JobRequest, log: Log) -> None: ...

    def stop(self) -> None: ...


@dataclass
class FakeRunner:
    """A runner in memory: remembers the jobs it was given."""

    jobs: list[JobRequest] = field(default_factory=list)
    stopped: bool = False

    def run(self, job: JobRequest, log: Log) -> None:
        self.jobs.append(job)

    def stop(self) -> None:
        self.stopped = True
