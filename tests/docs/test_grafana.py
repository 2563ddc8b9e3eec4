"""The dashboard against the code: each metric and label that it asks for is one that leaves Airflow, and none is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from pytest_mock import MockerFixture

from airflow_chronon.airflow.metrics import Gauge, tell
from tests.support.checkout import ROOT

DASHBOARD = json.loads((ROOT / "docs" / "grafana.json").read_text())
PAGE = (ROOT / "docs" / "metrics.md").read_text()
LABELS = {"dag_id", "team"}
METRICS = {f"airflow_{each.value}".replace(".", "_") for each in Gauge}

_METRIC = re.compile(r"\bairflow_\w+")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
_BY = re.compile(r"\bby \(([^)]*)\)")
_LABEL_OF = re.compile(r"label_values\(.*,\s*(\w+)\)")


def queries(found: Any = DASHBOARD) -> Iterator[str]:
    """Every expression of panels and variables."""
    if isinstance(found, dict):
        yield from (each for name in ("expr", "definition") if isinstance(each := found.get(name), str))
        found = list(found.values())
    for each in found if isinstance(found, list) else ():
        yield from queries(each)


def labels_of(query: str) -> set[str]:
    grouped = [label.strip() for group in _BY.findall(query) for label in group.split(",")]
    return {*_MATCHER.findall(query), *grouped, *_LABEL_OF.findall(query)}


def test_every_metric_and_label_of_the_dashboard_is_told() -> None:
    for query in queries():
        asked = set(_METRIC.findall(query))
        assert asked, query
        assert asked <= METRICS
        assert labels_of(query) <= LABELS, query


def test_the_dashboard_shows_every_metric_by_every_label() -> None:
    assert {name for query in queries() for name in _METRIC.findall(query)} == METRICS
    assert {label for query in queries() for label in labels_of(query)} == LABELS


def test_the_legends_and_variables_of_the_dashboard_are_there() -> None:
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    text = json.dumps(DASHBOARD)
    assert set(re.findall(r"\$\{?([a-z]\w*)", text)) == variables
    assert set(re.findall(r"\{\{(\w+)\}\}", text)) <= LABELS


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    cells: list[tuple[int, int]] = []
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells += [(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])]
    assert len(set(cells)) == len(cells)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize("each", list(Gauge))
def test_the_mapping_of_the_page_gives_each_name_and_label(each: Gauge, mocker: MockerFixture) -> None:
    """StatsD without tags, through the page's mapping of the StatsD exporter, whose ``*`` is one level of a name."""
    (mapping,) = next(
        found["mappings"]
        for block in re.findall(r"```yml\n(.*?)```", PAGE, re.S)
        if "mappings" in (found := yaml.safe_load(block))
    )
    mocker.patch("airflow_chronon.airflow.metrics._has_tags", return_value=False)
    gauge = mocker.patch("airflow_chronon.airflow.metrics.gauge")
    tell(each, 1, dag_id="group_by.shop.purchases.daily__3", team="shop.eu")
    told = f"airflow.{gauge.call_args.args[0]}"
    match = re.fullmatch(re.escape(mapping["match"]).replace(r"\*", r"([^.]*)"), told)
    assert match is not None
    name, *labels = (match.expand(text.replace("$", "\\")) for text in (mapping["name"], *mapping["labels"].values()))
    assert name == f"airflow_{each.value}".replace(".", "_")
    assert dict(zip(mapping["labels"], labels, strict=True)) == {
        "team": "shop__eu",
        "dag_id": "group_by__shop__purchases__daily__3",
    }


def test_the_page_names_every_gauge() -> None:
    for each in Gauge:
        assert f"| `{each.value}` |" in PAGE
    assert set(_METRIC.findall(PAGE)) >= METRICS
