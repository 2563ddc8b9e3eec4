"""What is there, and a sentence about what is not (C17 to C20)."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, parse_instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionFormat, PartitionKey, PartitionSpec, partition_format
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.dependencies import Lookback, PartitionRange, Wait
from airflow_chronon.core.waits.readiness import (
    Readiness,
    check_shape,
    expression_ready,
    first_landed,
    labels_ready,
    lookback_holes,
    missing_labels,
    missing_ranges,
    newest_ready,
)
from airflow_chronon.errors import CatalogError

DAILY = PartitionSpec(PartitionGrid(DAY), partition_format("yyyy-MM-dd"))
T0 = parse_instant("2026-06-01T00:00:00Z")


def wait(*labels: str, **more: Any) -> Wait:
    return replace(Wait("raw.orders", "ds", tuple(map(PartitionKey, labels)), spec=DAILY), **more)


def lookback(first: str | None, last: str, policy: Lookback = Lookback.REQUIRE) -> dict[str, Any]:
    return {"lookback": PartitionRange(PartitionKey(first) if first else None, PartitionKey(last)), "policy": policy}


def landed(*labels: str) -> TableListing:
    return TableListing.of("ds", labels)


class TestLabels:
    def test_are_ready_when_each_has_landed(self):
        asked = wait("2026-06-01", "2026-06-02")
        assert labels_ready(asked, landed("2026-06-02", "2026-06-01", "2026-05-01")) == Readiness(True)
        assert labels_ready(asked, landed("2026-06-01")) == Readiness(False, "raw.orders lacks ds=2026-06-02")

    def test_of_a_missing_or_empty_table_are_not_ready_yet(self):
        # prior art 25
        asked = wait("2026-06-01")
        assert labels_ready(asked, TableListing(TableState.MISSING)) == Readiness(False, "raw.orders is not there yet")
        assert not labels_ready(asked, TableListing(TableState.PARTITIONED)).satisfied

    def test_are_named_up_to_five(self):
        asked = wait(*(f"2026-06-{day:02d}" for day in range(1, 9)))
        reason = labels_ready(asked, landed("2026-06-01")).reason
        assert reason.endswith("2026-06-02, 2026-06-03, 2026-06-04, 2026-06-05, 2026-06-06 and 2 more")

    def test_need_every_sub_partition_in_whatever_order_the_folders_are(self):
        # C20
        asked = wait("2026-06-01", sub=("region=eu/kind=a",))
        one = TableListing(TableState.PARTITIONED, ({"ds": "2026-06-01", "region": "eu", "kind": "b"},))
        assert labels_ready(asked, one) == Readiness(False, "raw.orders lacks ds=2026-06-01 with region=eu/kind=a")
        other = TableListing(TableState.PARTITIONED, ({"kind": "a", "region": "eu", "ds": "2026-06-01"},))
        assert labels_ready(asked, other).satisfied

    @pytest.mark.parametrize(
        ("listing", "says"),
        [
            (TableListing(TableState.UNPARTITIONED), "holds data without partitions"),
            (TableListing.of("day", ["2026-06-01"]), "is partitioned by day, not by ds"),
        ],
    )
    def test_that_the_table_can_never_hold_are_an_error(self, listing, says):
        with pytest.raises(CatalogError, match=says):
            labels_ready(wait("2026-06-01"), listing)
        with pytest.raises(CatalogError, match=says):
            check_shape("raw.orders", "ds", listing)


class TestLookback:
    HOLED = landed("2026-05-28", "2026-05-30", "2026-06-01")

    @pytest.mark.parametrize(
        ("policy", "ready"), [(Lookback.REQUIRE, False), (Lookback.WARN, True), (Lookback.IGNORE, True)]
    )
    def test_ends_the_wait_as_its_policy_says(self, policy, ready):
        # C17
        verdict = labels_ready(wait("2026-06-01", **lookback("2026-05-25", "2026-05-31", policy)), self.HOLED)
        assert verdict.satisfied is ready
        text = "the lookback of raw.orders has holes: ds=2026-05-29, 2026-05-31"
        assert verdict.reason == ("" if policy is Lookback.IGNORE else text)

    def test_has_no_hole_before_the_first_landed_label(self):
        # C17
        asked = wait("2026-06-01", **lookback(None, "2026-05-31"))
        assert [str(hole) for hole in lookback_holes(asked, self.HOLED)] == ["2026-05-29", "2026-05-31"]
        assert lookback_holes(asked, landed("2026-06-01")) == ()
        assert lookback_holes(asked, landed()) == ()

    def test_is_asked_only_once_the_labels_are_there(self):
        verdict = labels_ready(wait("2026-06-02", **lookback("2026-05-25", "2026-06-01")), self.HOLED)
        assert verdict.reason == "raw.orders lacks ds=2026-06-02"

    def test_does_not_mind_labels_of_another_shape(self):
        assert first_landed(DAILY, frozenset({"__HIVE_DEFAULT_PARTITION__", "2026-05-02"})) == parse_instant(
            "2026-05-02T00:00:00Z"
        )
        assert first_landed(DAILY, frozenset({"x"})) is None

    @given(present=st.sets(st.integers(0, 40)), first=st.integers(0, 40), length=st.integers(0, 40))
    def test_holes_and_landed_labels_are_the_whole_range(self, present, first, length):
        spec = PartitionSpec(PartitionGrid(3 * HOUR, HOUR), partition_format("yyyy-MM-dd-HH-mm"))
        start_of = [T0 + HOUR + number * 3 * HOUR for number in range(90)]
        labels = frozenset(spec.label(start_of[number]) for number in present)
        holes = missing_ranges(spec, start_of[first], start_of[first + length], labels)
        missing = set()
        for hole in holes:
            assert hole.first is not None
            missing |= set(spec.labels(spec.start_of(hole.first), spec.start_of(hole.last) + 1))
        asked = set(spec.labels(start_of[first], start_of[first + length] + 1))
        assert missing == asked - labels
        ends = [(spec.start_of(hole.first), spec.start_of(hole.last)) for hole in holes if hole.first]
        for (_, last), (following, _) in pairwise(ends):
            assert following > last + 3 * HOUR  # neighbours are one range


class TestNewestValue:
    UNTIL = Wait("raw.clicks", "ts", until=T0)

    def test_must_reach_the_instant(self):
        # C18: at or past
        assert newest_ready(self.UNTIL, T0) == Readiness(True)
        late = newest_ready(self.UNTIL, T0 - 1)
        assert late == Readiness(
            False, "the newest ts of raw.clicks is 2026-05-31T23:59:59Z, needed up to 2026-06-01T00:00:00Z"
        )
        assert newest_ready(self.UNTIL, None).reason == "raw.clicks holds no ts yet, needed up to 2026-06-01T00:00:00Z"


class TestExpression:
    def test_is_true_or_not(self):
        # C19
        asked = wait("2026-06-01", expression="count(*) > 0")
        assert expression_ready(asked, True) == Readiness(True)
        for value in (False, None):
            assert expression_ready(asked, value) == Readiness(False, f"count(*) > 0 over raw.orders is {value}")

    def test_or_a_label_that_is_greater_than_the_newest_needed_one(self):
        # C19: greater, not equal
        asked = wait("2026-06-01", "2026-06-02", expression="max(ds)")
        assert not expression_ready(asked, "2026-06-02").satisfied
        assert expression_ready(asked, "2026-06-03").satisfied
        assert (
            expression_ready(asked, "2026-06-02").reason == "max(ds) over raw.orders is 2026-06-02, not past 2026-06-02"
        )

    def test_compares_labels_in_time_and_not_as_text(self):
        spec = PartitionSpec(PartitionGrid(DAY), partition_format("d-M-yyyy"))
        asked = wait("9-6-2026", expression="max(ds)", spec=spec)
        assert expression_ready(asked, "10-6-2026").satisfied

    @pytest.mark.parametrize("value", [7, 1.5, "soon"])
    def test_that_is_no_label_is_an_error(self, value):
        with pytest.raises(CatalogError, match=re.escape(repr(value))):
            expression_ready(wait("2026-06-01", expression="max(ds)"), value)

    def test_without_labels_to_compare_with_must_be_a_truth(self):
        with pytest.raises(CatalogError, match="true or false"):
            expression_ready(Wait("raw.clicks", expression="max(ts)"), "2026-06-01")


class CountingFormat(PartitionFormat):
    """A format that counts the labels it writes."""

    written = 0

    def encode(self, instant: int) -> str:
        CountingFormat.written += 1
        return super().encode(instant)


class TestALookbackOfCenturies:
    """One old folder, or one lookback of a hundred years, on a grid of minutes: it takes no longer than any other (S7)."""

    SPEC = PartitionSpec(PartitionGrid(MINUTE), CountingFormat("yyyy-MM-dd-HH-mm"))

    def asked(self, first: str | None) -> Wait:
        needed = tuple(map(PartitionKey, ("2026-06-01-00-00",)))
        back = PartitionRange(PartitionKey(first) if first else None, PartitionKey("2026-05-31-23-59"))
        return Wait("raw.minutes", "ds", needed, spec=self.SPEC, lookback=back, policy=Lookback.REQUIRE)

    @pytest.mark.parametrize("first", [None, "1926-06-01-00-00"])
    def test_its_holes_are_told_as_ranges_without_writing_every_label(self, first: str | None):
        listing = landed("1970-01-01-00-00", "2026-05-31-23-58", "2026-06-01-00-00")
        CountingFormat.written = 0
        readiness = labels_ready(self.asked(first), listing)
        assert not readiness.satisfied
        assert "has holes: ds=1970-01-01-00-01 to 2026-05-31-23-57, 2026-05-31-23-59" in readiness.reason
        assert CountingFormat.written < 25_000

    def test_the_newest_of_what_is_missing_are_those_that_are_asked_about(self):
        missing = missing_labels(self.asked(None), landed("1970-01-01-00-00", "2026-06-01-00-00"))
        assert len(missing) == 10_000 and missing[-1] == "2026-05-31-23-59"
        assert list(missing) == sorted(missing)
