"""GroupBys in the embedded engine: a snapshot per partition, and the newest one as key and value for serving."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_chronon.engine.local.computation import RESULT, Output, Session, refused
from airflow_chronon.engine.local.features.documents import read_group_by
from airflow_chronon.engine.local.features.rows import GroupByRows
from airflow_chronon.engine.local.features.snapshot import Snapshots
from airflow_chronon.engine.local.inputs import inputs_of
from airflow_chronon.engine.local.sources import SourceReader
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.sql.parquet import identifier, literal, tried_by_name

KEY_JSON, VALUE_JSON = "key_json", "value_json"


@dataclass
class GroupByBackfill:
    """One snapshot per partition of the run, whatever the GroupBy's accuracy, as in Chronon."""

    _rows: GroupByRows | None = field(default=None, init=False)

    def outputs(self, job: JobRequest) -> tuple[Output, ...]:
        return (Output(job.table),)

    def prepare(self, job: JobRequest, session: Session) -> None:
        """Read the conf, bind its tables and check every column."""
        self._rows = GroupByRows(job, read_group_by(job), inputs_of(job))
        snapshots = tried_by_name(lambda by_name: self._bind(job, session, self._ends(job)[-1:], by_name))
        for name in snapshots.derived.columns:
            if name.casefold() == job.spec.column.casefold():
                raise refused(job, "", f"a column is named {name!r} like the partition column", "rename it")
        session.log(f"columns: {', '.join(snapshots.derived.columns)}")

    def compute(self, job: JobRequest, session: Session) -> None:
        """Each snapshot by itself, from rows that are read once."""
        tried_by_name(lambda by_name: self._compute(job, session, by_name))

    def _compute(self, job: JobRequest, session: Session, by_name: bool) -> None:
        ends = self._ends(job)
        snapshots = self._bind(job, session, ends, by_name)
        column = identifier(job.spec.column)
        for index, (end, label) in enumerate(zip(ends, job.partitions, strict=True)):
            query = f"SELECT *, {literal(label)} AS {column} FROM ({self._output(snapshots, end, session)})"
            if index:
                session.connection.execute(f"INSERT INTO {RESULT} {query}")
            else:
                session.connection.execute(f"CREATE OR REPLACE TEMPORARY TABLE {RESULT} AS {query}")

    def _output(self, snapshots: Snapshots, end: int, session: Session) -> str:
        return snapshots.query(end)

    def _bind(self, job: JobRequest, session: Session, ends: list[int], by_name: bool) -> Snapshots:
        assert self._rows is not None, "prepare() comes first"
        return Snapshots.bind(self._rows, SourceReader(job, session, by_name=by_name), ends)

    @staticmethod
    def _ends(job: JobRequest) -> list[int]:
        assert job.window is not None, "a run without a window never gets here"
        grid = job.spec.grid
        return [start + grid.interval for start in grid.starts(job.window.start, job.window.end)]


@dataclass
class GroupByUpload(GroupByBackfill):
    """The snapshot for serving: one row per key, its key and its features as JSON objects beside the key columns."""

    def _output(self, snapshots: Snapshots, end: int, session: Session) -> str:
        keys, query = snapshots.of.keys, snapshots.query(end)
        listed = ", ".join(map(identifier, keys))
        if not snapshots.of.group_by.aggregations:
            query = (
                f"SELECT * FROM ({query}) QUALIFY CASE WHEN count(*) OVER (PARTITION BY {listed}) = 1 THEN TRUE "
                f"ELSE error('the snapshot has two rows for one key: an upload needs one') END"
            )
        types = {row[0]: row[1] for row in session.connection.execute(f"DESCRIBE {query}").fetchall()}
        key, value = _json_object(keys, types), _json_object(snapshots.values, types)
        return f"SELECT {listed}, {key} AS {KEY_JSON}, {value} AS {VALUE_JSON} FROM ({query})"


def _json_object(columns: tuple[str, ...], types: dict[str, str]) -> str:
    """A JSON object of the columns, as text; numbers that JSON cannot say (NaN, infinity) become null."""
    if not columns:
        return "'{}'"
    fields = []
    for name in columns:
        column = identifier(name)
        is_real = types[name] in ("DOUBLE", "FLOAT")
        fields.append(f"{literal(name)}: {f'CASE WHEN isfinite({column}) THEN {column} END' if is_real else column}")
    return f"CAST(to_json({{{', '.join(fields)}}}) AS VARCHAR)"
