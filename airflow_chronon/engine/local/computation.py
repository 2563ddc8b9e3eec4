"""The protocol of the embedded engine: what a job computes or does, what it works with, and how it is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.engine.protocol import JobRequest, Log
from airflow_chronon.errors import Fault, JobRefused

if TYPE_CHECKING:
    import duckdb

#: The table, temporary and in the connection, that a computation leaves its rows in.
RESULT = '"chronon result"'
ON_SPARK = "run this conf with the command runner"


@dataclass(frozen=True)
class Session:
    """What a computation works with."""

    connection: duckdb.DuckDBPyConnection
    root: Path  #: the warehouse: the root folder of the tables
    catalog: FilesystemCatalog  #: the same warehouse, for what has landed
    log: Log


@dataclass(frozen=True)
class Output:
    """One table that a job writes, and the relation in the connection that holds its rows."""

    table: str
    relation: str = RESULT


class Computation(Protocol):
    """Computes the rows of a job. Neither writes nor publishes: that is the same for all."""

    def outputs(self, job: JobRequest) -> tuple[Output, ...]:
        """The tables that the job writes, in the order in which they are published. Known once it is prepared."""

    def prepare(self, job: JobRequest, session: Session) -> None:
        """Read and check everything that can be checked before the work.

        Raises :class:`airflow_chronon.errors.JobRefused`, with nothing written.
        """

    def compute(self, job: JobRequest, session: Session) -> None:
        """Leave the rows of every label of the job in each output's relation, the partition column among them."""


@runtime_checkable
class Action(Protocol):
    """A job that writes no table."""

    def perform(self, job: JobRequest, session: Session) -> None:
        """Do it, whole or not at all. Raises :class:`airflow_chronon.errors.JobRefused` with nothing done."""


def refused(job: JobRequest, field: str, reason: str, remedy: str = ON_SPARK, *, rule: str = "runner") -> JobRefused:
    """The error for a job that the embedded engine cannot do, to be raised before any work."""
    return JobRefused(Fault(rule, field, reason, remedy), conf=job.conf)
