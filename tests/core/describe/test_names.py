"""Names for lists and grids: short, the telling part in sight, no two alike."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.describe.names import SEEN, display_name, wait_names


def test_a_dag_is_called_by_its_conf_first():
    assert display_name("staging_query/commerce.orders.daily__1") == "commerce.orders.daily__1 (staging query)"
    assert display_name("group_by/a.b__2", namespace_prefix="try%2Fv4--") == "a.b__2 (group by, branch try/v4)"
    assert display_name("job/etl.ingest") == "etl.ingest (job)"


def test_tables_of_one_team_stay_apart_in_the_narrow_column_of_the_grid():
    daily, three_hourly = "commerce.commerce_orders_daily__1", "commerce.commerce_orders_three_hourly__1"
    assert wait_names([daily, three_hourly]) == {daily: "orders_daily__1", three_hourly: "orders_three_hourly__1"}


def test_a_long_name_shows_its_end_in_whole_words():
    table = "checkout_features.checkout_purchases_from_staging_hourly__12"
    assert wait_names([table]) == {table: "…staging_hourly__12"}


def test_the_uploads_that_a_join_serves_from_are_whole_words_and_stay_apart():
    tables = [f"commerce.commerce_purchases_{each}__1__upload" for each in ("hourly", "three_hourly", "daily")]
    assert [wait_names(tables)[table] for table in tables] == [
        "…hourly…upload",
        "…three_hourly…upload",
        "…daily__1__upload",
    ]


def test_the_first_word_tells_apart_what_ends_alike():
    tables = [f"commerce.commerce_{each}_of_every_hour__1__upload" for each in ("payments", "purchases")]
    assert list(wait_names(tables).values()) == ["payments…1__upload", "purchases…1__upload"]


@given(st.lists(st.from_regex(r"[a-z]{2,9}(_[a-z]{2,9}){0,5}__[0-9]{1,2}(__upload)?", fullmatch=True), min_size=1))
def test_no_word_of_a_single_wait_is_cut(names):
    table = f"shop.{names[0]}"
    assert set(re.split(r"[_…]+", wait_names([table])[table])) <= {*re.split("_+", names[0]), ""}


def test_the_namespace_stands_where_it_tells_tables_apart():
    assert wait_names(["a.orders", "b.orders", "c.visits"]) == {
        "a.orders": "a.orders",
        "b.orders": "b.orders",
        "c.visits": "visits",
    }


def test_tables_that_differ_where_nobody_sees_it_are_numbered():
    alike = [f"n.{'a' * 40}{middle}{'z' * 40}" for middle in "xy"]
    assert list(wait_names(alike).values()) == [f"1: …{'z' * 21}", f"2: …{'z' * 21}"]


@given(st.lists(st.text(alphabet="ab_.", min_size=1, max_size=60), unique=True))
def test_no_two_are_alike_in_what_is_seen_and_the_order_does_not_matter(tables):
    names = wait_names(tables)
    assert set(names) == set(tables)
    assert len({name[:SEEN] for name in names.values()}) == len(tables)
    assert wait_names(reversed(tables)) == names
