"""Partitions as people type them (C27): every spelling of section H of the conf reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.partitions.parse import IllegalPartition, read_end, read_range, read_start
from tests.support.confs import at


def spec_of(interval: int, offset: int = 0, pattern: str | None = None) -> PartitionSpec:
    grid = PartitionGrid(interval, offset)
    return PartitionSpec(grid, partition_format(pattern or default_pattern(grid)))


HALF_HOURS, HOURS, DAYS = spec_of(30 * MINUTE), spec_of(HOUR), spec_of(DAY)
THREE_AT_ONE, DAY_AT_TWO = spec_of(3 * HOUR, HOUR), spec_of(DAY, 2 * HOUR)


class TestAccepted:
    @pytest.mark.parametrize(
        "text",
        [
            *(
                "2024-01-15-03",
                "2024-01-15-3",
                "2024-1-15-03",
                "2024-01-15-03-00",
                "2024-01-15-3-0",
                "2024-01-15-03:00",
            ),
            *("2024-01-15 03", "2024-01-15 03:00", "2024-01-15 03:00:00", "2024-01-15  3:0:0", "  2024-01-15 03:00 "),
            *("2024/01/15 03", "2024/01/15 03:00", "2024/01/15 03:00:00", "2024/1/15 3:00"),
            *("2024-01-15T03", "2024-01-15T03:00", "2024-01-15T03:00:00"),
        ],
    )
    def test_a_minute_shaped_value_names_the_partition_that_starts_then(self, text: str) -> None:
        assert read_start(text, HALF_HOURS) == read_end(text, HALF_HOURS) == at("2024-01-15 03:00")

    @pytest.mark.parametrize("text", ["2024-01-15", "2024/01/15", "2024-1-15", "2024/1/15", " 2024-01-15 "])
    def test_a_day_on_a_daily_table_is_that_day(self, text: str) -> None:
        assert read_start(text, DAYS) == read_end(text, DAYS) == at("2024-01-15")

    @pytest.mark.parametrize("text", ["2024-01-15-00", "2024-01-15-00-00", "2024-01-15 00:00", "2024-01-15T00"])
    def test_midnight_stays_minute_shaped(self, text: str) -> None:
        assert read_start(text, HOURS) == read_end(text, HOURS) == at("2024-01-15")
        assert read_start(text, DAYS) == at("2024-01-15")

    @pytest.mark.parametrize(
        ("spec", "start", "end"),
        [
            pytest.param(THREE_AT_ONE, "2024-01-14-22-00", "2024-01-15-22-00", id="3h@1h"),
            pytest.param(HOURS, "2024-01-15-00-00", "2024-01-15-23-00", id="1h"),
            pytest.param(DAY_AT_TWO, "2024-01-14-02-00", "2024-01-15-02-00", id="1d@2h"),
            pytest.param(DAYS, "2024-01-15", "2024-01-15", id="1d"),
        ],
    )
    def test_a_day_floors_at_the_start_and_ends_with_its_last_partition(
        self, spec: PartitionSpec, start: str, end: str
    ) -> None:
        assert spec.label(read_start("2024-01-15", spec)) == start
        assert spec.label(read_end("2024-01-15", spec)) == end

    def test_the_tables_own_label_is_always_understood(self) -> None:
        compact = spec_of(DAY, pattern="yyyyMMdd")
        assert read_start("20240115", compact) == at("2024-01-15")
        dotted = spec_of(HOUR, pattern="dd.MM.yyyy HH'h'")
        assert read_start("15.01.2024 03h", dotted) == at("2024-01-15 03:00")

    def test_the_source_documents_example_fits_a_thirty_minute_grid(self) -> None:
        window = read_range("2024-01-15-03", "2024-01-15-06-30", HALF_HOURS, now=at("2024-02-01"))
        assert (window.start, window.end) == (at("2024-01-15 03:00"), at("2024-01-15 07:00"))

    @given(
        st.integers(at("2000-01-01"), at("2099-12-31")),
        st.sampled_from([HALF_HOURS, HOURS, DAYS, THREE_AT_ONE, DAY_AT_TWO]),
    )
    def test_every_label_is_read_back_at_both_ends(self, instant: int, spec: PartitionSpec) -> None:
        start = spec.grid.floor(instant)
        label = spec.label(start)
        assert read_start(label, spec) == read_end(label, spec) == start


class TestRefused:
    @pytest.mark.parametrize(
        "text",
        [
            *(
                "20240115",
                "2024-01-15T03:00Z",
                "2024-01-15T03:00:00+00:00",
                "2024-01-15 03:00:00.5",
                "2024/01/15-03",
                "2024/01/15T03",
            ),
            *(
                "",
                "today",
                "2024",
                "2024-01",
                "2024-01-15-03-00-00",
                "2024-01-15 03:00 UTC",
                "15-01-2024",
                "2024-01/15",
                "2024-01-15t03",
            ),
            *("24-01-15", "2024-01-15\n03"),
        ],
    )
    def test_another_spelling_is_refused_with_those_that_work(self, text: str) -> None:
        with pytest.raises(IllegalPartition) as refused:
            read_start(text, HALF_HOURS)
        fault = refused.value.fault
        assert fault.rule == "C27" and repr(text) in fault.message and "2026-01-15" in fault.remedy

    @pytest.mark.parametrize(
        "text", ["2024-01-15 24:00", "2024-02-30", "2024-13-01 00:00", "2023-02-29", "2024-01-15 03:60"]
    )
    def test_a_date_that_does_not_exist_is_refused(self, text: str) -> None:
        with pytest.raises(IllegalPartition, match="is not a date"):
            read_start(text, HALF_HOURS)

    def test_seconds_must_be_zero(self) -> None:
        with pytest.raises(IllegalPartition, match="seconds"):
            read_start("2024-01-15 03:00:01", HALF_HOURS)

    @pytest.mark.parametrize("read", [read_start, read_end])
    @pytest.mark.parametrize(
        ("text", "spec", "nearest"),
        [
            ("2024-01-15-06-30", THREE_AT_ONE, "2024-01-15-04-00 or 2024-01-15-07-00"),
            ("2024-01-15 00:00", THREE_AT_ONE, "2024-01-14-22-00 or 2024-01-15-01-00"),
            ("2024-01-15-12", DAYS, "2024-01-15 or 2024-01-16"),
        ],
    )
    def test_a_minute_that_is_no_boundary_is_refused_with_the_two_nearest(
        self, read: object, text: str, spec: PartitionSpec, nearest: str
    ) -> None:
        with pytest.raises(IllegalPartition) as refused:
            read(text, spec)  # type: ignore[operator]
        assert str(spec.grid) in refused.value.fault.message and nearest in refused.value.fault.remedy

    @pytest.mark.parametrize("text", ["0001-01-01", "1969-12-31", "2200-01-01", "9999-12-31"])
    @pytest.mark.parametrize("spec", [DAYS, DAY_AT_TWO, HOURS])
    def test_a_year_that_nobody_schedules_is_refused(self, text: str, spec: PartitionSpec) -> None:
        with pytest.raises(IllegalPartition, match="1970 to 2199"):
            read_start(text, spec)


class TestRanges:
    NOW = at("2024-01-15 12:20")

    def test_both_ends_are_inclusive(self) -> None:
        window = read_range("2024-01-15-03", "2024-01-15-05", HOURS, now=self.NOW)
        assert HOURS.labels(window.start, window.end) == ("2024-01-15-03-00", "2024-01-15-04-00", "2024-01-15-05-00")

    def test_one_partition_is_a_range(self) -> None:
        window = read_range("2024-01-14", "2024-01-14", DAYS, now=self.NOW)
        assert (window.start, window.end) == (at("2024-01-14"), at("2024-01-15"))

    def test_an_end_before_the_start_is_refused(self) -> None:
        with pytest.raises(IllegalPartition, match="before"):
            read_range("2024-01-15-05", "2024-01-15-03", HOURS, now=self.NOW)

    @pytest.mark.parametrize("end", ["2024-01-15-12", "2024-01-15", "2025-01-01"])
    def test_a_partition_that_has_not_closed_is_refused_with_the_newest_that_has(self, end: str) -> None:
        with pytest.raises(IllegalPartition) as refused:
            read_range("2024-01-15-03", end, HOURS, now=self.NOW)
        assert refused.value.fault.field == "end_ds" and "2024-01-15-11-00" in refused.value.fault.remedy

    def test_a_partition_that_closes_this_very_second_is_fine(self) -> None:
        assert read_range("2024-01-15-11", "2024-01-15-11", HOURS, now=at("2024-01-15 12:00")).end == at(
            "2024-01-15 12:00"
        )


def test_two_days_in_the_wrong_order_are_refused_even_where_they_share_a_partition() -> None:  # C27
    with pytest.raises(IllegalPartition, match="is before start_ds"):
        read_range("2026-06-02", "2026-06-01", spec_of(3 * HOUR, HOUR), now=at("2026-07-01"))
