"""``airflow chronon …`` offers the commands of ``airflow-chronon``, and takes Airflow's configuration and connection."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from airflow.cli.cli_config import GroupCommand
from airflow.dag_processing.bundles.base import BaseDagBundle
from airflow.models.connection import Connection
from airflow.sdk import BaseHook

from airflow_chronon.airflow.cli import _find_connection, get_chronon_commands
from airflow_chronon.airflow.hooks import find_connection
from airflow_chronon.airflow_api.login import EDITORS, Login
from airflow_chronon.cli.main import COMMANDS
from tests.support.checkout import ROOT
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.confs import staging_query
from tests.support.stub_server import StubServer, stub_server


@pytest.fixture(autouse=True)
def environment_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``airflow chronon`` puts into the environment ends with its test."""
    for name in ("AIRFLOW__CHRONON__BRANCH", "_AIRFLOW_PROCESS_CONTEXT"):
        monkeypatch.setenv(name, "of this test")  # so that it is taken back, whoever sets it
        monkeypatch.delenv(name)


class FetchedBundle(BaseDagBundle):
    """A DAG bundle of a repo elsewhere, as that of Git is: opened with a connection, fetched by the dag processor."""

    def __init__(self, *, tracking_ref: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.origin = BaseHook.get_connection("features_git")

    @property
    def path(self) -> Path:
        return self.base_dir / "tracking_repo" / "dags"

    def get_current_version(self) -> str | None:
        return "a1"

    def refresh(self) -> None:
        raise AssertionError("the dag processor alone fetches")


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


class TestBundles:
    """An Airflow whose DAGs come from Git: the commands read what its dag processor has fetched."""

    BUNDLE = "features"

    @pytest.fixture
    def checkout(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Any) -> ConfRootOnDisk:
        monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / "bundles"))
        self.configure(monkeypatch, self.BUNDLE)
        monkeypatch.setenv("AIRFLOW__CHRONON__STATE_ROOT", str(tmp_path / "state"))
        monkeypatch.setenv("AIRFLOW__CHRONON__CONF_ROOT", "")
        monkeypatch.delenv("AIRFLOW__CHRONON__CONF_ROOT")
        found = ConfRootOnDisk(tmp_path / "bundles" / self.BUNDLE / "tracking_repo" / "dags" / "chronon")
        found.write("staging_query", "shop.one__1", staging_query("shop.one__1"))
        return found

    def configure(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        bundles = [
            {"name": name, "classpath": f"{__name__}.FetchedBundle", "kwargs": {"tracking_ref": "try"}}
            for name in names
        ]
        monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps(bundles))

    @pytest.mark.parametrize("arguments", [(), ("--bundle", BUNDLE)], ids=["the only one", "named"])
    def test_plan_is_of_the_bundle_and_of_the_branch_that_it_follows(
        self,
        checkout: ConfRootOnDisk,
        airflow: StubServer,
        capsys: pytest.CaptureFixture[str],
        arguments: tuple[str, ...],
    ) -> None:  # C24
        with connections(airflow.url, chronon_airflow="admin", features_git="git"):
            assert run("plan", *arguments) == 0
        said = capsys.readouterr()
        assert "branch try in the DAG bundle features" in said.err
        assert "try--staging_query.shop.one__1" in said.out

    def test_its_json_is_json_alone(self, checkout: ConfRootOnDisk, airflow: StubServer) -> None:
        program = (
            "import sys; from airflow.__main__ import main; sys.argv = ['airflow', 'chronon', *sys.argv[1:]]; main()"
        )
        with connections(airflow.url, chronon_airflow="admin", features_git="git"):
            command = [sys.executable, "-c", program, "plan", "--format", "json"]
            said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, env=dict(os.environ))
        assert any(each.get("dag_id") == "try--staging_query.shop.one__1" for each in json.loads(said.stdout))

    def test_every_command_reads_it(
        self, checkout: ConfRootOnDisk, airflow: StubServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with connections(airflow.url, features_git="git"):
            assert run("check") == 0
        assert f"1 good, 0 of them with warnings; 0 rejected: {checkout.path}" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ((), "--bundle: it is not said which DAG bundle is meant"),
            (("--bundle", "feature"), "--bundle: Airflow has no DAG bundle 'feature'"),
        ],
    )
    def test_one_that_is_not_known_is_one_sentence_with_those_that_are(
        self,
        checkout: ConfRootOnDisk,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        arguments: tuple[str, ...],
        says: str,
    ) -> None:
        self.configure(monkeypatch, self.BUNDLE, "others")
        assert run("plan", *arguments) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert line == f"{says} (input). Name one of features, others, or a conf root with --root."

    def test_one_that_is_not_fetched_here_is_one_sentence_unless_a_root_is_named(
        self,
        checkout: ConfRootOnDisk,
        airflow: StubServer,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(checkout.path / "elsewhere"))
        with connections(airflow.url, chronon_airflow="admin", features_git="git"):
            assert run("plan", "--bundle", self.BUNDLE) == 2
            assert "the DAG bundle features is not fetched on this machine" in capsys.readouterr().err
            assert run("plan", "--bundle", self.BUNDLE, "--root", str(checkout.path)) == 0
        assert "branch try in the DAG bundle features" in capsys.readouterr().err

    def test_one_that_cannot_be_opened_is_one_sentence(
        self, checkout: ConfRootOnDisk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("plan") == 2
        *_, line = capsys.readouterr().err.splitlines()  # Airflow's own log stands before it
        assert "the DAG bundle features cannot be opened" in line and "features_git" in line


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
