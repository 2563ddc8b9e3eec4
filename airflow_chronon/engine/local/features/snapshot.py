"""Snapshots: the features of every key as of one instant, the end of a partition (C8).

The same code makes the partitions of a GroupBy's own table and the snapshots that a Join's parts bind to, so that the
two can never differ. Every window is half open: an event exactly at the end belongs to the next partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.engine.local.features.columns import VALID_FROM, VALID_TO
from airflow_chronon.engine.local.features.derivations import Derivations
from airflow_chronon.engine.local.features.rows import GroupByRows
from airflow_chronon.engine.local.sources import BoundRows, SourceReader
from airflow_chronon.sql.parquet import identifier


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of one GroupBy, its rows bound in the connection."""

    of: GroupByRows
    rows: BoundRows
    derived: Derivations  #: keys, then features

    @classmethod
    def bind(cls, of: GroupByRows, reader: SourceReader, ends: Sequence[Instant]) -> Snapshots:
        """Bind the rows that snapshots at ``ends`` read. Raises :class:`airflow_chronon.errors.JobRefused`."""
        rows = of.read(reader, of.snapshot_sources(), [end * 1000 for end in ends])
        if of.group_by.aggregations:
            of.features_sql(rows, keys=_keys(of), names=of.keys, moment="0")
            values = [feature.name for feature in of.features]
        else:
            values = [name for name in rows.columns if name not in of.keys]
        derived = Derivations.read(
            of.group_by.derivations, ids=of.keys, values=values, job=of.job, field=f"{of.where}derivations"
        )
        return cls(of, rows, derived)

    @property
    def values(self) -> tuple[str, ...]:
        """The columns besides the keys."""
        return tuple(name for name in self.derived.columns if name not in self.of.keys)

    def query(self, end: Instant, *, restrict: str = "") -> str:
        """The snapshot at ``end``: one row per key with any feature; entities without aggregations keep their rows.

        ``restrict`` is a further condition on ``rows``.
        """
        moment = str(end * 1000)
        conditions = [
            f"rows.{identifier(VALID_FROM)} < {moment}",
            f"{moment} <= rows.{identifier(VALID_TO)}",
            "(" + " OR ".join(f"rows.{identifier(key)} IS NOT NULL" for key in self.of.keys) + ")",
        ]
        if restrict:
            conditions.append(restrict)
        if not self.of.group_by.aggregations:
            columns = ", ".join(f"rows.{identifier(name)}" for name in self.rows.columns)
            base = f"SELECT {columns} FROM {self.rows.name} AS rows WHERE {' AND '.join(conditions)}"
        else:
            sql = self.of.features_sql(self.rows, keys=_keys(self.of), names=self.of.keys, moment=moment)
            if not self.of.is_entities:  # events always have a time, and only those before the moment count
                conditions.append(sql.in_window())
            base = sql.query(f"{self.rows.name} AS rows WHERE {' AND '.join(conditions)}")
        return f"SELECT {self.derived.select} FROM ({base})"


def _keys(of: GroupByRows) -> tuple[str, ...]:
    return tuple(f"rows.{identifier(key)}" for key in of.keys)
