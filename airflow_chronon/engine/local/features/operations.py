"""Each operation of Chronon as DuckDB's SQL: one aggregate, and what remains to be done with its value.

Nulls are never counted, and an operation that saw no value gives null, as in Chronon (COUNT too). Where two values
share one time, FIRST and FIRST_K take the smaller one first, LAST and LAST_K the larger one: the answer must not depend
on the order of the rows. For the same reason sums over floating-point numbers add them in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from airflow_chronon.engine.local.features.documents import Operation

_INTEGERS = re.compile(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)")


class ValueKind(Enum):
    """What an operation needs to know of its input's type."""

    INTEGER = "whole numbers"
    REAL = "numbers"
    BOOLEAN = "booleans"
    TEXT = "text"
    BINARY = "binary"
    TIME = "dates or timestamps"
    NESTED = "lists, maps or structs"

    @classmethod
    def of(cls, type_name: str) -> ValueKind:
        """The kind of a DuckDB type."""
        if type_name.endswith("]") or type_name.startswith(("STRUCT", "MAP", "UNION", "JSON", "VARIANT")):
            return cls.NESTED
        if _INTEGERS.fullmatch(type_name):
            return cls.INTEGER
        if type_name in ("FLOAT", "DOUBLE") or type_name.startswith("DECIMAL"):
            return cls.REAL
        if type_name.startswith(("DATE", "TIME", "INTERVAL")):
            return cls.TIME
        return {"BOOLEAN": cls.BOOLEAN, "BLOB": cls.BINARY}.get(type_name, cls.TEXT)


@dataclass(frozen=True)
class Value:
    """The input of an aggregate: an SQL expression that is null outside the window."""

    sql: str
    time: str  #: the row's time, for the operations that order by it
    kind: ValueKind
    type: str  #: DuckDB's name of the type


@dataclass(frozen=True)
class Aggregate:
    """One aggregate call, and a format string that turns ``{}``, the column it was stored in, into the final value."""

    call: str
    final: str = "{}"


class IllegalOperation(ValueError):
    """An operation that has no meaning for its input or its arguments; the text says why."""


def aggregate(operation: Operation, value: Value, arguments: Mapping[str, str]) -> Aggregate:
    """The SQL of an operation. Raises :class:`IllegalOperation`."""
    _check(operation, value)
    return _BUILDERS[operation](value, arguments)


_TIMED = frozenset({Operation.FIRST, Operation.LAST, Operation.FIRST_K, Operation.LAST_K})
_NUMERIC = frozenset(
    {
        Operation.SUM,
        Operation.AVERAGE,
        Operation.VARIANCE,
        Operation.SKEW,
        Operation.KURTOSIS,
        Operation.APPROX_PERCENTILE,
    }
)
_ORDERED = frozenset({Operation.MIN, Operation.MAX, Operation.TOP_K, Operation.BOTTOM_K})


def needs_time(operation: Operation) -> bool:
    """Whether the operation orders its input by time."""
    return operation in _TIMED


def _check(operation: Operation, value: Value) -> None:
    kind = value.kind
    if kind is ValueKind.TIME:
        raise IllegalOperation(f"it holds {kind.value}, which Chronon does not aggregate: select whole numbers instead")
    if kind is ValueKind.NESTED:
        is_ranked = operation is Operation.UNIQUE_TOP_K and value.type.startswith("STRUCT")
        if operation not in _TIMED and not (is_ranked and "sort_key" in value.type and "unique_id" in value.type):
            raise IllegalOperation(
                f"it holds {kind.value}, over which the embedded engine computes only FIRST and LAST"
            )
    allowed: tuple[ValueKind, ...] = tuple(ValueKind)
    if operation in _NUMERIC:
        allowed = (ValueKind.INTEGER, ValueKind.REAL) + ((ValueKind.BOOLEAN,) if operation is Operation.SUM else ())
    elif operation in _ORDERED:
        allowed = (ValueKind.INTEGER, ValueKind.REAL, ValueKind.TEXT)
    if kind not in allowed:
        raise IllegalOperation(
            f"it holds {kind.value}, and {operation.name} needs {' or '.join(k.value for k in allowed)}"
        )


def _k(arguments: Mapping[str, str], *, default: int | None = None) -> int:
    text = arguments.get("k")
    if text is None and default is not None:
        return default
    if text is None or not text.strip().isdigit() or (int(text) == 0 and default is None):
        raise IllegalOperation(f"its argument k is {text!r}, not a whole number from 1")
    return int(text)


def _count(value: Value, _: Mapping[str, str]) -> Aggregate:
    return Aggregate(f"nullif(count({value.sql}), 0)")


def _unique_count(value: Value, _: Mapping[str, str]) -> Aggregate:
    return Aggregate(f"nullif(count(DISTINCT {value.sql}), 0)")


def _sum(value: Value, _: Mapping[str, str]) -> Aggregate:
    if value.kind is ValueKind.REAL:
        return Aggregate(f"sum({_real(value)} ORDER BY {_real(value)})")
    if value.kind is ValueKind.BOOLEAN:
        return Aggregate(f"CAST(sum(CAST({value.sql} AS BIGINT)) AS BIGINT)")
    return Aggregate(f"CAST(sum({value.sql}) AS BIGINT)")


def _average(value: Value, _: Mapping[str, str]) -> Aggregate:
    if value.kind is ValueKind.REAL:
        return Aggregate(f"sum({_real(value)} ORDER BY {_real(value)}) / nullif(count({value.sql}), 0)")
    return Aggregate(f"avg({value.sql})")


def _real(value: Value) -> str:
    return f"CAST({value.sql} AS DOUBLE)"


