"""Placeholders anywhere in the arguments of an operator."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_chronon.core.settings.argument_templates import Values, filled_arguments, names_in, template_problem

VALUES: Values = {
    "partition_key": "2026-06-01",
    "table": "shop.t",
    "env": {"A": "1", "B": "2"},
    "spark_conf": {"spark.x": "y"},
}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{table}/{partition_key}", "shop.t/2026-06-01"),
        ("{{table}}", "{table}"),
        (["--ds={partition_key}", 3, None, True], ["--ds=2026-06-01", 3, None, True]),
        ({"{table}": {"below": ["{table}"]}}, {"shop.t": {"below": ["shop.t"]}}),
        ("{env}", {"A": "1", "B": "2"}),
        ({"spec": {"env": "{env}"}}, {"spec": {"env": {"A": "1", "B": "2"}}}),
        (
            {"{spark_conf}": "{spark_conf}", "spark.executorEnv.{env}": "{env}", "spark.y": "{table}"},
            {"spark.x": "y", "spark.executorEnv.A": "1", "spark.executorEnv.B": "2", "spark.y": "shop.t"},
        ),
        (
            {"{env}": {"name": "{env}", "of": "{table}"}},
            {"A": {"name": "1", "of": "shop.t"}, "B": {"name": "2", "of": "shop.t"}},
        ),
    ],
)
def test_a_template_is_filled_in_wherever_it_has_placeholders(template: Any, filled: Any) -> None:
    assert template_problem(template, texts=("partition_key", "table"), mappings=("env", "spark_conf")) is None
    assert filled_arguments(template, VALUES) == filled


def test_what_a_value_holds_is_no_placeholder() -> None:
    assert filled_arguments({"a": "{table}", "{env}": "{env}"}, {"table": "{env}", "env": {"{x}": "{table}"}}) == {
        "a": "{env}",
        "{x}": "{table}",
    }


def test_the_names_of_a_template() -> None:
    assert names_in({"{env}": ["{table}", 1, {"a": "{{x}} {partition_key}"}]}) == {"env", "table", "partition_key"}


@pytest.mark.parametrize(
    ("template", "problem", "remedy"),
    [
        ("{day}", r"the placeholder \{day\} of a is not known", "use partition_key, table, env, spark_conf"),
        ("{table!r}", r"\{table\} of a is not known", "use"),
        ({"b": ["x", "{day}"]}, r"\{day\} of a.b\[1\] is not known", "use"),
        ("{", "a: Single '{' encountered", "write {{ and }} for braces"),
        ("--env {env}", r"\{env\} is a mapping, and a puts it into a text", r'in a key: "prefix.\{env\}": "\{env\}"'),
        ({"{env}{spark_conf}": ""}, "has two mappings", r"write one of \{env\} and \{spark_conf\}"),
        ({"{day}": 1}, r"the placeholder \{day\} of the key a.\{day\} is not known", "use"),
        ({1: 2}, "the key a.1 is not text", "write it in quotes"),
        ({"b": {1, 2}}, "a.b is a set", "write text, numbers, true, false, lists and mappings only"),
        ({"{env}": "{env}", "b": "x{env}"}, r"\{env\} is a mapping, and a.b puts it into a text", "give it alone"),
    ],
)
def test_a_mistake_is_one_sentence(template: Any, problem: str, remedy: str) -> None:
    found = template_problem(template, texts=("partition_key", "table"), mappings=("env", "spark_conf"), place="a")
    assert found is not None
    assert re.search(problem, found[0])
    assert re.search(remedy, found[1])
