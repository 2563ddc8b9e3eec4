"""Columns carry the names that the real compiler lists in `columnHashes`.

`tests/data/features/repo` was compiled by zipline-ai 1.28.0 into `compiled` beside it: every operation, arguments, buckets,
filters, derivations, key mappings, prefixes and long names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import parse_instant
from tests.support.warehouse import Warehouse

COMPILED = Path(__file__).resolve().parents[2] / "data" / "features" / "compiled"
EVENT = {"user": "INTEGER", "ts_ms": "BIGINT", "amount": "BIGINT", "kind": "VARCHAR"}


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    warehouse = Warehouse(tmp_path_factory.mktemp("warehouse"))
    for day in (1, 2):
        at = parse_instant(f"2026-06-0{day}T10:00") * 1000
        rows = [(user, at + user, user * 10, "ab"[user % 2]) for user in range(4)]
        warehouse.land("data.events", EVENT, rows, ds=f"2026-06-0{day}")
        warehouse.land("data.users", {"user": "INTEGER", "tier": "VARCHAR"}, [(1, "gold")], ds=f"2026-06-0{day}")
        left = {"order_id": "VARCHAR", "user": "INTEGER", "seller": "INTEGER", "kind": "VARCHAR", "ts_ms": "BIGINT"}
        warehouse.land("data.left", left, [("o1", 1, 2, "b", at + 3_600_000)], ds=f"2026-06-0{day}")
    return warehouse


def document(path: str) -> dict[str, Any]:
    found = json.loads((COMPILED / path).read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", sorted(path.name for path in (COMPILED / "group_bys" / "team").iterdir()))
def test_a_group_by_writes_the_columns_that_the_compiler_lists(landed: Warehouse, name: str) -> None:
    conf = document(f"group_bys/team/{name}")
    table = landed.run(conf, "2026-06-02", "2026-06-03")
    assert set(landed.columns(table, "2026-06-02")) == set(conf["metaData"]["columnHashes"])


@pytest.mark.parametrize("name", ["short", "long"])
def test_a_join_writes_the_columns_that_the_compiler_lists(landed: Warehouse, name: str) -> None:
    conf = document(f"joins/team/training.{name}__1")
    table = landed.run(conf, "2026-06-02", "2026-06-03")
    assert set(landed.columns(table, "2026-06-02")) == set(conf["metaData"]["columnHashes"])
    assert len(landed.rows(table, "2026-06-02")) == 1


def test_a_join_with_derivations_writes_two_tables(landed: Warehouse) -> None:
    conf = document("joins/team/training.derived__1")
    table = landed.run(conf, "2026-06-02", "2026-06-03")
    listed = set(conf["metaData"]["columnHashes"])
    assert set(landed.columns(f"{table}__derived", "2026-06-02")) == listed
    assert set(landed.columns(table, "2026-06-02")) == listed - {"share"}
