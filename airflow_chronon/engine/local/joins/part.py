"""A right part of a Join, bound row by row (C21): to snapshots on the part's own grid, or point in time.

A part becomes a table with one row per key and moment of the left; joining it never changes the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.engine.local.computation import refused
from airflow_chronon.engine.local.features.columns import VALID_FROM, VALID_TO
from airflow_chronon.engine.local.features.derivations import Derivations
from airflow_chronon.engine.local.features.documents import FeatureJoin, FeatureJoinPart
from airflow_chronon.engine.local.features.operations import ValueKind
from airflow_chronon.engine.local.features.rows import GroupByRows
from airflow_chronon.engine.local.features.snapshot import Snapshots
from airflow_chronon.engine.local.inputs import Inputs
from airflow_chronon.engine.local.joins.left import AT, END, LeftRows
from airflow_chronon.engine.local.joins.temporal_entities import TemporalEntities
from airflow_chronon.engine.local.sources import SourceReader
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import Fault, JobFailed
from airflow_chronon.sql.parquet import identifier

_MOMENT, _CLOSED = "chronon moment", "chronon closed"


@dataclass(frozen=True)
class PartTable:
    """A part's features in the connection, and how they are joined to the left, which is named ``l``."""

    query: str  #: a table or a query in parentheses
    columns: dict[str, str]  #: the Join's column and the part's own
    conditions: str  #: over ``l`` and ``{alias}``


