"""The catalog ``delta`` over real tables (C16, C18, C20)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.catalogs.delta import DeltaCatalog
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.catalog import IllegalExpression
from airflow_chronon.core.waits.poll import Query, observe
from airflow_chronon.errors import CatalogError, Rejected

LABELS = Query("labels")


def append(root: Path, table: str, rows: list[dict[str, Any]], *partitioned_by: str) -> None:
    write_deltalake(str(root / table), pa.Table.from_pylist(rows), partition_by=list(partitioned_by), mode="append")


@pytest.fixture
def catalog(tmp_path: Path) -> DeltaCatalog:
    return DeltaCatalog(str(tmp_path))


def test_labels_are_those_of_the_present_version_whatever_signs_they_hold(
    tmp_path: Path, catalog: DeltaCatalog
) -> None:
    keys = [("2026-06-01", "05"), ("2026-06-01", "06"), ("2026/06/02 00:00", "a=b%3A"), (None, "07")]
    append(tmp_path, "data.orders", [{"ds": ds, "hr": hr, "v": 1} for ds, hr in keys], "ds", "hr")
    found = catalog.list_partitions("data.orders")
    assert found.labels("ds") == {"2026-06-01", "2026/06/02 00:00"}
    assert found.labels("ds", ("hr=05", "hr=06")) == {"2026-06-01"}  # C20
    DeltaTable(str(tmp_path / "data.orders")).delete("ds = '2026-06-01'")
    assert DeltaCatalog(str(tmp_path)).list_partitions("data.orders").labels("ds") == {"2026/06/02 00:00"}


def test_dates_and_numbers_are_written_as_labels(tmp_path: Path, catalog: DeltaCatalog) -> None:
    append(tmp_path, "data.days", [{"d": date(2026, 6, 1), "n": 20260601, "v": 1}], "d", "n")
    found = catalog.list_partitions("data.days")
    assert found.labels("d") == {"2026-06-01"} and found.labels("n") == {"20260601"}


def test_a_table_that_is_not_there_and_one_without_partitions_are_answers(
    tmp_path: Path, catalog: DeltaCatalog
) -> None:
    assert catalog.list_partitions("data.nothing").state is TableState.MISSING
    (tmp_path / "data.folder").mkdir()
    assert catalog.list_partitions("data.folder").state is TableState.MISSING
    append(tmp_path, "data.flat", [{"v": 1}])
    assert catalog.list_partitions("data.flat").state is TableState.UNPARTITIONED
    with pytest.raises(CatalogError, match="cannot be a folder's name"):
        catalog.list_partitions("../x")


def test_the_newest_value_comes_from_the_log_alone(tmp_path: Path, catalog: DeltaCatalog) -> None:
    for day in (1, 3, 2):
        moment = datetime(2026, 6, day, 7, tzinfo=UTC)
        row = {"ts": moment, "d": moment.date(), "ms": int(moment.timestamp()) * 1000, "name": "x"}
        append(tmp_path, "data.events", [row])
    for path in (tmp_path / "data.events").glob("*.parquet"):
        path.unlink()  # no row is read
    newest = int(datetime(2026, 6, 3, 7, tzinfo=UTC).timestamp())
    assert catalog.newest_value("data.events", "ts") == catalog.newest_value("data.events", "MS") == newest
    assert catalog.newest_value("data.events", "d") == int(datetime(2026, 6, 3, tzinfo=UTC).timestamp())
    with pytest.raises(CatalogError, match="which are no times"):
        catalog.newest_value("data.events", "name")
    with pytest.raises(CatalogError, match="has no column 'when'"):
        catalog.newest_value("data.events", "when")
    assert catalog.newest_value("data.nothing", "ts") is None
    with pytest.raises(IllegalExpression, match="only the log is read"):
        catalog.evaluate("data.events", "max(ts)")


def test_a_table_of_the_same_version_is_not_listed_again(
    tmp_path: Path, catalog: DeltaCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    real = DeltaCatalog.list_partitions

    def counted(self: DeltaCatalog, table: str) -> TableListing:
        listed.append(table)
        return real(self, table)

    monkeypatch.setattr(DeltaCatalog, "list_partitions", counted)
    seen = observe(catalog, "data.orders", [LABELS])
    seen = observe(catalog, "data.orders", [LABELS], seen)
    assert len(listed) == 1
    for day in (1, 2):
        append(tmp_path, "data.orders", [{"ds": f"2026-06-0{day}", "v": 1}], "ds")
        for _ in range(2):
            seen = observe(catalog, "data.orders", [LABELS], seen)
        answer = seen.answers[LABELS]
        assert len(listed) == 1 + day and isinstance(answer, TableListing) and len(answer.labels("ds")) == day


def test_a_broken_log_is_trouble_and_no_empty_listing(tmp_path: Path, catalog: DeltaCatalog) -> None:
    append(tmp_path, "data.orders", [{"ds": "2026-06-01", "v": 1}], "ds")
    for path in (tmp_path / "data.orders" / "_delta_log").glob("*.json"):
        path.write_text("{ no json")
    seen = observe(catalog, "data.orders", [LABELS])
    assert seen.answers == {} and "the Delta catalog does not tell what it holds" in seen.trouble


def test_settings_need_a_root_and_take_options_of_the_store(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="root"):
        build_catalog({"kind": "delta"})
    append(tmp_path, "data.orders", [{"ds": "2026-06-01", "v": 1}], "ds")
    catalog = build_catalog(
        {"kind": "delta", "root": "${LAKE}", "storage_options": {"X": "y"}}, {"LAKE": str(tmp_path)}
    )
    assert catalog.list_partitions("data.orders").labels("ds") == {"2026-06-01"}
