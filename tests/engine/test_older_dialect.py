"""The embedded engine computes confs of the older dialect: a staging query, a GroupBy over it and a Join (D1)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.calendar.instants import DAY, TimeWindow, parse_instant
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import JobRequest
from tests.support.command_line import DATA
from tests.support.warehouse import Warehouse

MORNING = parse_instant("2026-06-03")


def written(store: Warehouse, key: str, columns: str) -> list[tuple[object, ...]]:
    """Run a conf of the corpus for the third of June, and read what it wrote."""
    plan = read_conf_root(DATA / "older", environ={}).judge()[key].plan
    assert isinstance(plan, ConfPlan)
    job = JobRequest(
        conf_type=plan.conf.key.conf_type.value,
        name=plan.conf.key.name,
        mode="backfill",
        document=plan.conf.raw,
        path=plan.file,
        table=plan.table,
        spec=plan.spec,
        window=TimeWindow(MORNING, MORNING + DAY),
        inputs=plan.dependencies[Mode.BACKFILL],
        dialect=plan.conf.dialect,
    )
    LocalRunner(warehouse=str(store.root)).run(job, store.log.append)
    files = store.root / plan.table / "ds=2026-06-03" / "*.parquet"
    return sorted(duckdb.sql(f"SELECT {columns} FROM read_parquet('{files}', hive_partitioning = false)").fetchall())


@pytest.fixture
def store(tmp_path: Path) -> Warehouse:
    """Three days of orders, the newest first in amount."""
    store = Warehouse(tmp_path / "warehouse")
    for back, amount in enumerate((1, 10, 100)):
        start = MORNING - back * DAY
        rows = [(1, amount, (start + 60) * 1000), (2, 5, (start + 120) * 1000)]
        day = f"2026-06-{3 - back:02}"
        for table in ("raw.orders", "raw.purchases"):
            store.land(table, {"user_id": "INTEGER", "amount": "BIGINT", "ts": "BIGINT"}, rows, ds=day)
        store.land("raw.users", {"id": "INTEGER", "country": "VARCHAR"}, [(1, "nl"), (2, "de")], ds=day)
    store.land("raw.checkouts", {"user_id": "INTEGER", "ts": "BIGINT"}, [(1, (MORNING + 3600) * 1000)], ds="2026-06-03")
    return store


def test_a_staging_query_writes_its_day(store: Warehouse) -> None:
    found = written(store, "staging_query/checkout.orders.cleaned", "user_id, amount")
    assert found == [(1, 1), (2, 5)]


def test_a_group_by_sums_its_windows(store: Warehouse) -> None:
    found = written(store, "group_by/checkout.purchases.backfilled", '"user", price_sum_3d, price_sum_7d')
    assert found == [(1, 111, 111), (2, 15, 15)]


def test_a_join_takes_the_snapshots_of_the_day_before(store: Warehouse) -> None:
    columns = '"user", checkout_purchases_backfilled_price_sum_3d, checkout_purchases_users_country'
    assert written(store, "join/checkout.training.v1", columns) == [(1, 110, "nl")]
