"""The value of a `triggerExpr` over a table (C19)."""

# ruff: noqa: DTZ001  (columns without a zone are what these tests are about)
from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.errors import CatalogError


@pytest.fixture
def catalog(tmp_path: Path) -> FilesystemCatalog:
    for label, rows in (("2026-06-01-01-00", 2), ("2026-06-01-04-00", 1)):
        folder = tmp_path / "data.checkouts" / f"ds={label}"
        folder.mkdir(parents=True)
        columns = {
            "amount": pa.array(range(rows), pa.int64()),
            "day": [date(2026, 6, 1)] * rows,
            "ts": [datetime(2026, 6, 1, 4)] * rows,
        }
        pq.write_table(pa.table(columns), folder / "part-0.parquet")
    return FilesystemCatalog(str(tmp_path))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("count(*) > 2", True),
        ("count(*) > 3", False),
        ("max(ds)", "2026-06-01-04-00"),
        ("count(DISTINCT ds)", 2),
        ("sum(amount)", 1),
        ("max(day)", "2026-06-01"),
        ("max(ts)", "2026-06-01T04:00:00Z"),
        ("date_format(max(ts), 'yyyy-MM-dd-HH-mm')", "2026-06-01-04-00"),
        ("avg(amount)", 1 / 3),
        ("max(CASE WHEN amount > 99 THEN ds END)", None),
        ("true", True),
    ],
)
def test_spark_expressions_are_evaluated_over_the_folders(catalog, expression, value):
    answer = catalog.evaluate("data.checkouts", expression)
    assert answer == pytest.approx(value) if isinstance(value, float) else answer == value
    assert type(answer) is type(value)


def test_a_missing_table_has_no_value(catalog):
    assert catalog.evaluate("data.nothing", "max(ds)") is None


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("ds", "'ds' has another value in every row"),
        ("max(nothing)", "cannot be evaluated: Binder Error"),
        ("max(ds", "the SQL does not parse at line 1"),
        ("1; DROP TABLE x", "exactly one SQL statement|does not parse"),
    ],
)
def test_a_bad_expression_is_one_sentence_with_the_table(catalog, expression, message):
    with pytest.raises(CatalogError, match=message) as caught:
        catalog.evaluate("data.checkouts", expression)
    assert str(caught.value).startswith("data.checkouts: ") and "\n" not in str(caught.value)


def test_a_remote_root_is_refused_in_one_sentence():
    with pytest.raises(
        CatalogError, match="cannot be evaluated over the root 'memory://x', which is not on this machine"
    ):
        FilesystemCatalog("memory://x").evaluate("t", "max(ds)")


def test_a_missing_package_names_the_extra(catalog, mocker):
    mocker.patch.dict("sys.modules", {"duckdb": None})
    with pytest.raises(CatalogError, match=r"'duckdb', which is not installed.*pip install 'airflow-chronon\[local\]'"):
        catalog.evaluate("data.checkouts", "max(ds)")
