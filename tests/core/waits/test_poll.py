"""One look at a table answers every wait on it (C17 to C19)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.catalog import FakeCatalog
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.core.waits.poll import Observation, Query, beyond_now, judge, observe, queries_of, query_of
from airflow_chronon.core.waits.readiness import Readiness
from airflow_chronon.errors import CatalogError, Fault
from tests.support.confs import at

LABELS = Wait("t", "ds", (PartitionKey("2026-06-01"),))
NEWEST = Wait("t", "ts", until=100)
VALUE = Wait("t", expression="count(*) > 0")


def test_every_wait_is_one_question():
    assert query_of(LABELS) == Query("labels")
    assert query_of(NEWEST) == Query("newest", "ts")
    assert query_of(VALUE) == Query("value", "count(*) > 0")


def test_an_expression_is_asked_in_place_of_its_labels():
    # C19
    assert query_of(Wait("t", labels=LABELS.labels, expression="max(ds)")) == Query("value", "max(ds)")


def test_the_same_question_is_asked_once_in_a_fixed_order():
    other = Wait("t", "ds", (PartitionKey("2026-06-02"),))
    asked = queries_of([VALUE, LABELS, other, NEWEST])
    assert asked == queries_of([NEWEST, other, LABELS, VALUE])
    assert len(asked) == 3


def test_one_look_answers_all_of_them():
    catalog = FakeCatalog(
        {"t": TableListing.of("ds", ["2026-06-01"])}, {("t", "ts"): 100}, {("t", "count(*) > 0"): True}
    )
    waits = (LABELS, NEWEST, VALUE)
    observation = observe(catalog, "t", queries_of(waits))
    assert catalog.calls == ["t", "t", "t"]
    assert judge(waits, observation) == Readiness(True)


def test_all_that_is_missing_is_said_once():
    observation = observe(FakeCatalog(), "t", queries_of([LABELS, NEWEST]))
    verdict = judge([LABELS, LABELS, NEWEST], observation)
    assert verdict == Readiness(
        False, "t is not there yet; t holds no ts yet, needed up to 1970-01-01T00:01:40Z; looked for in memory/t"
    )


def test_a_catalog_that_cannot_answer_is_no_verdict():
    class Broken(FakeCatalog):
        def list_partitions(self, table: str) -> TableListing:
            raise CatalogError(Fault("input", table, "no rights", "ask for them"))

    observation = observe(Broken(), "t", [Query("labels")])
    assert observation == Observation({}, "t: no rights (input). Ask for them.")
    assert judge([LABELS], observation) == Readiness(False, "t: no rights (input). Ask for them.")


def test_a_table_that_can_never_hold_the_labels_is_an_error():
    observation = Observation({Query("labels"): TableListing(TableState.UNPARTITIONED)})
    with pytest.raises(CatalogError, match="without partitions"):
        judge([LABELS], observation)


@pytest.mark.parametrize(
    ("newest", "is_odd"), [("2099-01-01", True), ("2026-06-02 12:00", False), ("2026-05-31", False)]
)
def test_a_newest_value_beyond_tomorrow_is_odd(newest: str, is_odd: bool) -> None:  # C18
    seen = Observation({Query("newest", "ts"): at(newest), Query("labels"): TableListing.of("ds", ["2099-01-01"])})
    told = beyond_now(seen, now=at("2026-06-01 12:00"))
    assert bool(told) == is_odd
    assert ("2099-01-01T00:00:00Z" in told and "every wait" in told) or not is_odd
