"""Every operation and both accuracies against plain Python, on random events with times on the bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tests.support.brute_force as plain
from airflow_chronon.core.calendar.instants import DAY, HOUR, iso, parse_instant
from airflow_chronon.core.partitions.labels import PartitionSpec
from tests.support.warehouse import DAILY, HOURLY, THREE_HOURLY, Warehouse, aggregation, events, group_by, join

#: One example computes a hundred columns for several users and moments, so a few say much; shrinking takes too long.
FEW = settings(
    max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
MANY = settings(FEW, max_examples=60)
ORIGIN = parse_instant("2026-06-01T01:00") * 1000
HOUR_MS = HOUR * 1000
COLUMNS = {
    "user": "INTEGER",
    "ts_ms": "BIGINT",
    "number": "BIGINT",
    "real": "DOUBLE",
    "word": "VARCHAR",
    "kind": "VARCHAR",
}
ALL = [(op, "number") for op in plain.OPERATIONS] + [(op, "real") for op in range(7, 13)]
ALL += [(op, "word") for op in (0, 1, 2, 3, 4, 5, 6, 13, 14, 15, 16, 17, 18, 20)]
ARGUMENTS = {"k": str(plain.K), "percentiles": str(list(plain.POINTS))}
SUFFIXES = [
    "min",
    "max",
    "first",
    "last",
    "unique_count",
    "approx_unique_count",
    "count",
    "sum",
    "average",
    "variance",
    "skew",
    "kurtosis",
    "approx_percentile",
    "last3",
    "first3",
    "top3",
    "bottom3",
    "histogram",
    "approx_frequent_k",
    "approx_heavy_hitters_k",
    "unique_top_k",
]

USERS = (1, 2, 3, 4)

#: Milliseconds from the origin, often exactly on a boundary of an hour, or a millisecond beside one.
TIMES = st.one_of(
    st.integers(0, 24 * HOUR_MS - 1),
    st.builds(lambda hour, beside: max(0, hour * HOUR_MS + beside), st.integers(0, 23), st.sampled_from((-1, 0, 1))),
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from((*USERS, None)),
        TIMES,
        st.one_of(st.none(), st.integers(-5, 5)),
        st.one_of(st.none(), st.sampled_from((0.1, 0.2, 0.3, -1e9, 1e-3, 7.25))),
        st.one_of(st.none(), st.sampled_from(("a", "b", "ab", ""))),
        st.sampled_from(("x", "y", None)),
        st.sampled_from((0, 0, 0, 1)),  # how many partitions late it lands
    ),
    min_size=20,
    max_size=90,
)


def aggregations(*windows: str) -> list[dict[str, Any]]:
    found = [aggregation(column, op, *windows, **ARGUMENTS) for op, column in ALL]
    return found + [aggregation("number", op, *windows, buckets=["kind"], **ARGUMENTS) for op in plain.OPERATIONS]


def name_of(op: int, column: str, window: str | None, *, bucket: bool = False) -> str:
    return f"{column}_{SUFFIXES[op]}" + (f"_{window}" if window else "") + ("_by_kind" if bucket else "")


def land(warehouse: Warehouse, rows: Sequence[tuple[Any, ...]], spec: PartitionSpec) -> dict[str, list[plain.Event]]:
    """Land rows in the partitions of their times (or later ones); gives the events by column."""
    grid, found = spec.grid, {"number": [], "real": [], "word": []}
    by_label: dict[str, list[Any]] = {}
    for user, offset, number, real, word, kind, late in rows:
        at = ORIGIN + offset
        start = grid.floor(at // 1000) + late * grid.interval
        by_label.setdefault(spec.label(start), []).append((user, at, number, real, word, kind))
        for column, value in (("number", number), ("real", real), ("word", word)):
            end = (start + grid.interval) * 1000
            found[column].append(plain.Event(user, at, value, kind, start * 1000, end))
    by_label.setdefault(spec.label(grid.floor(ORIGIN // 1000)), [])
    for label, landed in by_label.items():
        warehouse.land("data.events", COLUMNS, landed, ds=label)
    return found


def expected(
    found: dict[str, list[plain.Event]], windows: Sequence[str | None], moment: int, user: Any
) -> dict[str, Any]:
    """All features of a user at a moment, from events that may be read."""
    row = {}
    for window in windows:
        length = int(window[:-1]) * {"h": HOUR, "m": 60, "d": DAY}[window[-1]] * 1000 if window else None
        near = {
            column: plain.inside([e for e in of if e.key == user], moment=moment, window=length)
            for column, of in found.items()
        }
        for op, column in ALL:
            row[name_of(op, column, window)] = plain.feature(op, plain.values_of(near[column]))
        for op in plain.OPERATIONS:
            row[name_of(op, "number", window, bucket=True)] = plain.bucketed(op, near["number"])
    return row


def differences(row: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    assert row.keys() == other.keys()
    return {name: (row[name], other[name]) for name in row if not plain.same(row[name], other[name])}


def source(spec: PartitionSpec) -> dict[str, Any]:
    return events("data.events", spec, selects={name: name for name in COLUMNS if name != "ts_ms"})


def snapshot_rows(warehouse: Warehouse, table: str, label: str) -> dict[Any, dict[str, Any]]:
    names = warehouse.columns(table, label)
    rows = [dict(zip(names, values, strict=True)) for values in warehouse.rows(table, label)]
    return {row.pop("user"): row for row in rows}


GRIDS = pytest.mark.parametrize(
    ("own", "of_source", "windows"),
    [
        pytest.param(THREE_HOURLY, HOURLY, ("180m", "6h"), id="3h@1h over hours, windows"),
        pytest.param(THREE_HOURLY, THREE_HOURLY, (), id="3h@1h, no windows"),
        pytest.param(DAILY, HOURLY, ("1d",), id="days over hours"),
    ],
)
WINDOWS = pytest.mark.parametrize(
    "windows", [pytest.param(("60m", "2h"), id="windows"), pytest.param((), id="no windows")]
)
ASKED = st.lists(st.tuples(st.sampled_from((*USERS, None)), TIMES), min_size=10, max_size=30)


@GRIDS
@FEW
@given(rows=ROWS)
def test_snapshots_are_what_plain_python_computes(
    own: PartitionSpec, of_source: PartitionSpec, windows: tuple[str, ...], rows: Any, scratch: Callable[[], Warehouse]
) -> None:  # C8, C16
    check_snapshots(scratch(), rows, own=own, of_source=of_source, windows=windows)


@pytest.mark.soak
@GRIDS
@MANY
@given(rows=ROWS)
def test_many_snapshots_are_what_plain_python_computes(
    own: PartitionSpec, of_source: PartitionSpec, windows: tuple[str, ...], rows: Any, scratch: Callable[[], Warehouse]
) -> None:  # C8, C16
    check_snapshots(scratch(), rows, own=own, of_source=of_source, windows=windows)


@WINDOWS
@FEW
@given(rows=ROWS, asked=ASKED)
def test_temporal_parts_are_what_plain_python_computes(
    windows: tuple[str, ...], rows: Any, asked: Any, scratch: Callable[[], Warehouse]
) -> None:  # C21
    check_temporal(scratch(), rows, asked, windows=windows)


@pytest.mark.soak
@WINDOWS
@MANY
@given(rows=ROWS, asked=ASKED)
def test_many_temporal_parts_are_what_plain_python_computes(
    windows: tuple[str, ...], rows: Any, asked: Any, scratch: Callable[[], Warehouse]
) -> None:  # C21
    check_temporal(scratch(), rows, asked, windows=windows)


def check_snapshots(
    warehouse: Warehouse, rows: Any, *, own: PartitionSpec, of_source: PartitionSpec, windows: tuple[str, ...]
) -> None:
    found = land(warehouse, rows, of_source)
    document = group_by(source(of_source), aggregations=aggregations(*windows), spec=own)
    start = own.grid.floor(ORIGIN // 1000)
    end = start + (2 * DAY if own is DAILY else 4 * own.grid.interval)
    table = warehouse.run(document, iso(start), iso(end), spec=own)
    longest = max((int(w[:-1]) * {"h": HOUR, "m": 60, "d": DAY}[w[-1]] * 1000 for w in windows), default=None)
    for at in range(start, end, own.grid.interval):
        moment = (at + own.grid.interval) * 1000
        readable = {
            column: [e for e in of if e.start < moment and (longest is None or e.end > moment - longest)]
            for column, of in found.items()
        }
        wanted = {user: expected(readable, windows or (None,), moment, user) for user in USERS}
        wanted = {user: row for user, row in wanted.items() if any(value is not None for value in row.values())}
        computed = snapshot_rows(warehouse, table, own.label(at))
        assert computed.keys() == wanted.keys()
        for user, row in wanted.items():
            assert differences(computed[user], row) == {}


def check_temporal(warehouse: Warehouse, rows: Any, asked: Any, *, windows: tuple[str, ...]) -> None:
    found = land(warehouse, rows, HOURLY)
    by_hour: dict[str, list[Any]] = {}
    for number, (user, offset) in enumerate(asked):
        at = ORIGIN + offset
        by_hour.setdefault(HOURLY.label(HOURLY.grid.floor(at // 1000)), []).append((number, user, at))
    for label, landed in by_hour.items():
        warehouse.land("data.left", {"id": "INTEGER", "user": "INTEGER", "ts_ms": "BIGINT"}, landed, ds=label)
    part = group_by(source(HOURLY), aggregations=aggregations(*windows), spec=HOURLY, accuracy=0)
    document = join(
        events("data.left", HOURLY, selects={"id": "id", "user": "user", "ts": "ts_ms"}), {"groupBy": part}, spec=HOURLY
    )
    table = warehouse.run(document, "2026-06-01T01:00", "2026-06-02T01:00", spec=HOURLY)
    longest = max((int(w[:-1]) * {"h": HOUR, "m": 60}[w[-1]] * 1000 for w in windows), default=None)
    for label, landed in by_hour.items():
        names = warehouse.columns(table, label)
        computed = {row[0]: dict(zip(names, row, strict=True)) for row in warehouse.rows(table, label)}
        assert computed.keys() == {number for number, _, _ in landed}
        start = HOURLY.start_of(label) * 1000
        for number, user, at in landed:
            readable = {
                column: [e for e in of if e.end <= start + HOUR_MS and (longest is None or e.end > start - longest)]
                for column, of in found.items()
            }
            wanted = {f"user_{n}": v for n, v in expected(readable, windows or (None,), at, user).items()}
            if user is None:  # a row without a key has no features
                wanted = dict.fromkeys(wanted)
            row = computed[number]
            assert (row.pop("id"), row.pop("user"), row.pop("ts")) == (number, user, at)
            assert differences(row, wanted) == {}
