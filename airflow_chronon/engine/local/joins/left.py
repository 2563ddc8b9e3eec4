"""The left of a Join: the rows of the run's partitions, each with its time and the partition it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.engine.local.computation import refused
from airflow_chronon.engine.local.features.columns import TIME, VALID_FROM, VALID_TO
from airflow_chronon.engine.local.features.documents import FeatureJoin
from airflow_chronon.engine.local.inputs import Inputs
from airflow_chronon.engine.local.sources import Reading, SourceReader, SourceRows, check_query
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.sql.parquet import identifier, literal

if TYPE_CHECKING:
    import duckdb

#: Columns of the stored left: the end of a row's partition in milliseconds, its label, its time.
END, LABEL, AT = "chronon end", "chronon label", "chronon at"


@dataclass(frozen=True)
class LeftRows:
    """The left's rows as a table in the connection."""

    name: str  #: quoted
    columns: tuple[str, ...]  #: what the left selects, the partition column aside
    types: dict[str, str]
    is_entities: bool
    step: int  #: milliseconds of the Join's partitions

    def ends(self, connection: duckdb.DuckDBPyConnection) -> list[int]:
        """The ends (milliseconds) of the partitions that the rows belong to, in order."""
        query = f"SELECT DISTINCT {identifier(END)} FROM {self.name} ORDER BY 1"
        return [row[0] for row in connection.execute(query).fetchall()]

    def snapshot_ends(self, grid: PartitionGrid, connection: duckdb.DuckDBPyConnection) -> list[int]:
        """The ends (milliseconds) of the snapshots on ``grid`` that the rows are bound to, in order."""
        end = self.snapshot_end(grid, "l")
        query = f"SELECT DISTINCT {end} FROM {self.name} AS l WHERE {end} IS NOT NULL ORDER BY 1"
        return [row[0] for row in connection.execute(query).fetchall()]

    def snapshot_end(self, grid: PartitionGrid, alias: str) -> str:
        """SQL: the end (milliseconds) of the newest snapshot on ``grid`` at or before a row's time, of those that had
        closed before the row's partition did (C21)."""
        interval, offset = grid.interval * 1000, grid.offset * 1000
        at = f"{alias}.{identifier(AT)}"
        if not self.is_entities:  # the last millisecond of the partition is the latest time that counts
            at = f"least({at}, {alias}.{identifier(END)} - 1)"
        return f"({at} - ((({at} - {offset}) % {interval}) + {interval}) % {interval})"


@dataclass(frozen=True)
class JoinLeft:
    """The left of one Join. Raises :class:`airflow_chronon.errors.JobRefused` when it is checked."""

    job: JobRequest
    join: FeatureJoin
    inputs: Inputs

    @property
    def is_entities(self) -> bool:
        return self.join.left.is_entities

    @property
    def _field(self) -> str:
        return f"left.{self.join.left.kind}.query"

    def check(self) -> None:
        left = self.join.left
        if left.model_transforms is not None:
            raise refused(self.job, "left.modelTransforms", "the embedded engine runs no models")
        if left.join_source is not None and self.is_entities:
            raise refused(self.job, "left.joinSource", "the embedded engine reads no Join over entities as a left")
        if left.events is not None and left.events.is_cumulative:
            raise refused(self.job, "left.events.isCumulative", "the embedded engine reads no cumulative left")
        if not self.is_entities and not left.query.time_column:
            raise refused(self.job, self._field, "an events left needs a time", "set its timeColumn")
        if not self.inputs.get(self._field):
            raise refused(self.job, "left", "its table is not known", "check the conf with airflow-chronon check")
        check_query(self.job, left.query, self._field)

    def store(self, reader: SourceReader, ends: dict[int, PartitionKey]) -> LeftRows:
        """Read the rows of the partitions that end at ``ends`` (milliseconds) into a table."""
        step = self.job.spec.grid.interval * 1000
        query = self.join.left.query
        columns = None if query.selects is None else tuple(query.selects)
        rows = SourceRows(
            self.inputs[self._field][0],
            query,
            self._field,
            Reading.NEWEST if self.is_entities else Reading.BEFORE,
            columns,
            reach=step,
            time=None if self.is_entities else query.time_column,
        )
        bound = reader.bind(rows, list(ends))
        own = self.job.spec.column.casefold()
        kept = tuple(name for name in bound.columns if name.casefold() != own)
        if not self.is_entities and TIME not in kept:
            kept += (TIME,)
        name = identifier(reader.fresh_name())
        listed = ", ".join(f"rows.{identifier(column)}" for column in kept)
        values = ", ".join(f"({end}, {literal(label)})" for end, label in ends.items()) or "(0, '')"
        at = "parts.e" if self.is_entities else f"rows.{TIME}"
        reader.connection.execute(
            f"CREATE TEMPORARY TABLE {name} AS SELECT {listed}, CAST(parts.e AS BIGINT) AS {identifier(END)}, "
            f"parts.l AS {identifier(LABEL)}, CAST({at} AS BIGINT) AS {identifier(AT)} "
            f"FROM {bound.name} AS rows JOIN (VALUES {values}) AS parts(e, l) "
            f"ON rows.{identifier(VALID_FROM)} < parts.e AND parts.e <= rows.{identifier(VALID_TO)}"
        )
        types = {column: bound.types[column] for column in kept}
        return LeftRows(name, kept, types, self.is_entities, step)
