"""Chronon's aggregations in plain Python, row by row, sharing nothing with the engine."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MIN, MAX, FIRST, LAST, UNIQUE_COUNT, APPROX_UNIQUE_COUNT, COUNT, SUM, AVERAGE, VARIANCE, SKEW, KURTOSIS = range(12)
APPROX_PERCENTILE, LAST_K, FIRST_K, TOP_K, BOTTOM_K, HISTOGRAM, FREQUENT_K, HEAVY_HITTERS_K, UNIQUE_TOP_K = range(
    12, 21
)

K, POINTS = 3, (0.1, 0.5, 0.9)

Timed = Sequence[tuple[int, Any]]  # (milliseconds, value), no nulls


@dataclass(frozen=True)
class Event:
    """One row of a source."""

    key: Any
    at: int  #: milliseconds
    value: Any
    bucket: str | None
    start: int  #: of its partition, milliseconds
    end: int


def in_time(values: Timed) -> list[Any]:
    return [value for _, value in sorted(values)]


def moments(values: Iterable[float], order: int) -> float:
    listed = [float(value) for value in values]
    mean = math.fsum(listed) / len(listed)
    return math.fsum((value - mean) ** order for value in listed)


def _skew(values: list[Any]) -> float:
    if len(values) < 3 or len(set(values)) == 1:
        return math.nan
    return math.sqrt(len(values)) * moments(values, 3) / moments(values, 2) ** 1.5


def _kurtosis(values: list[Any]) -> float:
    if len(values) < 4 or len(set(values)) == 1:
        return math.nan
    return len(values) * moments(values, 4) / moments(values, 2) ** 2 - 3


def _percentile(values: list[Any], point: float) -> float:
    ordered = sorted(values)
    (found,) = struct.unpack("f", struct.pack("f", ordered[max(0, math.ceil(point * len(ordered)) - 1)]))
    return float(found)


def _counts(values: list[Any], k: int | None) -> dict[str, int]:
    counted = Counter(map(str, values))
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return dict(ranked[:k])


#: From the values of a window in the order of their times to the feature.
OPERATIONS: Mapping[int, Callable[[list[Any]], Any]] = {
    MIN: min,
    MAX: max,
    FIRST: lambda values: values[0],
    LAST: lambda values: values[-1],
    UNIQUE_COUNT: lambda values: len(set(values)),
    APPROX_UNIQUE_COUNT: lambda values: len(set(values)),
    COUNT: len,
    SUM: math.fsum,
    AVERAGE: lambda values: math.fsum(values) / len(values),
    VARIANCE: lambda values: moments(values, 2) / len(values),
    SKEW: _skew,
    KURTOSIS: _kurtosis,
    APPROX_PERCENTILE: lambda values: [_percentile(values, point) for point in POINTS],
    LAST_K: lambda values: values[::-1][:K],
    FIRST_K: lambda values: values[:K],
    TOP_K: lambda values: sorted(values, reverse=True)[:K],
    BOTTOM_K: lambda values: sorted(values)[:K],
    HISTOGRAM: lambda values: _counts(values, K),  # with a k, as FREQUENT_K writes it
    FREQUENT_K: lambda values: _counts(values, K),
    HEAVY_HITTERS_K: lambda values: _counts(values, K),
    UNIQUE_TOP_K: lambda values: sorted(set(values), reverse=True)[:K],
}


def feature(operation: int, values: Timed) -> Any:
    """The value of one feature; null when no value was seen."""
    return OPERATIONS[operation](in_time(values)) if values else None


def inside(events: Iterable[Event], *, moment: int, window: int | None) -> list[Event]:
    """The events of the half-open window that ends at the moment."""
    return [event for event in events if event.at < moment and (window is None or event.at >= moment - window)]


def values_of(events: Iterable[Event]) -> Timed:
    return [(event.at, event.value) for event in events if event.value is not None]


def bucketed(operation: int, events: Sequence[Event]) -> dict[str, Any] | None:
    """One feature per bucket; a row without a bucket counts nowhere."""
    found = {}
    for bucket in sorted({event.bucket for event in events if event.bucket is not None}):
        values = values_of(event for event in events if event.bucket == bucket)
        if values:
            found[bucket] = feature(operation, values)
    return found or None


def same(one: Any, other: Any) -> bool:
    """Equal up to the rounding of floating-point numbers; NaN is NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
