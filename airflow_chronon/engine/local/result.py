"""What a computation left: checked against the labels of the run before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.engine.local.computation import RESULT
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import Fault, JobFailed
from airflow_chronon.sql.parquet import identifier, literal

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Result:
    """The rows of one relation; each belongs to a label of the run."""

    relation: str
    column: str  #: the partition column as the result spells it
    only_column: bool  #: whether it has no other column
    rows: Mapping[PartitionKey, int]  #: rows per label; a label without rows is absent

    @classmethod
    def checked(cls, connection: duckdb.DuckDBPyConnection, job: JobRequest, relation: str = RESULT) -> Result:
        """Raises :class:`JobFailed` without the partition column, or when a row belongs to no label of the run: no row
        is dropped silently."""
        names = [column[0] for column in connection.execute(f"SELECT * FROM {relation} LIMIT 0").description or ()]
        column = _partition_column(names, job)
        return cls(relation, column, len(names) == 1, _rows(connection, job, relation, column))

    def query(self, label: PartitionKey) -> str:
        """The rows of one label. The label stands in the folder's name, so its column is left out of the file, unless
        there is no other: Parquet has no files without columns."""
        kept = "*" if self.only_column else f"* EXCLUDE ({identifier(self.column)})"
        return f"SELECT {kept} FROM {self.relation} WHERE {_text(self.column)} = {literal(label)}"


def _text(column: str) -> str:
    return f"CAST({identifier(column)} AS VARCHAR)"


def _partition_column(names: list[str], job: JobRequest) -> str:
    for name in names:
        if name.casefold() == job.spec.column.casefold():  # Spark does not tell upper from lower case
            return name
    message = f"the result has no partition column {job.spec.column!r}; its columns are {', '.join(names)}"
    raise JobFailed(Fault("C7", "query", message, f"select the partition's label AS {job.spec.column}"), conf=job.conf)


def _rows(
    connection: duckdb.DuckDBPyConnection, job: JobRequest, relation: str, column: str
) -> dict[PartitionKey, int]:
    labels = job.partitions
    counted = f"SELECT {_text(column)}, count(*) FROM {relation} GROUP BY 1 ORDER BY 1 NULLS FIRST"
    found: dict[str | None, int] = dict(connection.execute(counted).fetchall())
    written = {label: found.pop(label) for label in labels if label in found}
    if found:
        stray, count = next(iter(found.items()))
        shown = "without a label (NULL)" if stray is None else f"labelled {stray!r}"
        asked = repr(labels[0]) if len(labels) == 1 else f"{labels[0]!r} to {labels[-1]!r}"
        message = f"the result holds {count} rows {shown} in {job.spec.column}, which this run ({asked}) does not write"
        remedy = f"filter {job.spec.column} BETWEEN {{{{ start_date }}}} AND {{{{ end_date }}}} in the query"
        raise JobFailed(Fault("C9", "query", message, remedy), conf=job.conf)
    return written
