"""The value of a `triggerExpr` over a table (C19)."""

# ruff: noqa: DTZ001  (columns without a zone are what these tests are about)
from __future__ import annotations

import contextlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.waits.catalog import IllegalExpression
from airflow_chronon.errors import CatalogError
from airflow_chronon.sql.expressions import MODULE

ENDLESS = "(SELECT sum(range % 7) FROM range(1000000000000000)) > 0"
LIMIT = 120  # seconds after which a test that hangs gives up


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


class TestLimits:
    """An expression is evaluated in a process of its own, within a time and a memory of its own (S3)."""

    def catalog(self, tmp_path: Path, **limits) -> FilesystemCatalog:
        folder = tmp_path / "data.checkouts" / "ds=2026-06-01"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"amount": [1]}), folder / "part-0.parquet")
        return FilesystemCatalog(str(tmp_path), **limits)

    def test_what_takes_too_long_is_refused_for_good_the_third_time(self, tmp_path):
        catalog = self.catalog(tmp_path, expression_timeout=1)
        message = "had no value after 1s, which is all that catalog.expression_timeout allows"
        for _ in range(2):
            with pytest.raises(CatalogError, match=message) as caught:
                catalog.evaluate("data.checkouts", ENDLESS)
            assert not isinstance(caught.value, IllegalExpression)
        with pytest.raises(IllegalExpression, match=message):
            catalog.evaluate("data.checkouts", ENDLESS)

    @pytest.mark.parametrize(
        "expression",
        [
            "length(repeat('x', 4000000000))",
            "(SELECT size(collect_list(range)) FROM range(100000000)) > 0",
            "length(repeat('x', 4000000000)) + length(repeat('y', 4000000000))",
        ],
    )
    def test_what_takes_too_much_names_the_setting(self, tmp_path, expression):
        catalog = self.catalog(tmp_path, expression_memory="64MB")
        with pytest.raises(CatalogError, match=r"catalog\.expression_memory") as caught:
            catalog.evaluate("data.checkouts", expression)
        assert "\n" not in str(caught.value) and "64MB" in str(caught.value)

    def test_what_reaches_outside_is_refused_for_good(self, tmp_path):
        with pytest.raises(IllegalExpression, match="read_text stands where a table should"):
            self.catalog(tmp_path).evaluate("data.checkouts", "(SELECT content FROM read_text('/proc/self/environ'))")

    def test_its_process_knows_no_secrets_and_ends_alone(self, tmp_path, monkeypatch):
        monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "hunter2")
        catalog = self.catalog(tmp_path, expression_timeout=LIMIT)
        with ThreadPoolExecutor(1) as threads:
            value = threads.submit(catalog.evaluate, "data.checkouts", ENDLESS)
            process = _child()
            try:
                assert b"hunter2" not in Path(f"/proc/{process}/environ").read_bytes()
            finally:
                os.kill(process, signal.SIGKILL)
            with pytest.raises(CatalogError, match="ended its process by SIGKILL"):
                value.result(LIMIT)


def _child() -> int:
    """The process that evaluates an expression for this one."""
    while True:
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                if parent == str(os.getpid()) and MODULE in (folder / "cmdline").read_text():
                    return int(folder.name)
