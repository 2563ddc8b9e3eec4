"""The setting ``max_lag``: of which tables it holds, and where it is refused (C16, C17)."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.waits.max_lag import MaxLag
from tests.support.confs import dependency, entities, events, group_by, plan_of, staging_query, verdict_on


def settings(max_lag: Any, **more: Any) -> Settings:
    return Settings.model_validate({"max_lag": max_lag, **more})


WINDOWED = group_by(sources=[events(topic=None)], windows=["7d"], schedule="@daily")
ENTITIES = group_by(sources=[entities("data.accounts")], schedule="@daily")
ANY = {"partitions": 2, "after": "1h"}


def lags(document: Any, max_lag: Any, **more: Any) -> dict[str, MaxLag | None]:
    plan = plan_of(document, settings=settings(max_lag, **more))
    return {each.table: each.max_lag for found in plan.dependencies.values() for each in found}


def test_it_holds_for_what_a_window_reads() -> None:
    assert lags(WINDOWED, ANY) == {"data.events": MaxLag(2, HOUR)}
    assert lags(WINDOWED, None) == {"data.events": None}
    assert plan_of(WINDOWED, settings=settings(ANY)).may_lag


def test_a_table_may_have_its_own() -> None:
    both = group_by(sources=[events("data.events"), events("vendor.clicks")], windows=["7d"], schedule="@daily")
    own = {"match": "vendor.*", "partitions": 5, "after": "3h"}
    assert lags(both, {**ANY, "tables": [own]}) == {
        "data.events": MaxLag(2, HOUR),
        "vendor.clicks": MaxLag(5, 3 * HOUR),
    }
    assert lags(both, {"tables": [own]}) == {"data.events": None, "vendor.clicks": MaxLag(5, 3 * HOUR)}
    none = {"match": "vendor.*", "partitions": 0}
    assert lags(both, {**ANY, "tables": [none]}) == {"data.events": MaxLag(2, HOUR), "vendor.clicks": None}
    later = {"match": "vendor.*", "partitions": 1}
    assert lags(both, {**ANY, "tables": [later]})["vendor.clicks"] == MaxLag(1, HOUR)


EXACT = "one exact snapshot of it is read"


@pytest.mark.parametrize(
    ("document", "table", "why"),
    [
        pytest.param(ENTITIES, "data.accounts", EXACT, id="a snapshot"),
        pytest.param(
            group_by(sources=[events(isCumulative=True)], windows=["7d"], schedule="@daily"),
            "data.events",
            f"{EXACT}, the newest of a cumulative table",
            id="a cumulative table",
        ),
        pytest.param(
            staging_query(dependencies=[dependency("data.events")]), "data.events", EXACT, id="the run's own days"
        ),
        pytest.param(
            staging_query(dependencies=[dependency("data.events", start="7d", timePartitioned=True)]),
            "data.events",
            "it is waited for by a time or an expression",
            id="a time-partitioned table",
        ),
    ],
)
def test_it_is_refused_where_an_older_partition_is_not_read(document: Any, table: str, why: str) -> None:  # C16, C18
    named = verdict_on(document, settings=settings({"tables": [{"match": table, **ANY}]}))
    assert isinstance(named, RejectedConf)
    (fault,) = named.faults
    assert (fault.rule, fault.field) == ("C17", "max_lag.tables")
    assert f"max_lag cannot hold for {table}: {why}" in str(fault)
    assert "Leave this table out, or give it partitions: 0." in str(fault)
    plan = plan_of(document, settings=settings(ANY))
    assert not plan.may_lag
    (warning,) = [each for each in plan.warnings if "max_lag" in each.message]
    assert f"max_lag cannot hold for {table}: {why}" in str(warning)


def test_a_time_that_no_wait_lasts_is_refused() -> None:
    verdict = verdict_on(WINDOWED, settings=settings({"partitions": 1, "after": "2d"}, sensor={"timeout": "2d"}))
    assert isinstance(verdict, RejectedConf)
    (fault,) = verdict.faults
    assert "it holds after 2d, and a wait ends after 2d (sensor.timeout)" in str(fault)


def test_it_may_hold_for_some_confs() -> None:
    override = {"match": "team:t", "max_lag": ANY}
    assert lags(WINDOWED, None, overrides=[override]) == {"data.events": MaxLag(2, HOUR)}
    assert lags(WINDOWED, ANY, overrides=[{"match": "team:t", "max_lag": None}]) == {"data.events": None}
