"""The pattern of what a range may be typed with: it takes what can be read, and people can read it (C27)."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.partitions.parse import IllegalPartition, read_range
from airflow_chronon.core.partitions.spellings import spellings_pattern


def spec_of(interval: int, offset: int = 0, pattern: str | None = None) -> PartitionSpec:
    grid = PartitionGrid(interval, offset)
    return PartitionSpec(grid, partition_format(pattern or default_pattern(grid)))


DAYS, HOURS = spec_of(DAY), spec_of(3 * HOUR, HOUR)
COMPACT, MINUTES = spec_of(DAY, 0, "yyyyMMdd"), spec_of(15 * MINUTE, 0, "yyyy/MM/dd HH:mm")
ODD = spec_of(DAY, 0, "'d & t~#-'d.M.yy")
SPECS = [DAYS, HOURS, COMPACT, MINUTES, ODD]


def takes(spec: PartitionSpec, text: str) -> bool:
    return re.search(spellings_pattern(spec), text) is not None  # as a JSON schema does


READABLE = """2026-01-15|2026-1-5| 2026-01-15 |2026/01/15|2026-01-15-03-00|2026-01-15-06:30|2026-01-15-3|2026-01-15 03:00
2026/01/15 3|2026-01-15T03:00:00|2026-01-15T3|"""
UNREADABLE = (
    """yesterday|26-01-15|2026-01|20260115T03|2026-01-15T03:00Z|{{ ds }}|2026-01-15; x|2026-01-15 to 2026-01-16"""
)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("text", READABLE.replace("\n", "|").split("|"))
def test_takes_every_day_and_minute_on_every_grid_and_nothing_at_all(spec: PartitionSpec, text: str) -> None:
    assert takes(spec, text)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("text", UNREADABLE.replace("\n", "|").split("|"))
def test_refuses_what_nobody_can_read(spec: PartitionSpec, text: str) -> None:
    assert not takes(spec, text)


@pytest.mark.parametrize(
    ("spec", "label"), [(COMPACT, "20260115"), (MINUTES, "2026/01/15 03:15"), (ODD, "d & t~#-15.1.26")]
)
def test_takes_the_tables_own_labels_and_no_others(spec: PartitionSpec, label: str) -> None:
    assert takes(spec, label)
    assert not takes(DAYS, label) or spec is MINUTES


@given(
    st.sampled_from(SPECS),
    st.text(alphabet="0123456789-/:T .d&t~#", max_size=20),
    st.integers(946_684_800, 2_000_000_000),
)
def test_never_refuses_what_can_be_read(spec: PartitionSpec, text: str, instant: int) -> None:
    for each in (text, spec.label(spec.grid.floor(instant))):
        with suppress(IllegalPartition, IllegalLabel):
            read_range(each, each, spec)
            assert takes(spec, each)


def test_is_short_enough_to_be_read_in_the_message_that_shows_it() -> None:
    # Airflow: "'yesterday' does not match '<the pattern>'"
    assert spellings_pattern(HOURS) == r"^\s*(\d{4}[-/]\d\d?[-/]\d\d?[-T :\d]*)?\s*$"
    assert spellings_pattern(COMPACT) == r"^\s*(\d{4}[-/]\d\d?[-/]\d\d?[-T :\d]*|\d{4}\d{2}\d{2})?\s*$"


@pytest.mark.parametrize("typed", ["2026-13-45", "2026-01-32", "2026-01/15", "2026-01-15 25:00", "2200-01-01"])
def test_what_has_the_shape_and_is_no_date_is_one_sentence_of_the_first_task(typed: str) -> None:
    assert takes(HOURS, typed)
    with pytest.raises(IllegalPartition, match=re.escape(repr(typed))):
        read_range(typed, typed, HOURS)


def test_holds_nothing_that_a_browser_reads_otherwise() -> None:
    for spec in SPECS:
        assert not re.search(r"\(\?P|\\[-&~# ]", spellings_pattern(spec))
