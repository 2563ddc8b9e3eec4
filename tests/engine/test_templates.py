"""Template forms of staging queries, rendered for a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import HOUR, TimeWindow, parse_instant
from airflow_chronon.core.partitions.grid import LEGAL_INTERVALS, PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.engine.templates import IllegalTemplate, render_query

DAILY = PartitionSpec(PartitionGrid(24 * HOUR), partition_format("yyyy-MM-dd"))
COMPACT = PartitionSpec(PartitionGrid(24 * HOUR), partition_format("yyyyMMdd"))
THREE_HOURS = PartitionSpec(PartitionGrid(3 * HOUR, HOUR), partition_format("yyyy-MM-dd-HH-mm"))
QUOTED = PartitionSpec(PartitionGrid(24 * HOUR), partition_format("yyyy-MM-dd'''t'"))
WEEK = TimeWindow(parse_instant("2026-06-01"), parse_instant("2026-06-08"))
NIGHT = TimeWindow(parse_instant("2026-06-01T01:00"), parse_instant("2026-06-01T10:00"))


def render(query: str, *, spec: PartitionSpec = DAILY, window: TimeWindow = WEEK) -> str:
    return render_query(
        query, spec=spec, window=window, max_dates={"vendor.rates": "20260530", "vendor.none": None}.get
    )


class TestValues:
    @pytest.mark.parametrize(
        ("template", "value"),
        [
            ("{{ start_date }}", "2026-06-01"),
            ("{{ end_date }}", "2026-06-07"),
            ("{{ latest_date }}", "2026-06-07"),
            ("{{start_date}}", "2026-06-01"),
            ("{{ start_date() }}", "2026-06-01"),
            ("{{ start_date(offset=-3) }}", "2026-05-29"),
            ("{{ end_date( offset = 2 ) }}", "2026-06-09"),
            ("{{ start_date(lower_bound='2026-06-03') }}", "2026-06-03"),
            ("{{ start_date(lower_bound=2026-05-03) }}", "2026-06-01"),
            ('{{ end_date(upper_bound="2026-06-05") }}', "2026-06-05"),
            ("{{ start_date(offset=-10, lower_bound='2026-05-25', upper_bound='2026-05-28') }}", "2026-05-25"),
            ("{{ end_date(offset=9, lower_bound='2026-05-25', upper_bound='2026-06-10') }}", "2026-06-10"),
            ("{{ max_date(table=vendor.rates) }}", "20260530"),
            ("{{ max_date(table='vendor.rates') }}", "20260530"),
            ("{{ max_date:table=vendor.rates }}", "20260530"),
            ("{{ start_date:offset=-1:lower_bound=2026-05-01 }}", "2026-05-31"),
        ],
    )
    def test_a_template_becomes_a_label_in_one_pair_of_quotes(self, template, value):
        assert render(f"ds = {template} AND 1") == f"ds = '{value}' AND 1"

    def test_an_offset_counts_partitions_not_days(self):
        query = "{{ start_date(offset=-2) }} {{ end_date(offset=1) }} {{ end_date }}"
        assert (
            render(query, spec=THREE_HOURS, window=NIGHT) == "'2026-05-31-19-00' '2026-06-01-10-00' '2026-06-01-07-00'"
        )

    def test_values_are_in_the_confs_own_format(self):
        assert render("{{ end_date }}", spec=COMPACT) == "'20260607'"

    def test_a_day_as_a_bound_means_the_whole_day_on_a_finer_grid(self):
        query = "{{ start_date(lower_bound='2026-06-02') }} {{ end_date(upper_bound='2026-05-31') }}"
        assert render(query, spec=THREE_HOURS, window=NIGHT) == "'2026-06-02-01-00' '2026-05-31-22-00'"

    @given(st.sampled_from(LEGAL_INTERVALS), st.integers(-500, 500), st.integers(0, 10**5))
    def test_an_offset_is_a_walk_over_the_grid(self, interval, offset, start):
        spec = PartitionSpec(PartitionGrid(interval), partition_format(default_pattern(PartitionGrid(interval))))
        first = spec.grid.floor(parse_instant("2026-01-01")) + start * interval
        window = TimeWindow(first, first + interval)
        expected = spec.label(first + offset * interval)
        assert render(f"{{{{ start_date(offset={offset}) }}}}", spec=spec, window=window) == f"'{expected}'"


class TestQuotes:
    @pytest.mark.parametrize(
        ("query", "rendered"),
        [
            ("ds = '{{ start_date }}'", "ds = '2026-06-01'"),
            ('ds = "{{ start_date }}"', 'ds = "2026-06-01"'),
            ("'{{ start_date(lower_bound='2026-06-02') }}'", "'2026-06-02'"),
            ("'{{ start_date }} 00:00:00'", "'2026-06-01 00:00:00'"),
            ("'{{ start_date }}/{{ end_date }}'", "'2026-06-01/2026-06-07'"),
            ("'it''s' = {{ start_date }}", "'it''s' = '2026-06-01'"),
            (r"'it\'s' = {{ start_date }}", r"'it\'s' = '2026-06-01'"),
            ("'a' || '{{ start_date }}' || {{ end_date }}", "'a' || '2026-06-01' || '2026-06-07'"),
            ("`it's` = {{ start_date }}", "`it's` = '2026-06-01'"),
            ("1 -- it's {{ unknown }}\n= {{ start_date }}", "1 -- it's {{ unknown }}\n= '2026-06-01'"),
            ("/* it's {{ x */ {{ start_date }}", "/* it's {{ x */ '2026-06-01'"),
        ],
    )
    def test_exactly_one_pair_results_whoever_wrote_it(self, query, rendered):
        assert render(query) == rendered

    def test_a_quote_in_a_label_is_escaped(self):
        assert render("{{ start_date }}", spec=QUOTED) == r"'2026-06-01\'t'"

    def test_a_query_without_templates_stays(self):
        assert render("SELECT 'a' AS one") == "SELECT 'a' AS one"


class TestFaults:
    @pytest.mark.parametrize(
        ("query", "message"),
        [
            (
                "{{ ds }}",
                "the template {{ ds }} is not known (query). Use start_date, end_date, latest_date, max_date.",
            ),
            ("{{ start_date + 1 }}", "the template {{ start_date + 1 }} is not known"),
            (
                "{{ start_date(days=3) }}",
                "argument 'days' of {{ start_date(days=3) }} is not known (query). Start_date takes",
            ),
            ("{{ start_date(offset=x) }}", "the offset 'x' of {{ start_date(offset=x) }} is not a whole number"),
            (
                "{{ start_date(offset=1, offset=2) }}",
                "argument 'offset' of {{ start_date(offset=1, offset=2) }} is given twice",
            ),
            ("{{ start_date(3) }}", "the arguments of {{ start_date(3) }} cannot be read"),
            (
                "{{ start_date(lower_bound=20260101) }}",
                "lower_bound '20260101' of {{ start_date(lower_bound=20260101) }} is no",
            ),
            ("{{ end_date(lower_bound='2026-02-01', upper_bound='2026-01-01') }}", "cross"),
            ("{{ max_date }}", "{{ max_date }} does not name a table"),
            ("{{ max_date(table=vendor.none) }}", "the table vendor.none has no partition"),
            ("{{ max_date(table=vendor.rates, offset=1) }}", "the argument 'offset' of"),
            ("SELECT\n{{ start_date", "the template that starts in line 2 is not closed"),
        ],
    )
    def test_what_cannot_be_rendered_is_one_sentence_that_names_it(self, query, message):
        with pytest.raises(IllegalTemplate) as caught:
            render(query)
        assert message in str(caught.value)

    def test_a_bound_between_two_labels_names_the_nearest(self):
        with pytest.raises(IllegalTemplate, match="2026-06-01-01-00 or 2026-06-01-04-00"):
            render("{{ start_date(lower_bound='2026-06-01-02-00') }}", spec=THREE_HOURS, window=NIGHT)
