"""The reconciler before Airflow has a connection: skipped while nothing is deployed, failed once something is (C23)."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout
from airflow.sdk.execution_time.timeout import timeout
from pytest_mock import MockerFixture

from airflow_chronon.airflow.config import deployment_of
from airflow_chronon.airflow.dags.reconciler import ReconcileOperator, build_reconciler
from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.login import Login
from airflow_chronon.airflow_api.records import DagRecord
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.deployment import DEFAULT_BUNDLE
from airflow_chronon.errors import ChrononError
from airflow_chronon.state.folder import open_state
from airflow_chronon.state.locking import only_reconcile
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.confs import at, plan_of, staging_query
from tests.support.misbehaving_server import Send, misbehaving_server

COMMAND = "airflow connections add chronon_airflow --conn-type chronon_airflow --conn-host http://127.0.0.1:8080"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mocker: MockerFixture) -> ConfRootOnDisk:
    """A conf root with one conf, on an Airflow without a connection to itself."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    mocker.patch("airflow_chronon.airflow.dags.reconciler.find_airflow", return_value=None)
    found = ConfRootOnDisk(tmp_path / "root")
    found.write("staging_query", "shop.one__1", staging_query("shop.one__1"))
    return found


def reconcile(root: ConfRootOnDisk) -> None:
    context: dict[str, Any] = {"params": {}, "run_id": "scheduled__1"}
    ReconcileOperator(task_id="reconcile", near=__file__, conf_root=str(root.path)).execute(context)


def test_the_first_run_is_skipped_and_names_the_command_that_makes_the_connection(root: ConfRootOnDisk) -> None:
    with pytest.raises(AirflowSkipException) as skipped:
        reconcile(root)
    assert "Airflow has no connection chronon_airflow" in str(skipped.value) and COMMAND in str(skipped.value)


@pytest.mark.parametrize(
    ("option", "value", "address"),
    [
        ("BASE_URL", "https://airflow.example/team/", "https://airflow.example/team"),
        ("PORT", "9090", "http://127.0.0.1:9090"),
    ],
)
def test_the_command_has_the_address_that_airflow_is_configured_with(
    root: ConfRootOnDisk, monkeypatch: pytest.MonkeyPatch, option: str, value: str, address: str
) -> None:
    monkeypatch.setenv(f"AIRFLOW__API__{option}", value)
    with pytest.raises(AirflowSkipException) as skipped:
        reconcile(root)
    assert f"--conn-host {address} --conn-login" in str(skipped.value)


def test_once_something_was_deployed_a_lost_connection_fails_it(root: ConfRootOnDisk, tmp_path: Path) -> None:
    plan = plan_of(staging_query("shop.one__1"))
    state = open_state(str(tmp_path / "home" / "chronon_state"), deployment=Deployment("main", DEFAULT_BUNDLE))
    state.write_record(record_after(plan, manifest_of(plan), None, now=at("2026-06-01")))
    with pytest.raises(AirflowFailException) as failed:
        reconcile(root)
    assert COMMAND in str(failed.value)


class TestInABundleWithVersions:
    """A run sees the tree of the version that the reconciler's own file was last parsed at."""

    @pytest.mark.parametrize(("version", "asked"), [("9f1c", ["reconciler"]), (None, [])])
    def test_it_has_its_own_file_parsed_for_the_next_run(
        self, root: ConfRootOnDisk, mocker: MockerFixture, version: str | None, asked: list[str]
    ) -> None:
        server = FakeAirflow(dag_records={"reconciler": DagRecord("reconciler")})
        mocker.patch("airflow_chronon.airflow.dags.reconciler.find_airflow", return_value=server)
        task = SimpleNamespace(dag_id="reconciler", bundle_instance=SimpleNamespace(version=version))
        context = {"params": {}, "run_id": "scheduled__1", "ti": task}
        ReconcileOperator(task_id="reconcile", near=__file__, conf_root=str(root.path)).execute(context)
        assert [call[1] for call in server.calls if call[0] == "parse_soon"] == asked


class TestTheTimeLimit:  # S8
    @pytest.mark.parametrize(("written", "seconds"), [(None, 1800), ("", 1800), ("90", 90)])
    def test_ends_a_reconcile_that_hangs(
        self, root: ConfRootOnDisk, monkeypatch: pytest.MonkeyPatch, written: str | None, seconds: int
    ) -> None:
        if written is not None:
            monkeypatch.setenv("AIRFLOW__CHRONON__RECONCILE_TIMEOUT", written)
        task = build_reconciler(near=__file__, conf_root=root.path).get_task("reconcile")
        assert task.execution_timeout == timedelta(seconds=seconds)

    @pytest.mark.parametrize("written", ["soon", "0", "-1", "1.5", "٣", "9999999"])
    def test_that_is_no_time_is_one_sentence(
        self, root: ConfRootOnDisk, monkeypatch: pytest.MonkeyPatch, written: str
    ) -> None:
        monkeypatch.setenv("AIRFLOW__CHRONON__RECONCILE_TIMEOUT", written)
        with pytest.raises(ChrononError, match=r"^\[chronon\] reconcile_timeout: .* is not a number of seconds"):
            build_reconciler(near=__file__, conf_root=root.path)

    def test_ends_one_whose_airflow_hangs_and_gives_the_state_back(self, root: ConfRootOnDisk, mocker: Any) -> None:
        """As Airflow does it, by a signal, while an answer drips."""
        place = ReconcileOperator(task_id="reconcile", near=__file__, conf_root=str(root.path))
        context = {"params": {}, "run_id": "r"}

        def hang(send: Send, over: threading.Event) -> None:
            over.wait()

        with misbehaving_server(hang) as url:
            server = AirflowRest(Login(url, token="mine"))
            mocker.patch("airflow_chronon.airflow.dags.reconciler.find_airflow", return_value=server)
            with pytest.raises(AirflowTaskTimeout), timeout(1):
                place.execute(context)
        found = deployment_of(near=__file__, conf_root=str(root.path))
        with only_reconcile(found.open_state(found.need_branch(found.read_root()))):
            pass


def test_an_airflow_that_does_not_answer_is_asked_again(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    silent = AirflowRest(Login("http://127.0.0.1:1", "a", "b"))
    mocker.patch("airflow_chronon.airflow.dags.reconciler.find_airflow", return_value=silent)
    with pytest.raises(AirflowException) as failed:
        reconcile(root)
    assert not isinstance(failed.value, AirflowFailException)
    assert build_reconciler(near=__file__, conf_root=root.path).get_task("reconcile").retries == 1
