"""The catalog ``iceberg`` over real tables (C16, C18, C20)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.catalogs.iceberg import IcebergCatalog
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.catalog import IllegalExpression
from airflow_chronon.core.waits.poll import Query, observe
from airflow_chronon.errors import CatalogError, Rejected
from tests.support.iceberg import IcebergLake

TEXTS = pa.schema({"ds": pa.string(), "hr": pa.string(), "v": pa.int64()})
TIMES = pa.schema({"ts": pa.timestamp("us"), "d": pa.date32(), "v": pa.int64()})
LABELS = Query("labels")


def local(day: int, hour: int) -> datetime:
    """A time without a zone, as the column holds them."""
    return datetime(2026, 6, day, hour, 59, tzinfo=UTC).replace(tzinfo=None)


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


@pytest.fixture
def catalog(lake: IcebergLake) -> IcebergCatalog:
    return IcebergCatalog(lake.properties)


def test_a_table_of_text_partitions_gives_its_labels_whatever_signs_they_hold(
    lake: IcebergLake, catalog: IcebergCatalog
) -> None:
    lake.create("data.orders", TEXTS, {"ds": "identity", "hr": "identity"})
    assert catalog.list_partitions("data.orders") == TableListing(TableState.PARTITIONED)
    rows = [
        ("2026-06-01", "05"),
        ("2026-06-01", "06"),
        ("2026/06/02 00:00", "a=b%3A"),
        (None, "07"),
        ("2026-06-03", None),
    ]
    lake.append("data.orders", [{"ds": ds, "hr": hr, "v": 1} for ds, hr in rows])
    found = catalog.list_partitions("data.orders")
    assert found.state is TableState.PARTITIONED
    assert found.labels("ds") == {"2026-06-01", "2026/06/02 00:00"}  # what is null is no partition
    assert found.labels("ds", ("hr=05", "hr=06")) == {"2026-06-01"}  # C20


def test_times_become_the_labels_of_their_grid_under_the_names_of_field_and_column(
    lake: IcebergLake, catalog: IcebergCatalog
) -> None:
    lake.create("data.clicks", TIMES, {"ts": "hour"})
    lake.append("data.clicks", [{"ts": local(1, 5), "d": date(2026, 6, 1), "v": 1}])
    found = catalog.list_partitions("data.clicks")
    assert found.labels("ts_hour") == found.labels("ts") == {"2026-06-01-05-00"}
    other = IcebergCatalog(lake.properties, label_format="yyyyMMddHH")
    assert other.list_partitions("data.clicks").labels("ts") == {"2026060105"}

    for number, (transform, label) in enumerate([("day", "2026-06-01"), ("month", "2026-06"), ("year", "2026")]):
        table = f"data.clicks{number}"
        lake.create(table, TIMES, {"ts": transform, "d": "identity"})
        lake.append(table, [{"ts": local(1, 5), "d": date(2026, 6, 1), "v": 1}])
        assert catalog.list_partitions(table).labels("ts") == {label}
        assert catalog.list_partitions(table).labels("d") == {"2026-06-01"}


def test_a_partition_is_gone_with_its_last_row_and_stays_when_the_spec_changes(
    lake: IcebergLake, catalog: IcebergCatalog
) -> None:
    lake.create("data.orders", TEXTS, {"ds": "identity"})
    lake.append("data.orders", [{"ds": f"2026-06-0{day}", "hr": "1", "v": 1} for day in (1, 2)])
    table = lake.catalog.load_table("data.orders")
    table.delete("ds = '2026-06-01'")
    assert catalog.list_partitions("data.orders").labels("ds") == {"2026-06-02"}
    with table.refresh().update_spec() as spec:
        spec.add_identity("hr")
    lake.append("data.orders", [{"ds": "2026-06-03", "hr": "2", "v": 1}])
    found = catalog.list_partitions("data.orders")
    assert found.labels("ds") == {"2026-06-02", "2026-06-03"} and found.labels("hr") == {"2"}


def test_a_table_that_is_not_there_is_an_answer_and_one_without_partitions_too(
    lake: IcebergLake, catalog: IcebergCatalog
) -> None:
    lake.create("data.flat", TEXTS, {})
    assert catalog.list_partitions("data.flat").state is TableState.UNPARTITIONED
    for table in ("data.nothing", "nowhere.nothing"):
        assert catalog.list_partitions(table).state is TableState.MISSING
        assert catalog.newest_value(table, "ts") is None
    with pytest.raises(CatalogError, match="named without a namespace"):
        catalog.list_partitions("orders")


def test_the_newest_value_comes_from_metadata_alone(lake: IcebergLake, catalog: IcebergCatalog) -> None:
    lake.create("data.events", TIMES, {})
    assert catalog.newest_value("data.events", "ts") is None
    for day in (1, 3, 2):
        lake.append("data.events", [{"ts": local(day, 7), "d": date(2026, 6, day), "v": day * 86_400_000}])
    for path in (lake.folder / "lake").rglob("*.parquet"):
        path.unlink()  # no row is read
    assert catalog.newest_value("data.events", "ts") == int(datetime(2026, 6, 3, 7, 59, tzinfo=UTC).timestamp())
    assert catalog.newest_value("data.events", "d") == int(datetime(2026, 6, 3, tzinfo=UTC).timestamp())
    assert catalog.newest_value("data.events", "V") == 3 * 86_400  # C18: milliseconds
    with pytest.raises(CatalogError, match=r"has no column 'when'.*Its columns are ts, d, v"):
        catalog.newest_value("data.events", "when")


def test_a_column_that_holds_no_times_and_an_expression_are_refused_in_a_sentence(
    lake: IcebergLake, catalog: IcebergCatalog
) -> None:
    lake.create("data.orders", TEXTS, {"ds": "identity"})
    lake.append("data.orders", [{"ds": "2026-06-01", "hr": "1", "v": 1}])
    with pytest.raises(CatalogError, match="which are no times"):
        catalog.newest_value("data.orders", "ds")
    with pytest.raises(IllegalExpression, match="only metadata are read"):
        catalog.evaluate("data.orders", "max(ds)")


def test_an_unchanged_table_is_not_listed_again(lake: IcebergLake, catalog: IcebergCatalog, monkeypatch: Any) -> None:
    lake.create("data.orders", TEXTS, {"ds": "identity"})
    listed: list[str] = []
    real = IcebergCatalog.list_partitions

    def counted(self: IcebergCatalog, table: str) -> TableListing:
        listed.append(table)
        return real(self, table)

    monkeypatch.setattr(IcebergCatalog, "list_partitions", counted)
    seen = observe(catalog, "data.orders", [LABELS])
    for _ in range(3):
        seen = observe(catalog, "data.orders", [LABELS], seen)
    assert len(listed) == 1
    lake.append("data.orders", [{"ds": "2026-06-01", "hr": "1", "v": 1}])
    seen = observe(catalog, "data.orders", [LABELS], seen)
    answer = seen.answers[LABELS]
    assert len(listed) == 2 and isinstance(answer, TableListing) and answer.labels("ds") == {"2026-06-01"}


def test_a_table_that_comes_to_be_and_one_that_goes_are_seen(lake: IcebergLake, catalog: IcebergCatalog) -> None:
    seen = observe(catalog, "data.orders", [LABELS])
    seen = observe(catalog, "data.orders", [LABELS], seen)
    lake.create("data.orders", TEXTS, {"ds": "identity"})
    lake.append("data.orders", [{"ds": "2026-06-01", "hr": "1", "v": 1}])
    seen = observe(catalog, "data.orders", [LABELS], seen)
    assert seen.answers[LABELS].labels("ds") == {"2026-06-01"}  # type: ignore[union-attr]
    lake.catalog.drop_table("data.orders")
    seen = observe(catalog, "data.orders", [LABELS], seen)
    assert seen.answers[LABELS].state is TableState.MISSING  # type: ignore[union-attr]


def test_a_catalog_that_does_not_answer_is_trouble_and_no_empty_listing(tmp_path: Path) -> None:
    settings = {"kind": "iceberg", "properties": {"type": "sql", "uri": "sqlite:////nowhere/${SECRET}.db"}}
    seen = observe(build_catalog(settings, {"SECRET": "hush-hush-1"}), "data.orders", [LABELS])
    assert seen.answers == {} and "the Iceberg catalog does not tell what it holds" in seen.trouble
    assert "hush-hush-1" not in seen.trouble  # S4


def test_settings_name_a_connection_and_properties_and_nothing_else() -> None:
    with pytest.raises(Rejected, match="root"):
        build_catalog({"kind": "iceberg", "root": "x"})
    for wrong in ("hourly", "yyyy", "", 5):
        with pytest.raises(Rejected, match="label_format"):
            build_catalog({"kind": "iceberg", "label_format": wrong})
    catalog = build_catalog({"kind": "iceberg", "connection": "lake"})
    with pytest.raises(CatalogError, match=r"there is no connection 'lake' in this shell.*Set AIRFLOW_CONN_LAKE"):
        catalog.list_partitions("data.orders")


def test_a_connection_gives_what_the_settings_do_not_and_no_message_tells_its_secrets(lake: IcebergLake) -> None:
    lake.create("data.orders", TEXTS, {"ds": "identity"})
    lake.append("data.orders", [{"ds": "2026-06-01", "hr": "1", "v": 1}])
    extra = {"type": "sql", "warehouse": lake.properties["warehouse"]}
    text = json.dumps({"conn_type": "iceberg", "host": lake.properties["uri"], "extra": extra})
    catalog = build_catalog({"kind": "iceberg", "connection": "lake"}, {"AIRFLOW_CONN_LAKE": text})
    assert catalog.list_partitions("data.orders").labels("ds") == {"2026-06-01"}

    broken = json.dumps(
        {
            "conn_type": "iceberg",
            "host": "sqlite:////nowhere/pass-word-77.db",
            "password": "pass-word-77",
            "extra": extra,
        }
    )
    catalog = build_catalog({"kind": "iceberg", "connection": "lake"}, {"AIRFLOW_CONN_LAKE": broken})
    with pytest.raises(CatalogError) as error:
        catalog.list_partitions("data.orders")
    assert "pass-word-77" not in str(error.value)
