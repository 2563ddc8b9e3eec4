"""Entities point in time: the newest snapshot at or before a row's time, and the mutations from there to the row (C21).

A mutation comes as rows: one that is a reversal takes a row away, one that is not adds one. What counts for a moment is
the multiset of rows that remains.
"""

from __future__ import annotations

from typing import ClassVar

from airflow_chronon.engine.local.computation import refused
from airflow_chronon.engine.local.features.columns import TIME, VALID_FROM, VALID_TO
from airflow_chronon.engine.local.features.rows import GroupByRows
from airflow_chronon.engine.local.joins.left import LeftRows
from airflow_chronon.engine.local.sources import Reading, SourceReader, SourceRows
from airflow_chronon.sql.parquet import identifier

_CHANGED, _REVERSED = "chronon changed", "chronon reversed"


class TemporalEntities:
    """The snapshots and mutations of one part, bound in the connection."""

    SNAPSHOT: ClassVar[str] = "chronon snapshot"  #: the column of a moment that holds the end of its snapshot

    def __init__(self, of: GroupByRows, left: LeftRows, reader: SourceReader) -> None:
        self._of = of
        grid = of.dependency(0).grid
        assert grid is not None, "a snapshot binding has its grid"
        closes = left.ends(reader.connection)
        self.rows = of.read(reader, of.snapshot_sources(), left.snapshot_ends(grid, reader.connection))
        sources = [self._mutations(index, left) for index in range(len(of.group_by.sources))]
        bound = [reader.bind(source, closes) for source in sources]
        self._changes = reader.unite(bound, materialise=True)

    @staticmethod
    def check(of: GroupByRows) -> None:
        """Raises :class:`airflow_chronon.errors.JobRefused`."""
        if not of.group_by.aggregations:
            raise refused(of.job, f"{of.where}aggregations", "entities point in time need aggregations")
        for index, source in enumerate(of.group_by.sources):
            place = of.source_field(index)
            if source.entities is None or not source.entities.mutation_table:
                raise refused(
                    of.job,
                    place,
                    "entities point in time need a mutation table",
                    "set mutationTable, or accuracy SNAPSHOT",
                )
            if len(of.inputs.get(f"{place}.query", ())) != 2:
                raise refused(
                    of.job, place, "its mutation table is not known", "check the conf with airflow-chronon check"
                )

    def _mutations(self, index: int, left: LeftRows) -> SourceRows:
        of = self._of
        query = of.group_by.sources[index].query
        grid = of.dependency(index).grid
        assert grid is not None
        extra = {_CHANGED: query.mutation_time_column or "mutation_ts", _REVERSED: query.reversal_column or "is_before"}
        needed = of.snapshot_sources()[index].time
        return SourceRows(
            of.dependency(index, mutations=True),
            query,
            f"{of.source_field(index)}.query",
            Reading.CLOSED,
            of.columns,
            reach=grid.interval * 1000,
            step=left.step,
            time=needed,
            extra=extra,
        )

    def query(self, moments: str, *, moment: str, closed: str) -> str:
        """The features at each moment, whose table holds keys, time, the end of its partition and of its snapshot."""
        of = self._of
        columns = [name for name in self.rows.columns if name not in of.keys]
        if TIME in self.rows.types and TIME not in columns:
            columns.append(TIME)
        named = ", ".join(f"m.{identifier(name)}" for name in (*of.keys, moment, closed))
        values = "".join(f", rows.{identifier(name)}" for name in columns)
        same = " AND ".join(f"m.{identifier(key)} = rows.{identifier(key)}" for key in of.keys)
        snapshot, at, end = (f"m.{identifier(name)}" for name in (self.SNAPSHOT, moment, closed))
        changed, undone = f"rows.{identifier(_CHANGED)}", f"rows.{identifier(_REVERSED)}"
        valid = f"rows.{identifier(VALID_FROM)} < {{}} AND {{}} <= rows.{identifier(VALID_TO)}"
        stood = (
            f"SELECT {named}{values}, 1 AS n FROM {moments} AS m JOIN {self.rows.name} AS rows "
            f"ON {same} AND {valid.format(snapshot, snapshot)}"
        )
        moved = (
            f"SELECT {named}{values}, CASE WHEN CAST({undone} AS BOOLEAN) THEN -1 ELSE 1 END AS n FROM {moments} AS m "
            f"JOIN {self._changes.name} AS rows ON {same} AND {valid.format(end, end)} "
            f"AND {changed} >= {snapshot} AND {changed} < {at}"
        )
        remaining = f"SELECT * EXCLUDE (n), sum(n) AS n FROM ({stood} UNION ALL {moved}) GROUP BY ALL HAVING sum(n) > 0"
        rows = f"(SELECT * EXCLUDE (n), unnest(range(CAST(n AS BIGINT))) AS n FROM ({remaining})) AS rows"
        names = (*of.keys, moment, closed)
        sql = of.features_sql(
            self.rows,
            keys=tuple(f"rows.{identifier(name)}" for name in names),
            names=names,
            moment=f"rows.{identifier(moment)}",
        )
        return sql.query(rows)
