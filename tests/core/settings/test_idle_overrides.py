"""Overrides that apply to nothing are reported."""

from __future__ import annotations

import pytest

from airflow_chronon.core.jobs.idle_overrides import idle_overrides
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import Document, conf_of, staging_query


def idle(*patterns: str, conf: Document | None = None) -> list[str]:
    settings = Settings.model_validate({"overrides": [{"match": each, "retries": 0} for each in patterns]})
    confs = [conf_of(conf or staging_query("lab.s.x__1"))]
    return [fault.field for fault in idle_overrides(settings, confs, (), branch="main", file="chronon.yaml")]


@pytest.mark.parametrize(
    "pattern",
    ["staging_query/lab.s.x__1", "staging_query/lab.*", "*", "team:lab", "grid:1d", "version:1", "unscheduled"],
)
def test_what_is_for_something_is_not_reported(pattern: str) -> None:
    assert idle(pattern) == []


@pytest.mark.parametrize("pattern", ["lab.s.x__1", "group_by/lab.*", "team:lob", "grid:3h"])
def test_what_is_for_nothing_is_reported_with_its_place(pattern: str) -> None:
    assert idle("*", pattern) == ["chronon.yaml overrides[1]"]


def test_with_a_conf_that_has_no_grid_nobody_knows() -> None:
    assert idle("grid:3h", conf=staging_query("lab.s.x__1", interval="7h")) == []
