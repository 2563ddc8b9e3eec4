"""A partition that is built again after later data has arrived is the same (C17, C28)."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import parse_instant
from tests.support.warehouse import (
    DAILY,
    HOURLY,
    Warehouse,
    aggregation,
    entities,
    events,
    group_by,
    join,
)

EVENT = {"user": "INTEGER", "ts_ms": "BIGINT", "amount": "DOUBLE", "kind": "VARCHAR"}
SELECTS = {"user": "user", "amount": "amount", "kind": "kind"}
ARGUMENTS = {"k": "3", "percentiles": "[0.5]"}
NUMBERS = [aggregation("amount", op, "1d", "3d", **ARGUMENTS) for op in range(21)]
ALL = [
    *NUMBERS,
    *(aggregation("amount", op, **ARGUMENTS) for op in (2, 3, 7, 9)),
    aggregation("amount", 7, "3d", buckets=["kind"]),
]


def land_day(store: Warehouse, day: int, *, name: str = "a.parquet") -> None:
    """Events of one day, and some that arrive late: their times lie days before."""
    midnight = parse_instant(f"2026-06-{day:02}") * 1000
    rows = [
        (n % 7, midnight - (n % 5 == 0) * 86_400_000 + n * 97_003, n * 0.1 + day / 3, "xyz"[n % 3]) for n in range(400)
    ]
    store.land("data.events", EVENT, rows, name=name, ds=f"2026-06-{day:02}")
    store.land(
        "data.users",
        {"user": "INTEGER", "tier": "VARCHAR"},
        [(u, f"tier {day}") for u in range(7)],
        ds=f"2026-06-{day:02}",
    )
    left = [(u, midnight + hour * 3_600_000) for u in range(7) for hour in (0, 7, 23)]
    store.land("data.left", {"user": "INTEGER", "ts_ms": "BIGINT"}, left, ds=f"2026-06-{day:02}")


def feature_group(**more: Any) -> dict[str, Any]:
    return group_by(events("data.events", selects=SELECTS), aggregations=ALL, **more)


def training_set() -> dict[str, Any]:
    users = group_by(
        entities("data.users", selects={"user": "user", "tier": "tier"}),
        aggregations=None,
        accuracy=None,
        name="t.u__1",
    )
    return join(
        events("data.left", selects={"user": "user", "ts": "ts_ms"}),
        {"groupBy": feature_group(name="t.s__1"), "prefix": "day"},
        {"groupBy": feature_group(name="t.t__1", accuracy=0), "prefix": "now"},
        {"groupBy": users, "prefix": "who"},
    )


@pytest.mark.parametrize("document", [feature_group(), training_set()], ids=["group_by", "join"])
def test_a_replay_after_later_partitions_have_landed_gives_the_same_rows(store: Warehouse, document: Any) -> None:
    for day in (1, 2, 3, 4):
        land_day(store, day)
    table = store.run(document, "2026-06-04", "2026-06-05")
    first = store.rows(table, "2026-06-04")
    for day in (5, 6):
        land_day(store, day)
    store.run(document, "2026-06-04", "2026-06-05")
    assert store.rows(table, "2026-06-04") == first and len(first) >= 7


@pytest.mark.parametrize("document", [feature_group(), training_set()], ids=["group_by", "join"])
def test_a_run_over_a_range_gives_what_runs_of_one_partition_give(store: Warehouse, document: Any) -> None:  # C9
    for day in (1, 2, 3, 4, 5):
        land_day(store, day)
    table = store.run(document, "2026-06-03", "2026-06-06")
    labels = ["2026-06-03", "2026-06-04", "2026-06-05"]
    at_once = {label: store.rows(table, label) for label in labels}
    for day in (5, 3, 4):
        store.run(document, f"2026-06-{day:02}", f"2026-06-{day + 1:02}")
    assert {label: store.rows(table, label) for label in labels} == at_once


def test_files_that_differ_in_their_columns_are_united_when_a_column_is_missing(store: Warehouse) -> None:
    at = parse_instant("2026-06-01T10:00") * 1000
    store.land("data.events", {"user": "INTEGER", "ts_ms": "BIGINT", "amount": "BIGINT"}, [(1, at, 5)], ds="2026-06-01")
    store.land("data.events", {"user": "INTEGER", "ts_ms": "BIGINT"}, [(1, at + 86_400_000)], ds="2026-06-02")
    document = group_by(
        events("data.events", selects={"user": "user", "amount": "amount"}), aggregations=[aggregation("amount", 7)]
    )
    table = store.run(document, "2026-06-02", "2026-06-03")
    assert store.rows(table, "2026-06-02") == [(1, 5)]


def test_lag_and_cut_offs_move_and_clip_what_is_read(store: Warehouse) -> None:  # C16
    hour = {"user": "INTEGER", "ts_ms": "BIGINT", "amount": "BIGINT"}
    for n in range(6):
        at = parse_instant(f"2026-06-01T{n:02}:30") * 1000
        store.land("data.events", hour, [(1, at, 10**n)], ds=f"2026-06-01-{n:02}-00")

    def total(**query: Any) -> int:
        source = events("data.events", HOURLY, selects={"user": "user", "amount": "amount"}, **query)
        document = group_by(source, aggregations=[aggregation("amount", 7)], spec=HOURLY)
        table = store.run(document, "2026-06-01T04:00", "2026-06-01T05:00", spec=HOURLY)
        return store.rows(table, "2026-06-01-04-00", "amount_sum")[0][0]

    assert total() == 11_111
    assert total(partitionLag={"length": 2, "timeUnit": 0}) == 111
    assert total(startPartition="2026-06-01-01-00") == 11_110
    assert total(startPartition="2026-06-01-01-00", endPartition="2026-06-01-03-00") == 1_110
    assert total(wheres=["amount < 100 OR amount > 1000"]) == 10_011


def test_a_cumulative_table_and_a_snapshot_are_read_at_their_newest_partition(store: Warehouse) -> None:  # C16
    columns = {"user": "INTEGER", "ts_ms": "BIGINT", "amount": "BIGINT"}
    rows = [(1, parse_instant(f"2026-06-0{day}T10:00") * 1000, 10**day) for day in (1, 2, 3)]
    for day in (1, 2, 3):
        store.land("data.all", columns, rows[:day], ds=f"2026-06-0{day}")
    cumulative = events("data.all", selects={"user": "user", "amount": "amount"})
    cumulative["events"]["isCumulative"] = 1
    snapshot = entities("data.all", selects={"user": "user", "amount": "amount"})
    for source in (cumulative, snapshot):
        document = group_by(source, aggregations=[aggregation("amount", 7)], accuracy=1)
        table = store.run(document, "2026-06-02", "2026-06-03")
        assert store.rows(table, "2026-06-02") == [(1, 110)]


def test_several_sources_are_one(store: Warehouse) -> None:
    columns = {"who": "INTEGER", "ts_ms": "BIGINT", "cents": "BIGINT"}
    at = parse_instant("2026-06-02T10:00") * 1000
    store.land("data.old", columns, [(1, at - 86_400_000, 1)], ds="2026-06-01")
    store.land("data.old", columns, [(1, at, 1000)], ds="2026-06-02")
    store.land("data.new", columns, [(1, at, 20)], ds="2026-06-02")
    selects = {"user": "who", "amount": "cents"}
    document = group_by(
        events("data.old", selects=selects, endPartition="2026-06-01"),
        events("data.new", selects=selects, startPartition="2026-06-02"),
        aggregations=[aggregation("amount", 7), aggregation("amount", 6, "1d")],
    )
    table = store.run(document, "2026-06-02", "2026-06-03")
    assert store.rows(table, "2026-06-02", "user", "amount_sum", "amount_count_1d") == [(1, 21, 1)]


def test_a_time_partitioned_source_is_cut_by_its_own_times(store: Warehouse) -> None:  # C18
    columns = {"user": "INTEGER", "at": "TIMESTAMP", "amount": "BIGINT"}
    days = ["2026-06-01 10:00:00", "2026-06-02 00:00:00", "2026-06-03 00:00:00"]
    store.land(
        "data.stream",
        {name if name != "at" else '"at"': kind for name, kind in columns.items()},
        [(1, day, 10**n) for n, day in enumerate(days)],
    )
    source = events(
        "data.stream",
        time="UNIX_MILLIS(`at`)",
        selects={"user": "user", "amount": "amount"},
        partitionColumn="at",
        timePartitioned=1,
    )
    table = store.run(group_by(source, aggregations=[aggregation("amount", 7)]), "2026-06-01", "2026-06-03")
    assert store.rows(table, "2026-06-01") == [(1, 1)]
    assert store.rows(table, "2026-06-02") == [(1, 11)]


def test_a_group_by_reads_the_output_of_a_join(store: Warehouse) -> None:
    for day in (1, 2):
        land_day(store, day)
    inner = join(
        events("data.left", selects={"user": "user", "ts": "ts_ms"}),
        {
            "groupBy": group_by(
                events("data.events", selects=SELECTS), aggregations=[aggregation("amount", 6)], name="t.inner__1"
            )
        },
    )
    store.run(inner, "2026-06-01", "2026-06-03")
    source = {
        "joinSource": {
            "join": inner,
            "query": {"timeColumn": "ts", "selects": {"user": "user", "seen": "user_amount_count"}},
        }
    }
    outer = group_by(source, aggregations=[aggregation("seen", 1)], name="team.outer__1", accuracy=1)
    table = store.run(outer, "2026-06-02", "2026-06-03", spec=DAILY)
    assert [row[0] for row in store.rows(table, "2026-06-02", "user")] == list(range(7))
    assert all(row[0] > 0 for row in store.rows(table, "2026-06-02", "seen_max"))
