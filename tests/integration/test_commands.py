"""Airflow's own commands know the provider, and ours answers inside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from airflow_api import wait_until
from compiled_confs import staging_query
from deployment import Deployment

LOGGED = re.compile(r"\d{4}-\d{2}-\d{2}T")
GOOD = staging_query("commands.good")
BAD = staging_query("commands.bad", schedule="@weekly")


@pytest.fixture(scope="module")
def commands(deployment: Deployment) -> Iterator[Deployment]:
    deployment.drop(BAD)
    deployment.deploy(GOOD)
    wait_until(lambda: BAD.name in "".join(deployment.import_errors()), timeout=60, why="the bad conf shows")
    yield deployment
    deployment.withdraw(GOOD, BAD)


def _answer(deployment: Deployment, *arguments: str, code: int = 0) -> Any:
    """The JSON that a command prints, without the lines that Airflow logs of itself."""
    done = deployment.real.server.run(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads("\n".join(line for line in done.stdout.splitlines() if not LOGGED.match(line)))


def test_airflow_lists_the_provider_and_its_plugin(commands: Deployment) -> None:
    (provider,) = (
        each
        for each in _answer(commands, "providers", "list", "-o", "json")
        if each["package_name"] == "airflow-chronon"
    )
    assert "one DAG per conf version" in provider["description"]
    (plugin,) = (each for each in _answer(commands, "plugins", "-o", "json") if each["name"] == "chronon")
    assert "PartitionTimetable" in str(plugin)


def test_airflow_lists_the_bad_conf_and_nothing_good(commands: Deployment) -> None:
    (error,) = _answer(commands, "dags", "list-import-errors", "-o", "json", code=1)
    assert error["filepath"].endswith("chronon_import_errors.py")
    assert f"staging_query/{BAD.name}" in error["error"] and "@weekly" in error["error"]
    assert GOOD.name not in error["error"]


def test_airflow_chronon_check_tells_good_from_bad(commands: Deployment) -> None:
    root = str(commands.real.conf_root)
    verdicts = _answer(commands, "chronon", "check", "--root", root, "--format", "json", code=1)
    assert verdicts[f"staging_query/{GOOD.name}"]["status"] == "ok"
    assert verdicts[f"staging_query/{BAD.name}"]["status"] == "rejected"
