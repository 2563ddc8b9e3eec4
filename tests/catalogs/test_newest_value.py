"""The newest value of a time column, from Parquet footers (C18)."""

# ruff: noqa: DTZ001  (columns without a zone are what these tests are about)
from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_chronon.catalogs import newest
from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.calendar.instants import parse_instant
from airflow_chronon.errors import CatalogError

NOON, LATER = datetime(2026, 6, 1, 12), datetime(2026, 6, 1, 15, 30, 0, 999_000)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(
            pa.array([NOON, LATER], pa.timestamp("us")), "2026-06-01T15:30:00Z", id="timestamp without zone is UTC"
        ),
        pytest.param(pa.array([LATER, NOON], pa.timestamp("ms", "Asia/Tokyo")), "2026-06-01T15:30:00Z", id="zoned"),
        pytest.param(pa.array([NOON, None], pa.timestamp("ns")), "2026-06-01T12:00:00Z", id="nanoseconds and a null"),
        pytest.param(pa.array([NOON, LATER], pa.timestamp("s")), "2026-06-01T15:30:00Z", id="seconds"),
        pytest.param(pa.array([date(2026, 6, 1), date(2026, 5, 1)]), "2026-06-01T00:00:00Z", id="date is its midnight"),
        pytest.param(pa.array([1_780_315_200_999, 5]), "2026-06-01T12:00:00Z", id="integer is epoch milliseconds"),
    ],
)
@pytest.mark.parametrize("statistics", [True, False], ids=["from statistics", "from the column"])
def test_the_parquet_type_decides_what_a_value_means(root, parquet, values, expected, statistics):  # C18
    parquet("t/part-0.parquet", {"event_ts": values}, write_statistics=statistics)
    assert FilesystemCatalog(root).newest_value("t", "event_ts") == parse_instant(expected)


def test_old_style_timestamps_are_read_from_the_column(root, parquet):
    parquet("t/part-0.parquet", {"ts": pa.array([NOON, LATER])}, use_deprecated_int96_timestamps=True)
    assert FilesystemCatalog(root).newest_value("t", "ts") == parse_instant("2026-06-01T15:30:00Z")


def test_the_newest_of_all_files_and_row_groups_counts(root, parquet):
    parquet("t/ds=1/a.parquet", {"ts": pa.array([LATER, NOON, NOON])}, row_group_size=1)
    parquet("t/ds=2/b.parquet", {"ts": pa.array([NOON])})
    parquet("t/_temporary/c.parquet", {"ts": pa.array([datetime(2030, 1, 1)])})
    assert FilesystemCatalog(root).newest_value("t", "ts") == parse_instant("2026-06-01T15:30:00Z")


def test_there_is_no_newest_value_without_data(root, parquet):
    catalog = FilesystemCatalog(root)
    assert catalog.newest_value("t", "ts") is None
    parquet("t/a.parquet", {"ts": pa.array([None, None], pa.timestamp("us"))})
    parquet("t/b.parquet", {"ts": pa.array([], pa.timestamp("us"))})
    assert catalog.newest_value("t", "ts") is None


def test_a_poll_reads_only_files_that_are_new_or_changed(root, parquet, mocker):
    catalog = FilesystemCatalog(root)
    parquet("t/a.parquet", {"ts": pa.array([NOON])})
    parquet("t/b.parquet", {"ts": pa.array([NOON])})
    read = mocker.spy(newest, "newest_in_file")
    mocker.patch("airflow_chronon.catalogs.filesystem.newest_in_file", read)
    catalog.newest_value("t", "ts")
    catalog.newest_value("t", "ts")
    assert read.call_count == 2
    parquet("t/c.parquet", {"ts": pa.array([LATER])})
    parquet("t/a.parquet", {"ts": pa.array([NOON, NOON, NOON])})
    assert catalog.newest_value("t", "ts") == parse_instant("2026-06-01T15:30:00Z")
    assert sorted(call.kwargs["place"] for call in read.call_args_list[2:]) == ["a.parquet", "c.parquet"]


def test_a_file_that_is_gone_no_longer_counts(tmp_path: Path):
    (tmp_path / "t").mkdir()
    for name, value in (("a", NOON), ("b", LATER)):
        pq.write_table(pa.table({"ts": [value]}), tmp_path / "t" / f"{name}.parquet")
    catalog = FilesystemCatalog(str(tmp_path))
    catalog.newest_value("t", "ts")
    (tmp_path / "t" / "b.parquet").unlink()
    assert catalog.newest_value("t", "ts") == int(NOON.replace(tzinfo=UTC).timestamp())


def test_an_older_file_may_lack_the_column(root, parquet):
    parquet("t/a.parquet", {"other": [1]})
    parquet("t/b.parquet", {"TS": pa.array([NOON])})
    assert FilesystemCatalog(root).newest_value("t", "ts") == parse_instant("2026-06-01T12:00:00Z")


def test_a_column_that_no_file_has_is_one_sentence(root, parquet):
    parquet("t/a.parquet", {"other": [1], "more": [2]})
    with pytest.raises(CatalogError, match=r"t: ts: a.parquet has no column 'ts'.*Its columns are more, other"):
        FilesystemCatalog(root).newest_value("t", "ts")


def test_a_column_that_is_no_time_is_one_sentence(root, parquet):
    parquet("t/a.parquet", {"ts": ["2026-06-01"]})
    with pytest.raises(CatalogError, match=r"'ts' of a.parquet is of type string, which is not a time"):
        FilesystemCatalog(root).newest_value("t", "ts")


@pytest.mark.parametrize("content", [b"PAR1 this is nothing", b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7fPAR1"])
def test_a_broken_footer_is_one_sentence(root, touch, content):
    touch("t/a.parquet", content=content)
    with pytest.raises(CatalogError, match=r"a.parquet is not a readable Parquet file") as caught:
        FilesystemCatalog(root).newest_value("t", "ts")
    assert "\n" not in str(caught.value)
