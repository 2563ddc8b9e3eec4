"""Uploads: one row per key, then the store, which serves one whole partition at a time."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import parse_instant
from airflow_chronon.errors import JobFailed, JobRefused
from tests.support.warehouse import Warehouse, aggregation, entities, events, group_by, join

EVENT = {"user": "INTEGER", "ts_ms": "BIGINT", "amount": "BIGINT"}
NAME = "team.features.all__1"
FEATURES = group_by(
    events("data.events", selects={"user": "user", "amount": "amount"}),
    aggregations=[aggregation("amount", 7, "1d"), aggregation("amount", 10, "1d")],
)


@pytest.fixture
def landed(store: Warehouse) -> Warehouse:
    return land(store)


def land(store: Warehouse) -> Warehouse:
    for day in (1, 2):
        at = parse_instant(f"2026-06-0{day}T10:00") * 1000
        store.land("data.events", EVENT, [(user, at, user * 10**day) for user in range(day, 3)], ds=f"2026-06-0{day}")
    return store


def upload(store: Warehouse, day: int, **runner: Any) -> None:
    for mode in ("upload", "upload_to_kv"):
        store.run(FEATURES, f"2026-06-0{day}", f"2026-06-0{day + 1}", mode=mode, **runner)


def served(path: Path) -> dict[str, Any]:
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT key_json, value_json FROM features WHERE dataset = ?", [NAME]).fetchall()
    return {key: json.loads(value)["amount_sum_1d"] for key, value in found}


def test_an_upload_holds_one_row_per_key_as_json(landed: Warehouse) -> None:
    upload(landed, 1)
    table = "out.team_features_all__1__upload"
    assert landed.columns(table, "2026-06-01") == ["user", "key_json", "value_json"]
    # the skew of one value is not a number, which JSON has no word for
    assert landed.rows(table, "2026-06-01")[0] == (1, '{"user":1}', '{"amount_sum_1d":10,"amount_skew_1d":null}')


def test_a_warehouse_named_like_a_pattern_is_not_mixed_with_those_that_match_it(tmp_path: Path) -> None:
    other, store = land(Warehouse(tmp_path / "w2")), land(Warehouse(tmp_path / "w*"))
    upload(other, 1)
    upload(store, 1)
    assert served(store.root / "_kv" / "features.sqlite") == {'{"user":1}': 10, '{"user":2}': 20}


def test_the_store_serves_the_newest_partition_whole(landed: Warehouse) -> None:
    path = landed.root / "_kv" / "features.sqlite"
    upload(landed, 1)
    assert served(path) == {'{"user":1}': 10, '{"user":2}': 20}
    upload(landed, 2)
    assert served(path) == {'{"user":2}': 200}  # who is in no partition any more is not served


def test_an_older_partition_never_replaces_a_newer_one(landed: Warehouse) -> None:
    path = landed.root / "_kv" / "features.sqlite"
    upload(landed, 2)
    upload(landed, 1)
    assert served(path) == {'{"user":2}': 200}
    assert "newer than 2026-06-01: nothing to do" in landed.log[-1]
    upload(landed, 2)  # again: the same
    assert served(path) == {'{"user":2}': 200}


def test_the_stores_place_is_a_setting(landed: Warehouse, tmp_path: Path) -> None:
    upload(landed, 1, kv_store=str(tmp_path / "elsewhere" / "kv.sqlite"))
    assert len(served(tmp_path / "elsewhere" / "kv.sqlite")) == 2
    assert not (landed.root / "_kv").exists()


def test_without_the_upload_there_is_nothing_to_put(landed: Warehouse) -> None:
    with pytest.raises(JobRefused, match=r"upload has no partition ds=2026-06-01.*let the upload write it first|.*Let"):
        landed.run(FEATURES, "2026-06-01", "2026-06-02", mode="upload_to_kv")


def test_writers_wait_for_each_other(landed: Warehouse) -> None:
    for day in (1, 2):
        landed.run(FEATURES, f"2026-06-0{day}", f"2026-06-0{day + 1}", mode="upload")
    failures: list[BaseException] = []

    def put(day: int) -> None:
        try:
            landed.run(FEATURES, f"2026-06-0{day}", f"2026-06-0{day + 1}", mode="upload_to_kv")
        except BaseException as error:  # shown below
            failures.append(error)

    threads = [threading.Thread(target=put, args=(day,)) for day in (1, 2, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert served(landed.root / "_kv" / "features.sqlite") == {'{"user":2}': 200}


def test_a_join_uploads_what_it_is_made_of(landed: Warehouse) -> None:
    document = join(events("data.events", selects={"user": "user", "ts": "ts_ms"}), {"groupBy": FEATURES})
    landed.run(document, "2026-06-01", "2026-06-02", mode="metadata_upload")
    with sqlite3.connect(landed.root / "_kv" / "features.sqlite") as connection:
        found = connection.execute("SELECT dataset, document FROM metadata").fetchall()
    assert [(name, json.loads(text)) for name, text in found] == [("team.training.set__1", document)]


def test_two_rows_for_a_key_are_no_upload(store: Warehouse) -> None:
    store.land("data.users", {"user": "INTEGER", "tier": "VARCHAR"}, [(1, "a"), (1, "b")], ds="2026-06-01")
    document = group_by(
        entities("data.users", selects={"user": "user", "tier": "tier"}), aggregations=None, accuracy=None
    )
    with pytest.raises(JobFailed, match="two rows for one key"):
        store.run(document, "2026-06-01", "2026-06-02", mode="upload")
