"""Joins in the embedded engine: the left's rows, each with the features that were known at its time (C21)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.engine.local.computation import RESULT, Output, Session, refused
from airflow_chronon.engine.local.features.derivations import Derivations
from airflow_chronon.engine.local.features.documents import FeatureJoin, read_join
from airflow_chronon.engine.local.inputs import Inputs, inputs_of
from airflow_chronon.engine.local.joins.bootstrap import BootstrapRows
from airflow_chronon.engine.local.joins.left import LABEL, JoinLeft, LeftRows
from airflow_chronon.engine.local.joins.part import JoinPartRows, PartTable
from airflow_chronon.engine.local.sources import SourceReader
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.sql.parquet import identifier, tried_by_name

_DERIVED = '"chronon derived"'


@dataclass
class JoinBackfill:
    """The partitions of a Join's table, and of its ``__derived`` table when it has derivations."""

    _join: FeatureJoin | None = field(default=None, init=False)
    _inputs: Inputs = field(default_factory=dict, init=False)
    _left: JoinLeft | None = field(default=None, init=False)
    _parts: list[JoinPartRows] = field(default_factory=list, init=False)
    _bootstraps: list[BootstrapRows] = field(default_factory=list, init=False)

    def outputs(self, job: JobRequest) -> tuple[Output, ...]:
        """Whoever sees the Join's own partition finds the derived one there already."""
        assert self._join is not None, "prepare() comes first"
        own = Output(job.table)
        return (Output(f"{job.table}__derived", _DERIVED), own) if self._join.derivations else (own,)

    def prepare(self, job: JobRequest, session: Session) -> None:
        """Read the conf and check every field; then bind everything over no rows, which checks every column."""
        join = self._join = read_join(job)
        for name, value in (
            ("onlineExternalParts", join.online_external_parts),
            ("skewKeys", join.skew_keys),
            ("labelParts", join.label_parts),
        ):
            if value:
                raise refused(job, name, f"the embedded engine does not know {name}")
        self._inputs = inputs_of(job)
        self._left = JoinLeft(job, join, self._inputs)
        self._left.check()
        self._parts = [JoinPartRows.read(job, join, index, self._inputs) for index in range(len(join.join_parts))]
        bootstraps = range(len(join.bootstrap_parts or ()))
        self._bootstraps = [BootstrapRows.read(job, join, index, self._inputs) for index in bootstraps]
        columns = tried_by_name(lambda by_name: self._bind(job, session, {}, by_name))
        session.log(f"columns: {', '.join(columns)}")

    def compute(self, job: JobRequest, session: Session) -> None:
        """Each part becomes a table that the left's rows are joined to."""
        assert job.window is not None, "a run without a window never gets here"
        grid = job.spec.grid
        starts = grid.starts(job.window.start, job.window.end)
        ends = {(s + grid.interval) * 1000: label for s, label in zip(starts, job.partitions, strict=True)}
        tried_by_name(lambda by_name: self._bind(job, session, ends, by_name))

    def _bind(self, job: JobRequest, session: Session, ends: dict[int, PartitionKey], by_name: bool) -> tuple[str, ...]:
        """Compute the partitions that end at ``ends``; gives the columns."""
        assert self._left is not None, "prepare() comes first"
        reader = SourceReader(job, session, by_name=by_name)
        left = self._left.store(reader, ends)
        parts = [part.store(left, reader) for part in self._parts]
        features = self._features(job, left, parts)
        bootstraps = [part.store(left, reader, features) for part in self._bootstraps]
        label = f"l.{identifier(LABEL)} AS {identifier(job.spec.column)}"
        session.connection.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE {RESULT} AS {_joined(left, bootstraps, parts, label)}"
        )
        return self._derive(job, session, left, features)

    def _features(self, job: JobRequest, left: LeftRows, parts: Sequence[PartTable]) -> list[str]:
        """The parts' columns. A Join in which two columns share a name is refused."""
        taken = {name.casefold(): "the left" for name in left.columns} | {
            job.spec.column.casefold(): "the partition column"
        }
        features = []
        for index, part in enumerate(parts):
            for name in part.columns:
                other = taken.setdefault(name.casefold(), f"joinParts[{index}]")
                if other != f"joinParts[{index}]":
                    problem = f"its column {name!r} is there already, from {other}"
                    raise refused(job, f"joinParts[{index}]", problem, "give the part a prefix")
                features.append(name)
        return features

    def _derive(self, job: JobRequest, session: Session, left: LeftRows, features: Sequence[str]) -> tuple[str, ...]:
        assert self._join is not None
        if not self._join.derivations:
            return (*left.columns, *features)
        derived = Derivations.read(
            self._join.derivations, ids=(*left.columns, job.spec.column), values=features, job=job, field="derivations"
        )
        session.connection.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE {_DERIVED} AS SELECT {derived.select} FROM {RESULT}"
        )
        return derived.columns


def _joined(left: LeftRows, bootstraps: Sequence[PartTable], parts: Sequence[PartTable], label: str) -> str:
    """The left with every part; a bootstrapped value comes before the computed one."""
    given: dict[str, list[str]] = defaultdict(list)
    joins = ""
    for index, part in enumerate((*bootstraps, *parts)):
        alias = f"p{index}"
        joins += f" LEFT JOIN {part.query} AS {alias} ON {part.conditions.format(alias=alias)}"
        for name, own in part.columns.items():
            given[name].append(f"{alias}.{identifier(own)}")
    columns = [f"l.{identifier(name)}" for name in left.columns]
    for part in parts:
        columns += [f"coalesce({', '.join(given[name])}) AS {identifier(name)}" for name in part.columns]
    return f"SELECT {', '.join((*columns, label))} FROM {left.name} AS l{joins}"
