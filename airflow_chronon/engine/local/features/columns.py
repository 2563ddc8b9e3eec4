"""The features of a GroupBy: their columns, named as Chronon names them, and the SQL that computes them.

All windows and operations are computed in one pass over the rows of the largest window: each aggregate takes a row's
value only inside its own window, and null outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_chronon.core.confs.documents import TimeUnit, Window
from airflow_chronon.engine.local.features.documents import FeatureAggregation, FeatureGroupBy, Operation
from airflow_chronon.engine.local.features.operations import (
    Aggregate,
    IllegalOperation,
    Value,
    ValueKind,
    aggregate,
    needs_time,
)
from airflow_chronon.sql.parquet import identifier

#: The columns that every relation of source rows carries besides what the query selects.
TIME, VALID_FROM, VALID_TO = "ts", "chronon valid from", "chronon valid to"

_K_IN_NAME = frozenset({Operation.LAST_K, Operation.FIRST_K, Operation.TOP_K, Operation.BOTTOM_K})
_UNITS = {TimeUnit.HOURS: "h", TimeUnit.DAYS: "d", TimeUnit.MINUTES: "m"}


@dataclass(frozen=True)
class Feature:
    """One output column of an aggregation."""

    name: str
    aggregation: FeatureAggregation
    window: int | None  #: milliseconds; None: everything before the moment
    bucket: str | None


def features_of(group_by: FeatureGroupBy) -> tuple[Feature, ...]:
    """Every aggregated column, in the order of the conf."""
    return tuple(feature for aggregation in group_by.aggregations or () for feature in _expand(aggregation))


def _expand(aggregation: FeatureAggregation) -> Iterable[Feature]:
    base = f"{aggregation.input_column}_{_suffix(aggregation)}"
    for bucket in aggregation.buckets or (None,):
        by = f"_by_{bucket}" if bucket else ""
        for window in aggregation.windows or (None,):
            yield Feature(f"{base}{_window_suffix(window)}{by}", aggregation, _milliseconds(window), bucket)


def _suffix(aggregation: FeatureAggregation) -> str:
    name = aggregation.operation.name.lower()
    return f"{name[:-2]}{aggregation.arg_map.get('k')}" if aggregation.operation in _K_IN_NAME else name


def _window_suffix(window: Window | None) -> str:
    return "" if window is None else f"_{window.length}{_UNITS[window.time_unit]}"


def _milliseconds(window: Window | None) -> int | None:
    return None if window is None else window.seconds * 1000


def needs_times(group_by: FeatureGroupBy) -> bool:
    """Whether any column depends on the rows' times."""
    return any(a.windows or needs_time(a.operation) for a in group_by.aggregations or ())


def longest_window(features: Iterable[Feature]) -> int | None:
    """Milliseconds of the largest window; None when a feature has none."""
    windows = [feature.window for feature in features]
    return None if None in windows else max((window for window in windows if window is not None), default=None)


@dataclass(frozen=True)
class FeatureSql:
    """The columns of a GroupBy over a relation of rows, as of moments.

    ``keys`` are what rows are grouped by: the key columns, and whatever names the moments.
    """

    features: Sequence[Feature]
    types: Mapping[str, str]  #: DuckDB's type of each column of the rows
    keys: tuple[str, ...]  #: SQL expressions over ``rows`` and the moments
    names: tuple[str, ...]  #: the names they get
    moment: str  #: an SQL expression: the exclusive end of every window, in milliseconds
    is_bounded: bool = True  #: whether ``source`` holds only rows that :meth:`in_window` lets through

    def check(self) -> dict[str, str]:
        """What is wrong with each aggregation, by the name of its column."""
        problems: dict[str, str] = {}
        for feature in self.features:
            try:
                self._aggregate(feature)
            except IllegalOperation as error:
                problems[feature.name] = str(error)
        return problems

    def query(self, source: str) -> str:
        """The features of every group. ``source`` is what follows FROM, its rows named ``rows``; a group in which every
        feature is null has no row, as in Chronon."""
        buckets = list(dict.fromkeys(feature.bucket for feature in self.features))
        groups = [self._group(source, [f for f in self.features if f.bucket == bucket], bucket) for bucket in buckets]
        query = groups[0]
        joined = [f.name for f in self.features if f.bucket == buckets[0]]
        for bucket, group in zip(buckets[1:], groups[1:], strict=True):
            joined += [f.name for f in self.features if f.bucket == bucket]
            on = " AND ".join(f"g.{identifier(n)} IS NOT DISTINCT FROM h.{identifier(n)}" for n in self.names)
            keys = (f"coalesce(g.{identifier(n)}, h.{identifier(n)}) AS {identifier(n)}" for n in self.names)
            columns = ", ".join((*keys, *map(identifier, joined)))
            query = f"SELECT {columns} FROM ({query}) AS g FULL JOIN ({group}) AS h ON {on}"
        ordered = ", ".join(map(identifier, (*self.names, *(feature.name for feature in self.features))))
        some = " OR ".join(f"{identifier(feature.name)} IS NOT NULL" for feature in self.features)
        return f"SELECT {ordered} FROM ({query}) WHERE {some}"

    def _group(self, source: str, features: Sequence[Feature], bucket: str | None) -> str:
        """One pass over the rows: the features without buckets, or those of one bucket column."""
        names = list(map(identifier, self.names))
        keyed = [f"{key} AS {name}" for key, name in zip(self.keys, names, strict=True)]
        aggregates = [(identifier(feature.name), self._aggregate(feature)) for feature in features]
        calls = [f"{made.call} AS {name}" for name, made in aggregates]
        finals = [f"{made.final.format(name)} AS {name}" for name, made in aggregates]
        groups = list(self.keys)
        if bucket is not None:
            label = f"CAST(rows.{identifier(bucket)} AS VARCHAR)"
            keyed.append(f'{label} AS "chronon bucket"')
            groups.append(label)
            names.append('"chronon bucket"')
        inner = f"SELECT {', '.join(keyed + calls)} FROM {source} GROUP BY {', '.join(groups)}"
        query = f"SELECT {', '.join(names + finals)} FROM ({inner})"
        if bucket is None:
            return query
        keys = names[:-1]
        maps = [
            f"map_from_entries(list({{'k': \"chronon bucket\", 'v': {name}}} ORDER BY \"chronon bucket\") "
            f'FILTER ({name} IS NOT NULL AND "chronon bucket" IS NOT NULL)) AS {name}'
            for name, _ in aggregates
        ]
        return f"SELECT {', '.join(keys + maps)} FROM ({query}) GROUP BY {', '.join(keys)}"

    def _aggregate(self, feature: Feature) -> Aggregate:
        aggregation = feature.aggregation
        column = f"rows.{identifier(aggregation.input_column)}"
        type_name = self.types[aggregation.input_column]
        sql = column
        if feature.window is not None and not (self.is_bounded and feature.window == longest_window(self.features)):
            inside = f"rows.{TIME} >= {self.moment} - {feature.window}"
            inside += "" if self.is_bounded else f" AND rows.{TIME} < {self.moment}"
            sql = f"CASE WHEN {inside} THEN {column} END"
        value = Value(sql, f"rows.{TIME}", ValueKind.of(type_name), type_name)
        return aggregate(aggregation.operation, value, aggregation.arg_map)

    def in_window(self) -> str:
        """The condition on ``rows`` that leaves the largest window, its end exclusive."""
        conditions = [f"rows.{TIME} < {self.moment}"]
        longest = longest_window(self.features)
        if longest is not None:
            conditions.append(f"rows.{TIME} >= {self.moment} - {longest}")
        return " AND ".join(conditions)
