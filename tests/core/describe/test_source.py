"""A conf as it is shown: bounded, as it was written, never with a secret (S1)."""

from __future__ import annotations

import json

import pytest

from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.source import SHOWN_ON_PAGE, json_of, page_source
from airflow_chronon.errors import without_passwords
from tests.support.confs import events, group_by, join, judge, staging_query


def conf_with(query: str):
    [plan] = judge({**staging_query("t.s.x__1"), "query": query}).values()
    assert isinstance(plan, ConfPlan)
    return plan.conf


def test_a_long_query_is_cut_and_says_so():
    shown = page_source(conf_with("SELECT " + "x" * (2 * SHOWN_ON_PAGE)))
    assert len(shown) < SHOWN_ON_PAGE + 100
    assert shown.endswith(f"and {SHOWN_ON_PAGE + 7} characters more, in the file.")


def test_a_query_cannot_end_its_block():
    assert page_source(conf_with("SELECT '```' AS a")).startswith("````sql\n")


def test_what_may_be_a_secret_is_hidden_wherever_it_stands():
    custom = json.dumps({"airflow": {"env": {"TOKEN": "hush1"}}, "note": "stays"})
    document = {
        "metaData": {"customJson": custom, "executionInfo": {"conf": {"common": {"fs.s3a.secret.key": "hush2"}}}},
        "parts": [{"password": "hush3", "url": "jdbc:x://me:hush4@host/db", "name": "stays too"}],
        "access_keys": ["hush5"],
    }
    shown = json_of(document)
    assert not [secret for secret in ("hush1", "hush2", "hush3", "hush4", "hush5") if secret in shown]
    assert "stays" in shown and "stays too" in shown and "jdbc:x://me:***@host/db" in shown


@pytest.mark.parametrize("broken", ["{broken hush", "broken hush", '{"hush":' * 50_000, "1" * 5_000 + "hush"])
def test_custom_json_that_cannot_be_read_is_hidden(broken):
    assert "hush" not in json_of({"parts": [{"customJson": broken}]})


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("holding", [{"password": "hush"}, [{"password": "hush"}]])
def test_custom_json_hides_its_secrets_however_often_it_is_text_in_text(holding, levels):
    text: object = holding
    for _ in range(levels):
        text = json.dumps(text)
    assert "hush" not in json_of({"customJson": text})


def test_what_a_conf_computes_stands_before_what_airflow_cuts_off():
    left = events("data.orders")
    parts = [group_by(f"t.g.part{number}__1", sources=[events("data.orders")]) for number in range(12)]
    conf = join("t.j.x__1", left=left, parts=parts, schedule="@daily")
    shown = json_of({"metaData": conf["metaData"], **conf})
    assert list(json.loads(shown))[-1] == "metaData"
    assert shown.index('"left"') < shown.index('"metaData": {')
    assert shown.count('"outputNamespace"') == 1  # of the parts only their names
    assert all(f"t.g.part{number}__1" in shown for number in range(12))


def test_a_password_may_hold_any_sign():
    shown = without_passwords("jdbc:x://me:hu/sh@1:hush@host/db and s3://bucket/a")
    assert shown == "jdbc:x://me:***@host/db and s3://bucket/a"


def test_a_block_of_fences_is_no_longer_than_a_page():
    assert len(page_source(conf_with("`" * 1_000_000))) < 4 * SHOWN_ON_PAGE
