"""The page of a conf."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.description import Neighbours
from airflow_chronon.core.describe.page import plan_page
from tests.support.confs import dependency, judge, staging_query

CORPUS = Path(__file__).resolve().parents[2] / "data" / "main"


@pytest.fixture(scope="module")
def plans() -> dict[str, ConfPlan]:
    verdicts = read_conf_root(CORPUS, environ={}).judge()
    return {key: verdict for key, verdict in verdicts.items() if isinstance(verdict, ConfPlan)}


def page_of(plans: dict[str, ConfPlan], key: str, consumers: tuple[str, ...] = ()) -> str:
    dag_ids = {plan.key: plan.dag_id for plan in plans.values()}
    return plan_page(plans[key], neighbours=Neighbours(dag_ids, {key: frozenset(consumers)}))


def section(page: str, title: str) -> list[str]:
    return page.split(f"#### {title}\n\n")[1].split("\n\n")[0].splitlines()


def test_every_table_of_every_page_has_as_many_cells_in_each_line(plans):
    for key in plans:
        block: list[int] = []
        for line in [*page_of(plans, key).splitlines(), ""]:
            if line.startswith("|"):
                block.append(line.replace("\\|", "").count("|"))
            else:
                assert len(set(block)) <= 1, key
                block = []


def test_the_reference_week_shows_what_a_fire_writes_and_waits_for(plans):
    # C8
    rows = section(page_of(plans, "staging_query/checkout.orders.daily_default__1"), "Runs of a reference week")
    assert rows[2] == "| 2026-06-01T00:00:00Z | 2026-05-31 | backfill | 2026-05-31 | vendor.orders ds=2026-05-31 |"
    assert len(rows) == 2 + 7


def test_a_weekly_run_shows_the_whole_week(plans):
    # C9
    [row] = section(page_of(plans, "staging_query/checkout.orders.weekly_monday__1"), "Runs of a reference week")[2:]
    assert "2026-05-25 … 2026-05-31 (7)" in row


def test_a_conf_that_reads_many_tables_counts_them_and_lists_those_of_one_run(plans):
    page = page_of(plans, "join/checkout.training.daily_join__1")
    rows = section(page, "Runs of a reference week")[2:]
    assert len(rows) == 7 and all(len(row) < 150 for row in rows), rows[0]
    assert rows[0].endswith("| 3 tables |")
    listed = page.partition("The backfill of 2026-05-31 waits for:\n\n")[2].partition("\n\n")[0].splitlines()
    assert len(listed) == 3 and all(line.startswith("* ") for line in listed)
    assert page.count(" waits for:") == 1


def test_a_start_date_far_from_the_reference_week_changes_none_of_its_runs(plans, tmp_path):
    (tmp_path / "compiled").symlink_to(CORPUS)
    (tmp_path / "chronon.yaml").write_text("start_date: 2030-01-01\n")
    later = read_conf_root(tmp_path, environ={}).judge()["staging_query/checkout.orders.daily_default__1"]
    assert isinstance(later, ConfPlan)
    page = plan_page(later)
    assert "no partition before 2030-01-01T00:00:00Z" in page
    assert len(section(page, "Runs of a reference week")) == 2 + 7


def test_a_page_without_catch_up_promises_no_missed_run(plans, tmp_path):
    # H8: and the date from which it may run is no promise of what lies between
    (tmp_path / "compiled").symlink_to(CORPUS)
    (tmp_path / "chronon.yaml").write_text("start_date: 2026-01-01\ncatchup: false\n")
    later = read_conf_root(tmp_path, environ={}).judge()["staging_query/checkout.orders.daily_default__1"]
    assert isinstance(later, ConfPlan)
    said = plan_page(later).partition("#### Schedule")[2].partition("####")[0]
    assert "After an outage only the newest run is made" in said and "caught up" not in said
    assert "no partition before 2026-01-01T00:00:00Z" in said


def test_an_unscheduled_conf_says_so(plans):
    # C12
    page = page_of(plans, "staging_query/checkout.orders.never_scheduled__1")
    assert "None: it runs when a partition is asked for." in page
    assert section(page, "Runs of a reference week")[0] == "None."


def test_consumers_are_in_a_fixed_order_and_distinguished_from_what_is_not_deployed(plans):
    known, gone = "join/checkout.training.daily_join__1", "group_by/a.gone__1"
    pages = {page_of(plans, "group_by/checkout.purchases.daily__3", order) for order in ((known, gone), (gone, known))}
    [page] = pages
    link = "[`join.checkout.training.daily_join__1`](dags/join.checkout.training.daily_join__1)"
    assert f"Consumers: group_by/a.gone__1 (not deployed), {link}." in page


def test_a_producer_and_its_consumer_name_each_other():
    producer, consumer = "t.s.raw__1", "t.s.clean__1"
    reads = staging_query(consumer, dependencies=[dependency("ns.t_s_raw__1")])
    plans = {key: verdict.need_plan() for key, verdict in judge(staging_query(producer), reads).items()}
    neighbours = Neighbours.of(plans.values())
    pages = {key: plan_page(plan, neighbours=neighbours) for key, plan in plans.items()}
    reader, writer = "staging_query.t.s.clean__1", "staging_query.t.s.raw__1"
    assert f"Consumers: [`{reader}`](dags/{reader})." in pages[f"staging_query/{producer}"]
    assert f"Producers: [`{writer}`](dags/{writer})." in pages[f"staging_query/{consumer}"]


def test_warnings_stand_on_the_page(plans):
    warned = next(key for key, plan in plans.items() if plan.warnings)
    page = page_of(plans, warned)
    assert "#### Warnings" in page
    for warning in plans[warned].warnings:
        assert f"* {warning}" in page


def test_it_ends_with_the_query_of_a_staging_query_and_with_the_json_of_another_conf(plans):
    query = page_of(plans, "staging_query/checkout.orders.daily_rollup_of_hourly__1").partition(
        "#### What it computes"
    )[2]
    assert query.strip().startswith("```sql\nSELECT") and query.endswith("```")
    document = page_of(plans, "group_by/checkout.purchases.daily__3").partition("#### What it computes")[2]
    assert document.strip().startswith("```json\n{") and '"keyColumns"' in document
    assert "executionInfo" not in document  # the page tells its metadata, and it may hold variables of the job


def test_nothing_on_a_page_needs_html(plans):
    # Airflow's UI leaves every tag out
    for key in plans:
        assert "<br" not in page_of(plans, key)
