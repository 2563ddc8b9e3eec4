"""Labels: Java date patterns both ways (C7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE
from airflow_chronon.core.partitions.grid import LEGAL_INTERVALS, PartitionGrid
from airflow_chronon.core.partitions.labels import (
    IllegalFormat,
    IllegalLabel,
    PartitionFormat,
    PartitionSpec,
    default_pattern,
    escape_label,
    partition_format,
    unescape_label,
)
from tests.support.confs import at

FULL = (
    "yyyy-MM-dd-HH-mm",
    "yyyy/MM/dd HH:mm",
    "yyyyMMddHHmm",
    "yyyyMddHHmm",
    "yyyy-MM-dd'T'HH:mm:ss'Z'",
    "yy-M-d-H-m",
    "dd.MM.yyyy HH:mm",
    "'ds='yyyy-MM-dd'/hr='HH'/min='mm",
    "HH:mm, d/M/yyyy",
    "yyyy yy MM dd HH mm ss",
)


class TestDefaults:
    @pytest.mark.parametrize(
        ("interval", "offset", "pattern"),
        [
            pytest.param(DAY, 0, "yyyy-MM-dd", id="midnight days"),
            pytest.param(DAY, 2 * HOUR, "yyyy-MM-dd-HH-mm", id="a day with an offset"),
            pytest.param(HOUR, 0, "yyyy-MM-dd-HH-mm", id="hours"),
            pytest.param(15 * MINUTE, 0, "yyyy-MM-dd-HH-mm", id="minutes"),
        ],
    )
    def test_only_midnight_days_are_written_as_days(self, interval: int, offset: int, pattern: str) -> None:
        assert default_pattern(PartitionGrid(interval, offset)) == pattern


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "label"),
        [
            ("yyyy-MM-dd", "2026-06-01"),
            ("yyyyMMdd", "20260601"),
            ("yyMMdd", "260601"),
            ("yyyy-M-d", "2026-6-1"),
            ("yyyy-MM-dd-HH-mm", "2026-06-01-04-05"),
            ("yyyy-MM-dd H:m:s", "2026-06-01 4:5:0"),
            ("yyyy-MM-dd'T'HH:mm:ss", "2026-06-01T04:05:00"),
            ("yyyy-MM-dd''HH", "2026-06-01'04"),
            ("'it''s 'yyyy-MM-dd", "it's 2026-06-01"),
            ("'{year}'yyyyMMdd", "{year}20260601"),
            ("dd.MM.yyyy", "01.06.2026"),
            ("yyyy|MM|dd", "2026|06|01"),
        ],
    )
    def test_a_legal_pattern_writes_what_java_writes(self, pattern: str, label: str) -> None:
        form = partition_format(pattern)
        assert form.encode(at("2026-06-01 04:05")) == label
        assert form.encode(form.decode(label)) == label

    @pytest.mark.parametrize(
        ("pattern", "named"),
        [
            ("yyyy-MMM-dd", "'MMM'"),
            ("yyyy-DDD", "'DDD'"),
            ("YYYY-MM-dd", "'YYYY'"),
            ("yyyy-MM-dd hh", "'hh'"),
            ("yyyy-MM-dd HH:mm a", "'a'"),
            ("yyy-MM-dd", "'yyy'"),
            ("yyyyy-MM-dd", "'yyyyy'"),
            ("yyyy-MM-ddd", "'ddd'"),
            ("yyyy-MM-dd HH:mm:ss.SSS", "'SSS'"),
            ("yyyy-MM-ddTHH", "'T'"),
            ("yyyy-MM-dd[HH]", "'['"),
            ("yyyy-MM-dd{", "'{'"),
            ("yyyy-MM-dd#", "'#'"),
            ("yyyy-MM-dd'open", '"\'"'),
        ],
    )
    def test_what_is_not_supported_is_refused_by_name(self, pattern: str, named: str) -> None:
        with pytest.raises(IllegalFormat) as refused:
            PartitionFormat(pattern)
        fault = refused.value.fault
        assert fault.rule == "C7" and named in fault.message and repr(pattern) in fault.message and fault.remedy

    @pytest.mark.parametrize(
        ("pattern", "missing"), [("yyyy-MM", "day"), ("MM-dd", "year"), ("yyyy-dd", "month"), ("HH:mm", "year")]
    )
    def test_year_month_and_day_are_needed(self, pattern: str, missing: str) -> None:
        with pytest.raises(IllegalFormat, match=f"no .*{missing}"):
            PartitionFormat(pattern)

    @pytest.mark.parametrize("pattern", ["yyyyMd", "yyyyMddH", "yyyy-M'0'd", "HyyyyMMd", "yyyyMMdH"])
    def test_two_fields_of_one_or_two_digits_may_not_stand_in_one_run_of_digits(self, pattern: str) -> None:
        with pytest.raises(IllegalFormat, match="in one run of digits"):
            PartitionFormat(pattern)

    @pytest.mark.parametrize("pattern", ["yyyyMdd", "yyyyMMd1", "yyyyMMddHmm", "yyyy'1'M-dd", "yyyyMdd'T'H"])
    @pytest.mark.parametrize("day", ["2026-01-11", "2026-11-01", "2026-11-11", "2026-01-01"])
    def test_one_such_field_in_a_run_of_digits_is_known_by_its_length(self, pattern: str, day: str) -> None:
        form = PartitionFormat(pattern)
        assert form.decode(form.encode(at(day))) == at(day)

    def test_a_single_letter_reads_one_or_two_digits(self) -> None:
        form = partition_format("yyyy-M-d")
        assert form.decode("2026-6-1") == form.decode("2026-06-01") == at("2026-06-01")

    def test_a_doubled_letter_reads_two_digits_only(self) -> None:
        with pytest.raises(IllegalLabel):
            partition_format("yyyy-MM-dd").decode("2026-6-01")

    def test_two_digit_years_are_those_of_this_century(self) -> None:
        form = partition_format("yyMMdd")
        assert form.decode("000101") == at("2000-01-01") and form.decode("991231") == at("2099-12-31")
        for outside in ("1999-12-31", "2100-01-01"):
            with pytest.raises(IllegalLabel, match="two-digit"):
                form.encode(at(outside))

    @pytest.mark.parametrize(
        "label", ["2026-02-30", "2026-13-01", "2026-00-01", "2026-06-01 ", "2026-06-011", "", "x", "٢٠٢٦-06-01"]
    )
    def test_what_is_no_date_of_the_format_is_refused_with_an_example(self, label: str) -> None:
        with pytest.raises(IllegalLabel) as refused:
            partition_format("yyyy-MM-dd").decode(label)
        assert repr(label) in refused.value.fault.message and "2026-01-01" in refused.value.fault.remedy

    def test_a_field_that_stands_twice_must_agree_with_itself(self) -> None:
        form = partition_format("yyyy/yyyy-MM-dd")
        assert form.decode("2026/2026-06-01") == at("2026-06-01")
        with pytest.raises(IllegalLabel):
            form.decode("2026/2025-06-01")


@st.composite
def specs(draw: st.DrawFn) -> PartitionSpec:
    """Any legal grid under any format that can hold it."""
    interval = draw(st.sampled_from(LEGAL_INTERVALS))
    grid = PartitionGrid(interval, draw(st.integers(0, interval // MINUTE - 1)) * MINUTE)
    patterns = [*FULL]
    if grid.interval % HOUR == 0 and grid.offset % HOUR == 0:
        patterns += ["yyyyMMddHH", "d-M-yyyy H"]
    if grid.is_legacy_daily:
        patterns += ["yyyy-MM-dd", "yyyyMMdd", "yyMMdd", "d/M/yy"]
    return PartitionSpec(grid, partition_format(draw(st.sampled_from(patterns))))


CENTURY = st.integers(at("2000-01-03"), at("2099-12-30"))


class TestRoundTrip:
    @given(specs(), CENTURY)
    def test_decoding_undoes_encoding_on_every_grid_and_format(self, spec: PartitionSpec, instant: int) -> None:
        start = spec.grid.floor(instant)
        assert spec.start_of(spec.label(start)) == start

    @given(specs(), CENTURY)
    def test_neighbours_have_different_labels(self, spec: PartitionSpec, instant: int) -> None:
        start = spec.grid.floor(instant)
        assert spec.label(start) != spec.label(start + spec.grid.interval)

    @given(specs(), CENTURY)
    def test_a_folder_name_undoes_to_the_label_and_holds_no_sign_that_hive_escapes(
        self, spec: PartitionSpec, instant: int
    ) -> None:
        label = spec.label(spec.grid.floor(instant))
        folder = escape_label(label)
        assert unescape_label(folder) == label
        assert not set(folder) & set(" :/=\\'\"{}[]#?*")

    @given(st.text(max_size=20))
    def test_escaping_is_undone_for_any_text(self, text: str) -> None:
        assert unescape_label(escape_label(text)) == text


def test_spaces_colons_and_slashes_are_percent_escaped() -> None:
    assert escape_label("2026/06/01 04:00") == "2026%2F06%2F01%2004%3A00"


class TestGridAndFormat:
    @pytest.mark.parametrize(
        ("interval", "offset", "pattern", "missing"),
        [
            pytest.param(HOUR, 0, "yyyy-MM-dd", "hours", id="hours under a day format"),
            pytest.param(DAY, 2 * HOUR, "yyyy-MM-dd", "hours", id="an offset day under a day format"),
            pytest.param(15 * MINUTE, 0, "yyyyMMddHH", "minutes", id="minutes under an hour format"),
            pytest.param(HOUR, 30 * MINUTE, "yyyyMMddHH", "minutes", id="an offset in minutes under an hour format"),
        ],
    )
    def test_a_format_too_coarse_for_the_grid_is_refused(
        self, interval: int, offset: int, pattern: str, missing: str
    ) -> None:
        with pytest.raises(IllegalFormat, match=f"holds no .*{missing}") as refused:
            PartitionSpec(PartitionGrid(interval, offset), partition_format(pattern))
        assert refused.value.fault.rule == "C7"

    def test_a_label_off_the_grid_is_refused_with_the_two_nearest(self) -> None:
        spec = PartitionSpec(PartitionGrid(3 * HOUR, HOUR), partition_format("yyyy-MM-dd-HH-mm"))
        with pytest.raises(IllegalLabel) as refused:
            spec.start_of("2026-06-01-05-30")
        assert "3h@1h" in refused.value.fault.message
        assert "2026-06-01-04-00 or 2026-06-01-07-00" in refused.value.fault.remedy
        with pytest.raises(IllegalLabel, match="2026-06-01-04-00 or 2026-06-01-07-00"):
            spec.label(at("2026-06-01 05:30"))

    def test_the_labels_of_a_window_are_those_of_the_partitions_it_touches(self) -> None:
        spec = PartitionSpec(PartitionGrid(6 * HOUR), partition_format("yyyyMMddHH"))
        assert spec.labels(at("2026-06-01 05:00"), at("2026-06-01 12:01")) == ("2026060100", "2026060106", "2026060112")