#: The mean and the central moments of a sorted list. Equal values have no spread, whatever their mean rounds to.
_MEAN = "(list_sum({0}) / len({0}))"
_MOMENT = "list_sum([pow(x - " + _MEAN + ", %d) for x in {0}])"
_NO_SPREAD = "{0}[1] = {0}[-1]"


def _moments(final: str) -> Callable[[Value, Mapping[str, str]], Aggregate]:
    def build(value: Value, _: Mapping[str, str]) -> Aggregate:
        return Aggregate(f"list({_real(value)} ORDER BY {_real(value)}) FILTER ({value.sql} IS NOT NULL)", final)

    return build


_VARIANCE = f"CASE WHEN {_NO_SPREAD} THEN 0.0::DOUBLE ELSE {_MOMENT % 2} / len({{0}}) END"
_SKEW = (
    f"CASE WHEN {{0}} IS NULL THEN NULL WHEN len({{0}}) < 3 OR {_NO_SPREAD} THEN 'nan'::DOUBLE "
    f"ELSE sqrt(len({{0}})) * {_MOMENT % 3} / pow({_MOMENT % 2}, 1.5) END"
)
_KURTOSIS = (
    f"CASE WHEN {{0}} IS NULL THEN NULL WHEN len({{0}}) < 4 OR {_NO_SPREAD} THEN 'nan'::DOUBLE "
    f"ELSE len({{0}}) * {_MOMENT % 4} / pow({_MOMENT % 2}, 2) - 3 END"
)


def _percentiles(value: Value, arguments: Mapping[str, str]) -> Aggregate:
    text = arguments.get("percentiles", "[0.5]")
    try:
        points = [float(point) for point in json.loads(text)]
    except (ValueError, TypeError):
        points = []
    if not points or not all(0 <= point <= 1 for point in points):
        raise IllegalOperation(f"its argument percentiles is {text!r}, not a list of numbers from 0 to 1")
    return Aggregate(f"quantile_disc(CAST({value.sql} AS FLOAT), {points})")


def _timed_pair(value: Value) -> str:
    return f"CASE WHEN {value.sql} IS NOT NULL THEN {{'t': {value.time}, 'v': {value.sql}}} END"


def _histogram(value: Value, arguments: Mapping[str, str]) -> Aggregate:
    return _counts(value, _k(arguments, default=0), "INTEGER")


def _frequent(value: Value, arguments: Mapping[str, str]) -> Aggregate:
    return _counts(value, _k(arguments), "BIGINT")


def _counts(value: Value, k: int, number: str) -> Aggregate:
    """Text to number of occurrences, keys in order; with ``k`` the most frequent, of equals those that sort first."""
    call = f"CAST(histogram(CAST({value.sql} AS VARCHAR)) AS MAP(VARCHAR, {number}))"
    if not k:
        return Aggregate(call)
    ranked = f"list_sort([{{{{'n': -e.value, 'k': e.key}}}} for e in map_entries({{0}})])[:{k}]"
    kept = f"list_sort([{{{{'k': e.k, 'v': -e.n}}}} for e in {ranked}])"
    return Aggregate(call, f"CASE WHEN {{0}} IS NOT NULL THEN map_from_entries({kept}) END")


def _unique_top(value: Value, arguments: Mapping[str, str]) -> Aggregate:
    k = _k(arguments)
    if value.kind is not ValueKind.NESTED:
        return Aggregate(
            f"list(DISTINCT {value.sql} ORDER BY {value.sql} DESC) FILTER ({value.sql} IS NOT NULL)", f"{{0}}[:{k}]"
        )
    ranked = (
        f"ORDER BY struct_extract({value.sql}, 'sort_key') DESC, struct_extract({value.sql}, 'unique_id'), {value.sql}"
    )
    first = "list_position([y.unique_id for y in {0}], x.unique_id) = i"
    return Aggregate(
        f"list({value.sql} {ranked}) FILTER ({value.sql} IS NOT NULL)", f"[x for x, i in {{0}} if {first}][:{k}]"
    )


_BUILDERS: Mapping[Operation, Callable[[Value, Mapping[str, str]], Aggregate]] = {
    Operation.MIN: lambda value, _: Aggregate(f"min({value.sql})"),
    Operation.MAX: lambda value, _: Aggregate(f"max({value.sql})"),
    Operation.FIRST: lambda value, _: Aggregate(f"struct_extract(min({_timed_pair(value)}), 'v')"),
    Operation.LAST: lambda value, _: Aggregate(f"struct_extract(max({_timed_pair(value)}), 'v')"),
    Operation.UNIQUE_COUNT: _unique_count,
    Operation.APPROX_UNIQUE_COUNT: _unique_count,  # DuckDB's sketches differ between its releases; replays must not
    Operation.COUNT: _count,
    Operation.SUM: _sum,
    Operation.AVERAGE: _average,
    Operation.VARIANCE: _moments(_VARIANCE),
    Operation.SKEW: _moments(_SKEW),
    Operation.KURTOSIS: _moments(_KURTOSIS),
    Operation.APPROX_PERCENTILE: _percentiles,
    Operation.LAST_K: lambda value, of: Aggregate(f"max({_timed_pair(value)}, {_k(of)})", "[x.v for x in {0}]"),
    Operation.FIRST_K: lambda value, of: Aggregate(f"min({_timed_pair(value)}, {_k(of)})", "[x.v for x in {0}]"),
    Operation.TOP_K: lambda value, of: Aggregate(f"max({value.sql}, {_k(of)})"),
    Operation.BOTTOM_K: lambda value, of: Aggregate(f"min({value.sql}, {_k(of)})"),
    Operation.HISTOGRAM: _histogram,
    Operation.APPROX_FREQUENT_K: _frequent,
    Operation.APPROX_HEAVY_HITTERS_K: _frequent,
    Operation.UNIQUE_TOP_K: _unique_top,
}
