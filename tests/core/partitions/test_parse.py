"""Partitions as people type them (C27): every spelling of section H of the conf reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, TimeWindow
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.partitions.parse import IllegalPartition, read_end, read_key, read_range, read_start
from airflow_chronon.errors import ChrononError
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
        window = read_range("2024-01-15-03", "2024-01-15-06-30", HALF_HOURS, now=at("2024-02-01")).window
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
        window = read_range("2024-01-15-03", "2024-01-15-05", HOURS, now=self.NOW).window
        assert HOURS.labels(window.start, window.end) == ("2024-01-15-03-00", "2024-01-15-04-00", "2024-01-15-05-00")

    def test_one_partition_is_a_range(self) -> None:
        window = read_range("2024-01-14", "2024-01-14", DAYS, now=self.NOW).window
        assert (window.start, window.end) == (at("2024-01-14"), at("2024-01-15"))

    def test_an_end_before_the_start_is_refused(self) -> None:
        with pytest.raises(IllegalPartition, match="before"):
            read_range("2024-01-15-05", "2024-01-15-03", HOURS, now=self.NOW)

    @pytest.mark.parametrize("end", ["2024-01-15-12", "2024-01-15 23:00", "2025-01-01-00"])
    def test_a_partition_that_has_not_closed_is_refused_with_the_newest_that_has(self, end: str) -> None:
        with pytest.raises(IllegalPartition) as refused:
            read_range("2024-01-15-03", end, HOURS, now=self.NOW)
        assert refused.value.fault.field == "end_ds" and "2024-01-15-11-00" in refused.value.fault.remedy

    def test_a_partition_that_closes_this_very_second_is_fine(self) -> None:
        assert read_range("2024-01-15-11", "2024-01-15-11", HOURS, now=at("2024-01-15 12:00")).window.end == at(
            "2024-01-15 12:00"
        )


def test_two_days_in_the_wrong_order_are_refused_even_where_they_share_a_partition() -> None:  # C27
    with pytest.raises(IllegalPartition, match="is before start_ds"):
        read_range("2026-06-02", "2026-06-01", spec_of(3 * HOUR, HOUR), now=at("2026-07-01"))


SOURCE_DOCUMENT = (
    ("2024-01-15-03", "2024-01-15-06-30"),
    ("2024-01-15 03:00", "2024-01-15T06:30"),
    ("2024/01/15 03:00:00", "2024-01-15-06:30"),
)


class TestRangesAreReadInTime:  # C27
    NOW = at("2024-01-15 12:20")

    @pytest.mark.parametrize(("start", "end"), SOURCE_DOCUMENT)
    @pytest.mark.parametrize(
        ("spec", "first", "last"),
        [
            pytest.param(spec_of(15 * MINUTE), "2024-01-15-03-00", "2024-01-15-06-30", id="15m"),
            pytest.param(HALF_HOURS, "2024-01-15-03-00", "2024-01-15-06-30", id="30m"),
            pytest.param(HOURS, "2024-01-15-03-00", "2024-01-15-06-00", id="1h"),
            pytest.param(THREE_AT_ONE, "2024-01-15-01-00", "2024-01-15-04-00", id="3h@1h"),
            pytest.param(DAY_AT_TWO, "2024-01-15-02-00", "2024-01-15-02-00", id="1d@2h"),
            pytest.param(DAYS, "2024-01-15", "2024-01-15", id="1d"),
        ],
    )
    def test_the_source_documents_examples_work_on_every_grid(
        self, spec: PartitionSpec, start: str, end: str, first: str, last: str
    ) -> None:
        labels = spec.labels(*_ends(read_range(start, end, spec, now=at("2024-02-01")).window))
        assert (labels[0], labels[-1]) == (first, last)

    def test_what_lies_within_a_partition_is_said(self) -> None:
        notes = read_range("2024-01-15-03", "2024-01-15-06-30", THREE_AT_ONE, now=self.NOW).notes
        assert notes == ("2024-01-15-03 lies in 2024-01-15-01-00", "2024-01-15-06-30 lies in 2024-01-15-04-00")
        assert read_range("2024-01-15-04", "2024-01-15-04-00", THREE_AT_ONE, now=self.NOW).notes == ()
        assert len(read_range("2024-01-15-05", "2024-01-15-05", THREE_AT_ONE, now=self.NOW).notes) == 1

    @pytest.mark.parametrize(
        ("spec", "start", "last", "left_out"),
        [
            pytest.param(HOURS, "2024-01-15", "2024-01-15-11-00", "2024-01-15-12-00 to 2024-01-15-23-00", id="1h"),
            pytest.param(
                THREE_AT_ONE, "2024-01-15", "2024-01-15-07-00", "2024-01-15-10-00 to 2024-01-15-22-00", id="3h@1h"
            ),
            pytest.param(DAYS, "2024-01-10", "2024-01-14", "2024-01-15", id="1d"),
        ],
    )
    def test_a_day_as_the_end_means_what_has_closed_and_names_the_rest(
        self, spec: PartitionSpec, start: str, last: str, left_out: str
    ) -> None:
        found = read_range(start, "2024-01-15", spec, now=self.NOW)
        assert spec.labels(*_ends(found.window))[-1] == last
        assert found.notes[-1] == f"left out of 2024-01-15, since it has not closed at 2024-01-15T12:20:00Z: {left_out}"

    def test_without_a_moment_a_day_is_whole(self) -> None:
        found = read_range("2024-01-15", "2024-01-15", HOURS)
        assert len(HOURS.labels(*_ends(found.window))) == 24 and found.notes == ()

    @pytest.mark.parametrize("spec", [HOURS, DAYS, DAY_AT_TWO, THREE_AT_ONE])
    @pytest.mark.parametrize("day", ["2024-01-17", "2025-01-01"])
    def test_a_range_in_which_nothing_has_closed_is_refused(self, spec: PartitionSpec, day: str) -> None:
        with pytest.raises(IllegalPartition, match="has not closed"):
            read_range(day, day, spec, now=self.NOW)

    @pytest.mark.parametrize(
        ("start", "end"), [("2024-01-15-12", "2024-01-14"), ("2024-01-15-06-30", "2024-01-15-06-10")]
    )
    def test_an_end_before_the_start_is_refused_within_one_partition_too(self, start: str, end: str) -> None:
        with pytest.raises(IllegalPartition, match="is before start_ds"):
            read_range(start, end, DAYS if end == "2024-01-14" else HOURS, now=self.NOW)

    def test_a_minute_may_be_the_start_of_a_day_long_range(self) -> None:
        assert read_range("2024-01-14-12", "2024-01-14", DAYS, now=self.NOW).window.start == at("2024-01-14")


class TestYearsThatTheFormatCannotWrite:  # C7, C27
    SHORT = spec_of(DAY, pattern="yyMMdd")

    @pytest.mark.parametrize("text", ["2150-01-01", "1999-12-31", "2100/1/1"])
    def test_are_refused_wherever_they_are_typed(self, text: str) -> None:
        for read in (read_start, read_end):
            with pytest.raises(IllegalPartition, match=r"is not within the years 2000 to 2099.*'yyMMdd'"):
                read(text, self.SHORT)
        for start, end in ((text, "2100-01-02"), ("2000-01-01", text)):
            with pytest.raises(IllegalPartition, match="is not within the years 2000 to 2099"):
                read_range(start, end, self.SHORT)

    def test_the_last_day_that_it_can_write_is_fine(self) -> None:
        found = read_range("2099-12-31", "2099-12-31", self.SHORT)
        assert self.SHORT.labels(*_ends(found.window)) == ("991231",)


def test_whoever_types_a_book_gets_no_book_back() -> None:  # C27
    with pytest.raises(IllegalPartition) as refused:
        read_range("x" * 100_000, "2024-01-15", HOURS)
    assert len(str(refused.value)) < 3_000
    assert "98,021 more characters" in str(refused.value) and "is not a partition (C27)" in str(refused.value)


class TestOneKey:  # C27
    def test_only_the_canonical_label_is_taken(self) -> None:
        assert read_key("2024-01-15-04-00", THREE_AT_ONE) == at("2024-01-15 04:00")

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("2024-01-15-06-30", "2024-01-15-04-00 or 2024-01-15-07-00"),
            ("2024-01-15 06:30", "2024-01-15-04-00 or 2024-01-15-07-00"),
            ("2024-01-15", "2024-01-14-22-00 or 2024-01-15-01-00"),
            ("2024-01-15 04:00", "Write 2024-01-15-04-00"),
        ],
    )
    def test_another_is_refused_with_those_that_are_near(self, text: str, says: str) -> None:
        with pytest.raises(ChrononError) as refused:
            read_key(text, THREE_AT_ONE)
        assert says in str(refused.value)


def _ends(window: TimeWindow) -> tuple[int, int]:
    return window.start, window.end
