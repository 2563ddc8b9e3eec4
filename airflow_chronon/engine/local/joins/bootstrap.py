"""Bootstrap parts of a Join: features that another table already holds, taken for the rows whose keys it has.

A value that a bootstrap table holds wins over the computed one, and an earlier part over a later one; where it holds
null the feature is computed. A key that a table holds twice takes its newest partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_chronon.engine.local.computation import refused
from airflow_chronon.engine.local.features.columns import VALID_FROM, VALID_TO
from airflow_chronon.engine.local.features.documents import FeatureBootstrapPart, FeatureJoin
from airflow_chronon.engine.local.inputs import Inputs
from airflow_chronon.engine.local.joins.left import END, LeftRows
from airflow_chronon.engine.local.joins.part import PartTable
from airflow_chronon.engine.local.sources import Reading, SourceReader, SourceRows, check_query
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.sql.parquet import identifier


@dataclass(frozen=True)
class BootstrapRows:
    """One bootstrap part. Raises :class:`airflow_chronon.errors.JobRefused` when read."""

    job: JobRequest
    part: FeatureBootstrapPart
    field: str
    keys: tuple[str, ...]
    inputs: Inputs

    @classmethod
    def read(cls, job: JobRequest, join: FeatureJoin, index: int, inputs: Inputs) -> BootstrapRows:
        part = (join.bootstrap_parts or ())[index]
        field = f"bootstrapParts[{index}]"
        keys = part.key_columns or join.row_ids or ()
        if not keys:
            raise refused(job, field, "it has no key columns", "set its keyColumns, or the Join's row_ids")
        if "{{" in part.table or not inputs.get(field):
            raise refused(job, f"{field}.table", f"the embedded engine does not know the table {part.table!r}")
        check_query(job, part.query, f"{field}.query")
        derived = {d.name for d in join.derivations or () if d.name != "*"} & set(part.query.selects or ())
        if derived:
            problem = f"the embedded engine does not bootstrap derived columns ({', '.join(sorted(derived))})"
            raise refused(job, f"{field}.query.selects", problem)
        return cls(job, part, field, keys, inputs)

    def store(self, left: LeftRows, reader: SourceReader, features: Iterable[str]) -> PartTable:
        """The rows that the left's partitions read, one per key; only columns that are features of the Join count."""
        for key in self.keys:
            if key not in left.columns:
                raise refused(
                    self.job, f"{self.field}.keyColumns", f"the left has no column {key!r}", "select it in the left"
                )
        selects = self.part.query.selects
        columns = None if selects is None else tuple(dict.fromkeys((*self.keys, *selects)))
        rows = SourceRows(
            self.inputs[self.field][0], self.part.query, self.field, Reading.CLOSED, columns, reach=0, step=left.step
        )
        bound = reader.bind(rows, left.ends(reader.connection))
        kept = [name for name in features if name in bound.columns]
        missing = [key for key in self.keys if key not in bound.columns]
        if missing:
            raise refused(
                self.job, f"{self.field}.keyColumns", f"{self.part.table} has no column {missing[0]!r}", "select it"
            )
        name = identifier(reader.fresh_name())
        keys = ", ".join(f"rows.{identifier(key)}" for key in self.keys)
        values = "".join(f", rows.{identifier(column)}" for column in kept)
        valid = f"rows.{identifier(VALID_FROM)} < e.e AND e.e <= rows.{identifier(VALID_TO)}"
        order = f"rows.{identifier(VALID_FROM)} DESC{values}"
        reader.connection.execute(
            f"CREATE TEMPORARY TABLE {name} AS SELECT {keys}{values}, e.e AS {identifier(END)} "
            f"FROM {bound.name} AS rows "
            f"JOIN (SELECT DISTINCT {identifier(END)} AS e FROM {left.name}) AS e ON {valid} "
            f"QUALIFY row_number() OVER (PARTITION BY {keys}, e.e ORDER BY {order}) = 1"
        )
        on = [f"l.{identifier(key)} = {{alias}}.{identifier(key)}" for key in (*self.keys, END)]
        return PartTable(name, {column: column for column in kept}, " AND ".join(on))
