"""``airflow chronon …`` offers the commands of ``airflow-chronon``, and takes Airflow's configuration and connection."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from airflow.cli.cli_config import GroupCommand
from airflow.models.connection import Connection

from airflow_chronon.airflow.cli import _find_connection, get_chronon_commands
from airflow_chronon.airflow.hooks import find_connection
from airflow_chronon.airflow_api.login import EDITORS, Login
from airflow_chronon.cli.main import COMMANDS
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.confs import staging_query
from tests.support.stub_server import StubServer, stub_server


def run(name: str, *arguments: str) -> int:
    """Run a command as ``airflow`` does, and return its exit code."""
    (group,) = get_chronon_commands()
    assert isinstance(group, GroupCommand)
    (command,) = [each for each in group.subcommands if each.name == name]
    parser = argparse.ArgumentParser()
    for each in command.args:  # type: ignore[union-attr]
        each.add_to_parser(parser)
    with pytest.raises(SystemExit) as ended:
        command.func(parser.parse_args(arguments))  # type: ignore[union-attr]
    return int(ended.value.code or 0)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfRootOnDisk:
    """A conf root that only Airflow's configuration names."""
    found = ConfRootOnDisk(tmp_path / "root")
    found.write("staging_query", "shop.one__1", staging_query("shop.one__1"))
    for option, value in (("CONF_ROOT", found.path), ("STATE_ROOT", tmp_path / "state")):
        monkeypatch.setenv(f"AIRFLOW__CHRONON__{option}", str(value))
    monkeypatch.delenv("AIRFLOW_CONN_CHRONON_AIRFLOW", raising=False)
    return found


@pytest.fixture
def airflow() -> Iterator[StubServer]:
    """An Airflow that has no DAG yet."""
    with stub_server() as running:
        running.reply("/api/v2/dags", (200, {"dags": [], "total_entries": 0}))
        running.reply("/api/v2/dags/~/dagRuns", (200, {"dag_runs": [], "total_entries": 0}))
        running.reply("/api/v2/assets", (200, {"assets": [], "total_entries": 0}))
        running.reply("/api/v2/importErrors", (200, {"import_errors": [], "total_entries": 0}))
        yield running


def test_airflow_can_build_every_command_and_option() -> None:
    (group,) = get_chronon_commands()  # an option that Airflow cannot build costs all of them
    assert isinstance(group, GroupCommand)
    assert [each.name for each in group.subcommands] == [command.name for command in COMMANDS]


def test_plan_asks_the_airflow_that_its_own_connection_names(
    root: ConfRootOnDisk, airflow: StubServer, session: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with connections(airflow.url, chronon_airflow="admin"):
        assert run("plan", "--format", "json") == 0
    assert any(each.get("dag_id") == "staging_query.shop.one__1" for each in json.loads(capsys.readouterr().out))
    assert airflow.asked("/auth/token") == 1


def test_the_connection_of_the_reconciler_wins_over_that_of_tasks_which_may_only_read(
    root: ConfRootOnDisk, airflow: StubServer, session: Any
) -> None:  # S10
    with connections(airflow.url, chronon_airflow="reader", chronon_reconciler="editor"):
        login = _find_connection()
    assert login is not None and login.user == "editor"


def test_so_it_does_for_the_reconciler(monkeypatch: pytest.MonkeyPatch) -> None:  # S10
    monkeypatch.setenv("AIRFLOW_CONN_CHRONON_AIRFLOW", "chronon-airflow://reader:a@one")
    assert [find_connection(*ids) for ids in (EDITORS, ())] == [Login("http://one", "reader", "a")] * 2
    monkeypatch.setenv("AIRFLOW_CONN_CHRONON_RECONCILER", "chronon-airflow://editor:b@one")
    assert find_connection(*EDITORS) == Login("http://one", "editor", "b")
    assert find_connection() == Login("http://one", "reader", "a")


@contextmanager
def connections(url: str, **users: str) -> Iterator[None]:
    """Airflow's database with connections to ``url``, by their ids."""
    from airflow.utils.session import create_session

    with create_session() as kept:
        for name, user in users.items():
            kept.add(Connection(conn_id=name, conn_type="chronon_airflow", host=url, login=user, password="secret"))
    try:
        yield
    finally:
        with create_session() as kept:
            kept.query(Connection).filter(Connection.conn_id.in_(users)).delete()


def test_without_a_connection_it_names_the_command_that_makes_it(
    root: ConfRootOnDisk, session: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan") == 2
    said = capsys.readouterr().err
    assert "Airflow has no connection chronon_airflow" in said
    assert "airflow connections add chronon_airflow --conn-type chronon_airflow" in said


def test_what_needs_no_airflow_does_not_look_for_a_connection(
    root: ConfRootOnDisk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise AssertionError

    monkeypatch.setattr("airflow_chronon.airflow.cli._find_connection", refuse)
    assert run("check") == 0
    assert "1 good" in capsys.readouterr().out
