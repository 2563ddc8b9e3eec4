"""A source as a relation: what its query selects, each row with the moments for which it may be read.

A run may read only partitions that belong to it, whatever else has landed meanwhile: that makes a replay give the same
rows. So every row carries two instants, and is read for a moment ``m`` when ``valid from < m <= valid to``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.labels import IllegalLabel, span
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.engine.local.computation import Session, refused
from airflow_chronon.engine.local.features.columns import TIME, VALID_FROM, VALID_TO
from airflow_chronon.engine.local.features.documents import FeatureQuery
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.sql.parquet import UnreadableTable, data_files, identifier, literal, scan
from airflow_chronon.sql.spark import UnreadableSql, read_query
from airflow_chronon.storage.layout import partition_of

if TYPE_CHECKING:
    import duckdb

#: The last millisecond of a row's partition: the time of events whose query gives none.
CLOSES = "chronon closes"

_NUMBERS = count(1)
_ALWAYS = 1 << 62  # later than any instant in milliseconds, and still a BIGINT after sums


class Reading(Enum):
    """Which partitions are read for a moment."""

    BEFORE = "before"  #: those that start before the moment, as far back as the window reaches (C16)
    NEWEST = "newest"  #: the one that the moment ends: a snapshot, or cumulative events (C16)
    CLOSED = "closed"  #: those that have closed by the moment, or the newest closed one (C21)


@dataclass(frozen=True)
class SourceRows:
    """How one table is read."""

    table: TableDependency
    query: FeatureQuery
    field: str
    reading: Reading
    columns: tuple[str, ...] | None  #: the output columns in order; None: whatever the table has
    reach: int | None  #: milliseconds that the largest window reaches back; None: without bound
    step: int = 0  #: milliseconds of the consumer's partition; counts for ``CLOSED`` only
    time: str | None = None  #: the expression of the rows' time, in Spark's words
    extra: Mapping[str, str] = dataclasses.field(default_factory=dict)  #: more columns and their expressions

    def validity(self, start: Instant, end: Instant) -> tuple[int, int]:
        """``(valid from, valid to)`` in milliseconds of a partition ``[start, end)``; a lag moves both."""
        begin, close = (start + self.table.lag) * 1000, (end + self.table.lag) * 1000
        if self.reading is Reading.NEWEST or self.table.is_cumulative:
            first = begin if self.reading is not Reading.CLOSED else close - 1
            last_valid = self.table.cut.end is not None and end >= self.table.cut.end and self.table.is_cumulative
            return first, _ALWAYS if last_valid else first + close - begin
        if self.reading is Reading.CLOSED:
            newest = max(self.step, close - begin)
            return close - 1, _ALWAYS if self.reach is None else close + max(self.reach + self.step, newest) - 1
        return begin, _ALWAYS if self.reach is None else close + self.reach - 1


@dataclass(frozen=True)
class BoundRows:
    """A relation in the connection, ready to be read."""

    name: str  #: quoted
    columns: tuple[str, ...]
    types: dict[str, str]


def check_query(job: JobRequest, query: FeatureQuery, field: str) -> None:
    """Refuse what the engine cannot carry out in a query."""
    if query.setups:
        raise refused(job, f"{field}.setups", "the embedded engine does not carry out the setups of a source")
    for name, texts in (("selects", (query.selects or {}).values()), ("wheres", query.wheres or ())):
        for text in texts:
            if "{{" in text:
                raise refused(job, f"{field}.{name}", f"the embedded engine knows no templates in sources ({text!r})")


class SourceReader:
    """Makes relations out of sources, in one connection. Names never clash: each call makes new ones."""

    def __init__(self, job: JobRequest, session: Session, *, by_name: bool) -> None:
        self._job, self._session, self._by_name = job, session, by_name

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self._session.connection

    def fresh_name(self) -> str:
        """A name that nothing in the connection has."""
        return f"chronon {next(_NUMBERS)}"

    def bind(self, rows: SourceRows, moments: Sequence[int]) -> BoundRows:
        """The rows that any of the moments (milliseconds) reads. Raises :class:`JobRefused` for a missing table, a
        column that is not there, a time that is not a whole number, or labels that are not the grid's."""
        files = self.fresh_name()
        self._view(files, rows, moments)
        name = self.fresh_name()
        self._session.connection.execute(f"CREATE TEMPORARY VIEW {identifier(name)} AS {self._translated(rows, files)}")
        return self._described(rows, name)

    def unite(self, parts: Sequence[BoundRows], *, materialise: bool) -> BoundRows:
        """Several sources as one relation, their own columns (time, validity, extra ones) included.

        ``materialise`` when it will be read more than once.
        """
        columns = parts[0].columns
        listed = ", ".join(map(identifier, dict.fromkeys((*columns, *parts[0].types))))
        query = " UNION ALL ".join(f"SELECT {listed} FROM {part.name}" for part in parts)
        name = self.fresh_name()
        kind = "TABLE" if materialise else "VIEW"
        self._session.connection.execute(f"CREATE TEMPORARY {kind} {identifier(name)} AS {query}")
        described = self._session.connection.execute(f"DESCRIBE {identifier(name)}").fetchall()
        return BoundRows(identifier(name), columns, {row[0]: row[1] for row in described})

    def _described(self, rows: SourceRows, name: str) -> BoundRows:
        described = self._session.connection.execute(f"DESCRIBE {identifier(name)}").fetchall()
        types = {row[0]: row[1] for row in described}
        time = types.get(TIME)
        if rows.time is not None and time not in ("BIGINT", "INTEGER", "UBIGINT", "UINTEGER", "HUGEINT"):
            raise refused(
                self._job,
                f"{rows.field}.timeColumn",
                f"{rows.time!r} gives {time}, not a whole number of milliseconds",
                "write it like UNIX_MILLIS(at)",
            )
        own = (TIME, VALID_FROM, VALID_TO, *rows.extra)
        columns = rows.columns or tuple(column for column in types if column not in own)
        return BoundRows(identifier(name), columns, types)

    def _translated(self, rows: SourceRows, files: str) -> str:
        query = rows.query
        own = {TIME, VALID_FROM, VALID_TO}
        if query.selects is None and rows.columns is None:
            hidden = [VALID_FROM, VALID_TO, CLOSES, *([rows.table.column] if rows.table.spec is not None else [])]
            shown = [f"* EXCEPT ({', '.join(map(_spark, hidden))})"]
        else:
            selects = query.selects or {}
            wanted = rows.columns or tuple(selects)
            shown = [f"{selects.get(name, _spark(name))} AS {_spark(name)}" for name in wanted if name not in own]
        if rows.time is not None:
            shown.append(f"{rows.time} AS {TIME}")
        shown += [f"{expression} AS {_spark(name)}" for name, expression in rows.extra.items()]
        shown += [_spark(VALID_FROM), _spark(VALID_TO)]
        where = "".join(f" AND ({text})" for text in query.wheres or ())
        text = f"SELECT {', '.join(shown)} FROM {_spark(files)} WHERE TRUE{where}"
        try:
            return read_query(text, field=rows.field, known={files}).duckdb
        except UnreadableSql as error:
            raise refused(self._job, rows.field, error.fault.message, error.fault.remedy, rule="sql") from error

    def _view(self, name: str, rows: SourceRows, moments: Sequence[int]) -> None:
        """The files that the moments need, with the two instants of each row."""
        table, spec = rows.table.table, rows.table.spec
        paths = self._paths(rows)
        root = f"{self._session.root}/{table}"
        if spec is None:
            stamps = self._time_partitioned(rows)
            files = [f"{root}/{path}" for path, _ in paths]
        else:
            kept = self._needed(rows, paths, moments)
            labels = list(dict.fromkeys(label for _, label in kept))
            validity = [(*self._validity(rows, label), self._closes(rows, label)) for label in labels]
            files = [f"{root}/{path}" for path, _ in kept]
            if not labels:  # nothing to read; the newest file still says which columns there are; no row is ever valid
                files, labels, validity = [f"{root}/{paths[0][0]}"], ["no label"], [(0, 0, 0)]
            at = f"list_position([{', '.join(map(literal, labels))}], {identifier(rows.table.column)})"
            stamps = ", ".join(
                f"list_extract([{', '.join(str(of[place]) for of in validity)}]::BIGINT[], {at}) "
                f"AS {identifier(column)}"
                for place, column in enumerate((VALID_FROM, VALID_TO, CLOSES))
            )
        stamped = f"SELECT *, {stamps} FROM {scan(files, by_name=self._by_name)}"
        self._session.connection.execute(
            f'CREATE VIEW "main".{identifier(name)} AS SELECT * FROM ({stamped}) WHERE {identifier(VALID_FROM)} IS NOT NULL'
        )

    def _time_partitioned(self, rows: SourceRows) -> str:
        """The instants of a table without labels: each value of its time column is a partition of its own (C18)."""
        column = identifier(rows.table.column)
        value = f"epoch_ms(CAST({column} AS TIMESTAMP))"
        first, last = rows.validity(0, 0)
        cut = rows.table.cut
        conditions = [f"{value} >= {cut.start * 1000}"] if cut.start is not None else []
        conditions += [f"{value} < {cut.end * 1000}"] if cut.end is not None else []
        until = f"{value} + {last + 1}" if last != _ALWAYS else str(_ALWAYS)
        inside = " AND ".join(conditions) or "TRUE"
        return (
            f"CASE WHEN {inside} THEN {value} + {first} END AS {identifier(VALID_FROM)}, "
            f"{until} AS {identifier(VALID_TO)}, {value} AS {identifier(CLOSES)}"
        )

    def _paths(self, rows: SourceRows) -> list[tuple[str, str]]:
        """Every data file of the table with its label, the newest label first."""
        table, column = rows.table.table, rows.table.column
        try:
            files = data_files(self._session.root, table)
        except UnreadableTable as error:
            raise refused(self._job, rows.field, error.fault.message, error.fault.remedy, rule="sql") from error
        if rows.table.spec is None:
            return [(path, "") for path in sorted(files, reverse=True)]
        labelled = []
        for path in files:
            label = partition_of(path.rpartition("/")[0]).get(column)
            if label is None:
                problem = f"the table {table} has no partition column {column!r}: {path} lies below none"
                raise refused(self._job, rows.field, problem, "name its partition_column", rule="C7")
            labelled.append((path, label))
        return sorted(labelled, key=lambda pair: (pair[1], pair[0]), reverse=True)

    def _needed(
        self, rows: SourceRows, paths: Iterable[tuple[str, str]], moments: Sequence[int]
    ) -> list[tuple[str, str]]:
        if not moments:
            return []
        needed: dict[str, bool] = {}
        for _, label in paths:
            if label not in needed:
                first, last = self._validity(rows, label)
                needed[label] = any(first < moment <= last for moment in moments)
        read = sorted(label for label, is_needed in needed.items() if is_needed)
        if rows.reading is Reading.NEWEST and not rows.table.expression:
            self._check_snapshots(rows, needed, moments)
        self._session.log(f"{rows.field}: {rows.table.table} {rows.table.column}={span(read) or 'no partition'}")
        return [pair for pair in paths if needed[pair[1]]]

    def _check_snapshots(self, rows: SourceRows, landed: Collection[str], moments: Sequence[int]) -> None:
        """A snapshot that is not there would make a partition without rows: only before the table's history is that
        right."""
        spec, cut = rows.table.spec, rows.table.cut
        assert spec is not None
        oldest = min(map(spec.start_of, landed))
        for moment in moments:
            start = spec.grid.floor(moment // 1000 - rows.table.lag - 1)
            is_cut = (cut.start is not None and start < cut.start) or (cut.end is not None and start >= cut.end)
            if start > oldest and not is_cut and spec.label(start) not in landed:
                problem = f"the snapshot {rows.table.column}={spec.label(start)} of {rows.table.table} is not there"
                raise refused(self._job, rows.field, problem, "let its producer write it", rule="C16")

    @staticmethod
    def _closes(rows: SourceRows, label: str) -> int:
        assert rows.table.spec is not None
        return (rows.table.spec.start_of(label) + rows.table.spec.grid.interval) * 1000 - 1

    def _validity(self, rows: SourceRows, label: str) -> tuple[int, int]:
        spec, cut = rows.table.spec, rows.table.cut
        assert spec is not None
        try:
            start = spec.start_of(label)
        except IllegalLabel as error:
            problem = f"{rows.table.table} holds a partition that is not on its grid {spec.grid}: {error.fault.message}"
            remedy = "declare the table's partition_interval, partition_offset and partition_format"
            raise refused(self._job, rows.field, problem, remedy, rule="C7") from error
        end = start + spec.grid.interval
        if (cut.start is not None and end <= cut.start) or (cut.end is not None and start >= cut.end):
            return 0, 0
        return rows.validity(start, end)


def _spark(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