@dataclass(frozen=True)
class JoinPartRows:
    """One right part. Raises :class:`airflow_chronon.errors.JobRefused` when built."""

    job: JobRequest
    join: FeatureJoin
    part: FeatureJoinPart
    rows: GroupByRows

    @classmethod
    def read(cls, job: JobRequest, join: FeatureJoin, index: int, inputs: Inputs) -> JoinPartRows:
        part = join.join_parts[index]
        where = f"joinParts[{index}].groupBy."
        found = cls(job, join, part, GroupByRows(job, part.group_by, inputs, where))
        if found._is_temporal and found.rows.is_entities:
            TemporalEntities.check(found.rows)
        return found

    @property
    def _is_temporal(self) -> bool:
        """Under an entities left every part is bound to snapshots."""
        return self.part.group_by.is_temporal and not self.join.left.is_entities

    @property
    def _grid(self) -> PartitionGrid:
        """The grid of the part's snapshots."""
        grid = self.rows.dependency(0).grid
        assert grid is not None, "a snapshot binding has its grid"
        return grid

    def store(self, left: LeftRows, reader: SourceReader) -> PartTable:
        """Compute the features that the left's rows need."""
        self._check_keys(left)
        if not self._is_temporal:
            return self._snapshots(left, reader)
        return self._entities(left, reader) if self.rows.is_entities else self._events(left, reader)

    def _check_keys(self, left: LeftRows) -> None:
        for key in self.part.left_keys:
            if key not in left.columns:
                remedy = "select it in the left, or map it with keyMapping"
                raise refused(self.job, self.rows.where.rstrip("."), f"the left has no column {key!r}", remedy)

    def _check_types(self, left: LeftRows, types: dict[str, str]) -> None:
        for key, own in zip(self.part.left_keys, self.rows.keys, strict=True):
            if ValueKind.of(left.types[key]) is not ValueKind.of(types[own]):
                problem = f"the key {own!r} is {types[own]}, the left's {key!r} is {left.types[key]}"
                raise refused(self.job, self.rows.where.rstrip("."), problem, "cast one of them in its select")

    def _snapshots(self, left: LeftRows, reader: SourceReader) -> PartTable:
        grid, keys = self._grid, self.rows.keys
        bound_to = left.snapshot_end(grid, "l")
        ends = [end // 1000 for end in left.snapshot_ends(grid, reader.connection)]
        snapshots = Snapshots.bind(self.rows, reader, ends)
        self._check_types(left, snapshots.rows.types)
        name = identifier(reader.fresh_name())
        mine = ", ".join(f"rows.{identifier(key)}" for key in keys)
        theirs = ", ".join(f"l.{identifier(key)}" for key in self.part.left_keys)
        for index, end in enumerate(ends or [0]):
            asked = f"({mine}) IN (SELECT {theirs} FROM {left.name} AS l WHERE {bound_to} = {end * 1000})"
            query = (
                f"SELECT *, {end * 1000}::BIGINT AS {identifier(_MOMENT)} FROM ({snapshots.query(end, restrict=asked)})"
            )
            verb = f"INSERT INTO {name}" if index else f"CREATE TEMPORARY TABLE {name} AS"
            reader.connection.execute(f"{verb} {query}")
        if not self.part.group_by.aggregations:
            self._check_single(name, reader)
        on = [
            f"l.{identifier(k)} = {{alias}}.{identifier(own)}" for k, own in zip(self.part.left_keys, keys, strict=True)
        ]
        return PartTable(
            name,
            self._named(snapshots.derived),
            " AND ".join([*on, f"{bound_to} = {{alias}}.{identifier(_MOMENT)}"]),
        )

    def _check_single(self, name: str, reader: SourceReader) -> None:
        """Rows of the left must not be doubled: one row per key is what a part without aggregations stands for."""
        listed = ", ".join(map(identifier, self.rows.keys))
        row = reader.connection.execute(
            f"SELECT {listed} FROM {name} GROUP BY {listed}, {identifier(_MOMENT)} HAVING count(*) > 1 LIMIT 1"
        ).fetchone()
        if row is not None:
            shown = ", ".join(f"{key}={value!r}" for key, value in zip(self.rows.keys, row, strict=True))
            problem = f"a snapshot of {self.part.group_by.meta_data.name} has two rows for {shown}"
            fault = Fault("C21", self.rows.where.rstrip("."), problem, "aggregate it, or correct the snapshot table")
            raise JobFailed(fault, conf=self.job.conf)

    def _events(self, left: LeftRows, reader: SourceReader) -> PartTable:
        """Point in time: for a row at ``t`` the events in ``[t - window, t)``, from partitions that had closed."""
        of = self.rows
        bound = of.read(reader, of.temporal_sources(step=left.step), left.ends(reader.connection))
        self._check_types(left, bound.types)
        moments = self._moments(left, reader)
        keys = [f"m.{identifier(key)} = rows.{identifier(key)}" for key in of.keys]
        closed = f"m.{identifier(_CLOSED)}"
        sql = of.features_sql(
            bound,
            keys=tuple(f"m.{identifier(name)}" for name in (*of.keys, _MOMENT, _CLOSED)),
            names=(*of.keys, _MOMENT, _CLOSED),
            moment=f"m.{identifier(_MOMENT)}",
        )
        valid = f"rows.{identifier(VALID_FROM)} < {closed} AND {closed} <= rows.{identifier(VALID_TO)}"
        on = " AND ".join((*keys, valid, sql.in_window()))
        return self._at_moments(sql.query(f"{moments} AS m JOIN {bound.name} AS rows ON {on}"))

    def _entities(self, left: LeftRows, reader: SourceReader) -> PartTable:
        """Point in time: the newest snapshot at or before the row's time, and the mutations since."""
        entities = TemporalEntities(self.rows, left, reader)
        self._check_types(left, entities.rows.types)
        moments = self._moments(left, reader, snapshot=left.snapshot_end(self._grid, "l"))
        query = entities.query(moments, moment=_MOMENT, closed=_CLOSED)
        return self._at_moments(query)

    def _moments(self, left: LeftRows, reader: SourceReader, *, snapshot: str = "0") -> str:
        """The keys, times and partitions that the left asks for, each once."""
        name = identifier(reader.fresh_name())
        keys = ", ".join(
            f"l.{identifier(key)} AS {identifier(own)}"
            for key, own in zip(self.part.left_keys, self.rows.keys, strict=True)
        )
        reader.connection.execute(
            f"CREATE TEMPORARY TABLE {name} AS SELECT DISTINCT {keys}, l.{identifier(AT)} AS {identifier(_MOMENT)}, "
            f"l.{identifier(END)} AS {identifier(_CLOSED)}, {snapshot} AS {identifier(TemporalEntities.SNAPSHOT)} "
            f"FROM {left.name} AS l WHERE l.{identifier(AT)} IS NOT NULL"
        )
        return name

    def _at_moments(self, query: str) -> PartTable:
        derived = Derivations.read(
            self.part.group_by.derivations,
            ids=(*self.rows.keys, _MOMENT, _CLOSED),
            values=[feature.name for feature in self.rows.features],
            job=self.job,
            field=f"{self.rows.where}derivations",
        )
        pairs = zip(self.part.left_keys, self.rows.keys, strict=True)
        on = [f"l.{identifier(key)} = {{alias}}.{identifier(own)}" for key, own in pairs]
        on.append(f"l.{identifier(AT)} = {{alias}}.{identifier(_MOMENT)}")
        on.append(f"l.{identifier(END)} = {{alias}}.{identifier(_CLOSED)}")
        return PartTable(f"(SELECT {derived.select} FROM ({query}))", self._named(derived), " AND ".join(on))

    def _named(self, derived: Derivations) -> dict[str, str]:
        """The Join's name of each column: prefix, then the key columns (or the GroupBy's name), then the column."""
        group_by = self.part.group_by
        keeps_keys = not group_by.aggregations and (
            not group_by.derivations or any(derivation.name == "*" for derivation in group_by.derivations)
        )
        hidden = {_MOMENT, _CLOSED} | (set() if keeps_keys else set(self.rows.keys))
        own = group_by.meta_data.name.replace(".", "_") if self.join.use_long_names else "_".join(self.rows.keys)
        prefix = f"{self.part.prefix}_{own}_" if self.part.prefix else f"{own}_"
        return {f"{prefix}{name}": name for name in derived.columns if name not in hidden}
