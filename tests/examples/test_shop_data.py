"""The generator of the shop's source data: exactly the closed partitions, always the same rows."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pytest_mock import MockerFixture
from shop_data import DAILY_HISTORY, TABLES, land_newer, write_source_data

from tests.support.checkout import ROOT

NOW = datetime(2026, 6, 2, 12, 20, tzinfo=UTC)
MIDNIGHT = NOW.replace(hour=0, minute=0)


def labels(warehouse: Path, table: str, column: str) -> set[str]:
    return {path.name.removeprefix(f"{column}=") for path in (warehouse / table).glob(f"{column}=*")}


def content(warehouse: Path) -> dict[str, str]:
    files = sorted(path for path in warehouse.rglob("*") if path.is_file())
    return {str(path.relative_to(warehouse)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def stamps(*, start: datetime, step: timedelta, pattern: str) -> set[str]:
    count = (NOW - start) // step
    return {f"{start + step * number:{pattern}}" for number in range(count)}


def test_the_labels_are_exactly_the_partitions_that_have_closed(tmp_path: Path) -> None:
    write_source_data(warehouse=tmp_path, now=NOW, days=2)
    two_days, long_ago, hour, day = (
        MIDNIGHT - timedelta(2),
        MIDNIGHT - timedelta(DAILY_HISTORY),
        timedelta(hours=1),
        timedelta(1),
    )
    assert labels(tmp_path, "shop.orders", "ds") == stamps(start=two_days, step=hour, pattern="%Y-%m-%d-%H-%M")
    assert labels(tmp_path, "crm.customers", "dt") == stamps(start=long_ago, step=day, pattern="%Y%m%d")
    assert labels(tmp_path, "web.visits", "ds") == stamps(start=long_ago, step=day, pattern="%Y-%m-%d")


def test_the_time_partitioned_table_has_landed_up_to_the_last_closed_quarter_and_no_further(tmp_path: Path) -> None:
    write_source_data(warehouse=tmp_path, now=NOW)
    files = sorted((tmp_path / "shop.payments").glob("*.parquet"))
    index = pq.read_schema(files[-1]).get_field_index("paid_at")
    newest = max(pq.read_metadata(file).row_group(0).column(index).statistics.max for file in files)
    assert newest == datetime(2026, 6, 2, 12, 15)  # noqa: DTZ001 (DuckDB's own kind)
    # C18: ready once the newest value is at the end of the range


@pytest.mark.parametrize("minute", [0, 119])
def test_shortly_after_midnight_the_day_before_yesterday_is_still_whole(minute: int, tmp_path: Path) -> None:
    write_source_data(warehouse=tmp_path, now=MIDNIGHT + timedelta(minutes=minute), days=2)
    assert min(labels(tmp_path, "shop.orders", "ds")) == "2026-05-30-00-00"


def test_the_same_label_gives_the_same_rows_whenever_it_is_written(tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    write_source_data(warehouse=early, now=NOW - timedelta(hours=7))
    write_source_data(warehouse=late, now=NOW)
    first, second = content(early), content(late)
    assert first.keys() < second.keys()
    assert first == {name: second[name] for name in first}


def test_two_labels_hold_different_rows(tmp_path: Path) -> None:
    write_source_data(warehouse=tmp_path, now=NOW)
    hours = content(tmp_path / "shop.orders")
    assert len(set(hours.values())) == len(hours)


def test_landing_newer_data_adds_what_closed_since_and_leaves_the_rest(tmp_path: Path) -> None:
    write_source_data(warehouse=tmp_path, now=NOW)
    before = content(tmp_path)
    assert set(land_newer(warehouse=tmp_path, now=NOW).values()) == {0}
    assert content(tmp_path) == before
    written = land_newer(warehouse=tmp_path, now=NOW + timedelta(hours=1))
    assert written == {"shop.orders": 1, "shop.payments": 4, "crm.customers": 0, "web.visits": 0}
    after = content(tmp_path)
    assert before.items() <= after.items() and len(after) == len(before) + 5
    assert set(land_newer(warehouse=tmp_path, now=NOW + timedelta(hours=1)).values()) == {0}


def test_landing_newer_data_does_not_bring_back_an_older_partition_that_was_removed(tmp_path: Path) -> None:
    write_source_data(warehouse=tmp_path, now=NOW)
    (gone,) = (tmp_path / "shop.orders" / "ds=2026-06-01-05-00").iterdir()
    gone.unlink()
    land_newer(warehouse=tmp_path, now=NOW + timedelta(days=1))
    assert not gone.exists()


def test_a_clock_that_steps_back_lands_nothing(tmp_path: Path) -> None:
    write_source_data(warehouse=tmp_path, now=NOW)
    assert set(land_newer(warehouse=tmp_path, now=NOW - timedelta(days=1)).values()) == {0}


def test_landing_into_an_empty_warehouse_writes_everything(tmp_path: Path) -> None:
    landed = land_newer(warehouse=tmp_path / "one", now=NOW)
    assert landed == write_source_data(warehouse=tmp_path / "two", now=NOW)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_nothing_half_written_stays_behind_when_a_write_fails(tmp_path: Path, mocker: MockerFixture) -> None:
    mocker.patch("shop_data.os.replace", side_effect=OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        write_source_data(warehouse=tmp_path, now=NOW)
    assert content(tmp_path) == {}


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    command = [sys.executable, "examples/shop_data.py", str(tmp_path), "--now", "2026-06-02T12:20:00Z", "--days", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "shop.orders: 36 partitions written"
    assert len(done.stdout.splitlines()) == len(TABLES)


@pytest.mark.parametrize("wrong", [["--now", "noon"], ["--days", "0"]])
def test_the_command_refuses_what_makes_no_sense_in_one_line(wrong: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "examples/shop_data.py", str(tmp_path), *wrong]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and wrong[1] in done.stderr and "Traceback" not in done.stderr
