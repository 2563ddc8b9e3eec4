"""What a GroupBy reads: its sources as one relation, checked; for its own snapshots and as a part of a Join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_chronon.core.waits.dependencies import Binding, TableDependency
from airflow_chronon.engine.local.computation import refused
from airflow_chronon.engine.local.features.columns import (
    TIME,
    Feature,
    FeatureSql,
    features_of,
    longest_window,
    needs_times,
)
from airflow_chronon.engine.local.features.documents import FeatureGroupBy, FeatureSource
from airflow_chronon.engine.local.sources import CLOSES, BoundRows, Reading, SourceReader, SourceRows, check_query
from airflow_chronon.engine.protocol import JobRequest


@dataclass(frozen=True)
class GroupByRows:
    """One GroupBy and the tables that it reads. Raises :class:`airflow_chronon.errors.JobRefused` when built."""

    job: JobRequest
    group_by: FeatureGroupBy
    inputs: Mapping[str, tuple[TableDependency, ...]]  #: the job's tables by their field
    where: str = ""  #: the field of the GroupBy within the conf, a dot behind it
    features: tuple[Feature, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", features_of(self.group_by))
        self._check()

    @property
    def is_entities(self) -> bool:
        return self.group_by.sources[0].is_entities

    @property
    def keys(self) -> tuple[str, ...]:
        return self.group_by.key_columns

    @property
    def reach(self) -> int | None:
        """Milliseconds that the largest window reaches back; None: without bound."""
        return longest_window(self.features)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What is read: keys, inputs and buckets; without aggregations whatever is selected, None where all is."""
        if self.group_by.aggregations:
            names = [name for a in self.group_by.aggregations for name in (a.input_column, *(a.buckets or ()))]
            return tuple(dict.fromkeys((*self.keys, *names)))
        selects = self.group_by.sources[0].query.selects
        return None if selects is None else tuple(selects)

    def snapshot_sources(self) -> tuple[SourceRows, ...]:
        """The sources as a snapshot reads them, for moments that are ends of partitions."""
        reading = Reading.NEWEST if self.is_entities else Reading.BEFORE
        return tuple(self._rows(index, reading, step=0) for index in range(len(self.group_by.sources)))

    def temporal_sources(self, *, step: int) -> tuple[SourceRows, ...]:
        """The events as a point-in-time part reads them, for moments that are ends of the Join's partitions."""
        return tuple(self._rows(index, Reading.CLOSED, step=step) for index in range(len(self.group_by.sources)))

    def dependency(self, index: int, *, mutations: bool = False) -> TableDependency:
        """The table of a source, its grid, format and lag resolved; or its mutation table."""
        source = self.group_by.sources[index]
        found = self.inputs.get(f"{self.source_field(index)}.query", ())
        if source.entities is not None and len(found) > 1:
            found = tuple(d for d in found if (d.binding is Binding.POINT_IN_TIME) is mutations)
        return found[0]

    def source_field(self, index: int) -> str:
        return f"{self.where}sources[{index}].{self.group_by.sources[index].kind}"

    def read(self, reader: SourceReader, sources: Sequence[SourceRows], moments: Sequence[int]) -> BoundRows:
        """The rows of all sources in one relation, stored when it is read more than once."""
        return reader.unite([reader.bind(rows, moments) for rows in sources], materialise=len(moments) > 1)

    def features_sql(
        self, rows: BoundRows, *, keys: tuple[str, ...], names: tuple[str, ...], moment: str
    ) -> FeatureSql:
        """The SQL of the features. Raises :class:`JobRefused` for the first operation that its input does not suit."""
        sql = FeatureSql(self.features, rows.types, keys, names, moment, is_bounded=not self.is_entities)
        for name, problem in sql.check().items():
            index = next(
                i
                for i, a in enumerate(self.group_by.aggregations or ())
                if name in {f.name for f in self.features if f.aggregation is a}
            )
            column = self.features[[f.name for f in self.features].index(name)].aggregation.input_column
            raise refused(
                self.job,
                f"{self.where}aggregations[{index}]",
                f"the column {name} cannot be computed from {column!r}: {problem}",
                "change the operation or the source's select",
            )
        return sql

    def _rows(self, index: int, reading: Reading, *, step: int) -> SourceRows:
        source = self.group_by.sources[index]
        return SourceRows(
            self.dependency(index),
            source.query,
            f"{self.source_field(index)}.query",
            reading,
            self.columns,
            self.reach,
            step,
            self._time(source),
        )

    def _time(self, source: FeatureSource) -> str | None:
        if source.is_entities:
            needed = needs_times(self.group_by) or TIME in (self.columns or ())
            return source.query.time_column if needed else None
        return source.query.time_column or f"`{CLOSES}`"

    def _check(self) -> None:
        group_by = self.group_by
        if group_by.key_filter is not None:
            raise refused(self.job, f"{self.where}keyFilter", "the embedded engine does not filter keys")
        if not group_by.key_columns:
            raise refused(self.job, f"{self.where}keyColumns", "there are no key columns")
        for index, source in enumerate(group_by.sources):
            place = self.source_field(index)
            if source.model_transforms is not None:
                raise refused(self.job, place, "the embedded engine runs no models")
            if source.is_entities is not self.is_entities:
                raise refused(
                    self.job, place, "the sources mix events and entities", "give the GroupBy one kind of sources"
                )
            if not self.inputs.get(f"{place}.query"):
                raise refused(self.job, place, "its table is not known", "check the conf with airflow-chronon check")
            check_query(self.job, source.query, f"{place}.query")
            if needs_times(group_by) and source.is_entities and not source.query.time_column:
                raise refused(self.job, f"{place}.query", "windows over entities need a time", "set its timeColumn")
            self._check_selects(source, f"{place}.query.selects")
        if not group_by.aggregations and not self.is_entities:
            raise refused(self.job, f"{self.where}aggregations", "events cannot do without aggregations", "add some")

    def _check_selects(self, source: FeatureSource, place: str) -> None:
        selects = source.query.selects
        if selects is None:
            return
        for column in (*(self.columns or ()), *self.keys):
            if column not in selects and column != "ts" and self.group_by.aggregations:
                raise refused(self.job, place, f"{column!r} is not selected", "select it in every source")
