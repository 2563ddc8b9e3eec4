"""Every staging query of the sample shop, translated and run by DuckDB over generated source data."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from shop_data import CUSTOMERS, VISITS_PER_DAY, write_source_data

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant, from_datetime
from tests.support.shop_runs import Row, StagingQuery, land, run, staging_queries

NOW = datetime(2026, 6, 2, 12, 20, tzinfo=UTC)
QUERIES = {query.name: query for query in staging_queries()}

#: For queries that keep a row's own time: the column that must lie inside the partition of the row's label.
TIMES = {
    "commerce.orders.hourly__1": "ordered_at",
    "commerce.orders.three_hourly__1": "last_ordered_at",
    "commerce.orders.daily__1": "ordered_at",
    "commerce.payments.quarter_hourly__1": "paid_at",
    "growth.visits.weekly__1": "last_visited_at",
}


def landed_range(query: StagingQuery) -> tuple[Instant, Instant]:
    """The last whole partitions before NOW, several of each grid, for which all source data is there."""
    grid = query.spec.grid
    partitions = {15 * MINUTE: 9, HOUR: 48, 3 * HOUR: 8}.get(grid.interval, 7 if "visits" in query.name else 2)
    end = grid.floor(from_datetime(NOW))
    return end - partitions * grid.interval, end


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Source data, and on top of it every staging query's table."""
    folder = tmp_path_factory.mktemp("warehouse")
    write_source_data(warehouse=folder, now=NOW)
    for query in QUERIES.values():
        start, end = landed_range(query)
        land(query, warehouse=folder, start=start, end=end)
    return folder


def in_any_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def total(rows: list[Row], column: str) -> int:
    return sum(row[column] for row in rows)


@pytest.mark.parametrize("name", QUERIES)
def test_a_run_over_a_range_gives_rows_for_each_of_its_labels_and_for_no_other(name: str, warehouse: Path) -> None:
    query = QUERIES[name]
    start, end = landed_range(query)
    # Data lies after the range, and before it where it is long enough: a query without a bound would show.
    step = query.spec.grid.interval
    inner = range(start, end, step)[1:-1] or range(start, end - step, step)
    result = run(query, warehouse=warehouse, start=inner[0], end=inner[-1] + step)
    assert {row["ds"] for row in result} == set(query.spec.labels(inner[0], inner[-1] + step))


@pytest.mark.parametrize("name", QUERIES)
def test_runs_of_one_partition_together_give_what_a_run_over_the_range_gives(name: str, warehouse: Path) -> None:
    query = QUERIES[name]
    start, end = landed_range(query)
    step = query.spec.grid.interval
    at_once = run(query, warehouse=warehouse, start=start, end=end)
    one_by_one = [
        row for at in range(start, end, step) for row in run(query, warehouse=warehouse, start=at, end=at + step)
    ]
    assert in_any_order(one_by_one) == in_any_order(at_once)


@pytest.mark.parametrize("name", TIMES)
def test_each_row_lies_in_the_partition_of_its_label(name: str, warehouse: Path) -> None:  # C8
    query = QUERIES[name]
    start, end = landed_range(query)
    for row in run(query, warehouse=warehouse, start=start, end=end):
        begin = query.spec.start_of(row["ds"])
        assert begin <= from_datetime(row[TIMES[name]]) < begin + query.spec.grid.interval


@pytest.mark.parametrize("name", QUERIES)
def test_no_row_gets_lost_or_doubled_on_the_way(name: str, warehouse: Path) -> None:
    query = QUERIES[name]
    start, end = landed_range(query)
    result = run(query, warehouse=warehouse, start=start, end=end)
    days = (end - start) // DAY

    def source(table: str, at: str) -> list[Row]:
        landed = pq.read_table(warehouse / table, partitioning=None).to_pylist()
        return [row for row in landed if start <= from_datetime(row[at]) < end and row.get("quantity") != 0]

    match name:
        case "commerce.orders.hourly__1" | "commerce.orders.daily__1":
            expected = [row["order_id"] for row in source("shop.orders", "ordered_at")]
            assert sorted(row["order_id"] for row in result) == sorted(expected)
        case "commerce.orders.three_hourly__1":
            assert total(result, "orders") == len(source("shop.orders", "ordered_at"))
            assert total(result, "amount_cents") == total(source("shop.orders", "ordered_at"), "amount_cents")
        case "commerce.payments.quarter_hourly__1":
            expected = [row["payment_id"] for row in source("shop.payments", "paid_at")]
            assert sorted(row["payment_id"] for row in result) == sorted(expected)
        case "growth.customers.daily__1":
            assert len(result) == CUSTOMERS * days
        case "growth.customers.spend__1":
            assert len(result) == CUSTOMERS * days
            assert total(result, "amount_cents") == total(source("shop.orders", "ordered_at"), "amount_cents")
        case "growth.visits.weekly__1":
            assert total(result, "visits") == VISITS_PER_DAY * days
        case "growth.visits.trailing_week__1":  # C16: the six days before the run's first one are read too
            assert total(result, "visits") == VISITS_PER_DAY * 7 * days
        case _:
            pytest.fail(f"say here what {name} must keep")
