"""The survey as a task: its metrics, the callback of what is late, and what it does without confs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from pytest_mock import MockerFixture

from airflow_chronon.airflow.assets import snapshot_asset
from airflow_chronon.airflow.dags.reconciler import build_reconciler
from airflow_chronon.airflow.metrics import Gauge
from airflow_chronon.airflow.operators.survey import SurveyOperator
from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import TaskRecord
from airflow_chronon.core.overview.snapshot import ConfSnapshot, snapshots_of
from airflow_chronon.errors import ChrononError, Fault
from tests.support.conf_roots import ConfRootOnDisk, dependency, staging_query
from tests.support.confs import at

CALLS: list[dict[str, Any]] = []
DAG_ID = "staging_query.shop.one__1"


class Kept:
    """The store of an asset's state, in memory."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def set(self, key: str, value: Any) -> None:
        self.values[key] = json.loads(json.dumps(value))


KEPT = Kept()
CONTEXT: dict[str, Any] = {"asset_state_store": {snapshot_asset(): KEPT}}


def page_someone(late: dict[str, Any]) -> None:
    CALLS.append(late)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfRootOnDisk:
    """A daily conf of which one day has landed, and two more could have."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    found = ConfRootOnDisk(tmp_path / "root")
    found.write("staging_query", "shop.one__1", staging_query("shop.one__1", dependencies=[dependency("raw.orders")]))
    found.settings(
        f"freshness: 6h\ncatalog: {{kind: filesystem, root: {tmp_path / 'warehouse'}}}\n"
        f"task_defaults: {{on_late_callback: {__name__}.page_someone}}\n"
    )
    day = tmp_path / "warehouse" / "shop.shop_one__1" / "ds=2026-06-01"
    day.mkdir(parents=True)
    (day / "_SUCCESS").touch()
    CALLS.clear()
    KEPT.values.clear()
    return found


def survey(root: ConfRootOnDisk, mocker: MockerFixture, when: str) -> None:
    mocker.patch("airflow_chronon.airflow.operators.survey.now", return_value=at(when))
    SurveyOperator(task_id="survey", near=__file__, conf_root=str(root.path)).execute(CONTEXT)


def test_its_metrics_are_of_each_dag_and_team(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    tell = mocker.patch("airflow_chronon.airflow.operators.survey.tell")
    survey(root, mocker, "2026-06-04 01:00")
    told = {call.args[0]: call.args[1] for call in tell.call_args_list}
    assert told == {Gauge.LAG: 49 * 3600, Gauge.MISSING: 2, Gauge.LATE: 1}
    assert all(call.kwargs == {"dag_id": DAG_ID, "team": "shop"} for call in tell.call_args_list)


def waits(root: ConfRootOnDisk, mocker: MockerFixture, server: FakeAirflow | Exception) -> list[tuple[float, str]]:
    """What a survey tells of how long runs wait, with such an Airflow."""
    mocker.patch(
        "airflow_chronon.airflow.operators.survey.find_airflow",
        **({"side_effect": server} if isinstance(server, Exception) else {"return_value": server}),
    )
    mocker.patch("airflow_chronon.airflow.operators.survey.moment", return_value=at("2026-06-04 01:00") + 0.5)
    tell = mocker.patch("airflow_chronon.airflow.operators.survey.tell")
    survey(root, mocker, "2026-06-04 01:00")
    return [(call.args[1], call.kwargs["dag_id"]) for call in tell.call_args_list if call.args[0] is Gauge.WAIT]


def deferred(task_id: str, since: str, *, dag_id: str = DAG_ID, run: str = "r") -> TaskRecord:
    return TaskRecord(dag_id, run, task_id, "deferred", start=at(since))


def test_of_each_dag_the_longest_wait_that_goes_on_is_told(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    tasks = [
        deferred("wait.raw.orders", "2026-06-04 00:50"),
        deferred("wait.raw.orders", "2026-06-04 00:10", run="older"),
        deferred("backfill", "2026-06-03 00:00"),  # its job is elsewhere: it waits for no partition
        replace(deferred("wait.raw.orders", "2026-06-01 00:00", run="done"), state="success"),
        deferred("wait.raw.orders", "2026-06-01 00:00", dag_id="somebody_elses"),
    ]
    assert waits(root, mocker, FakeAirflow(task_records=tasks)) == [(3000.5, DAG_ID)]


def test_where_nothing_waits_that_is_told(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    assert waits(root, mocker, FakeAirflow()) == [(0, DAG_ID)]


def test_an_airflow_that_does_not_tell_costs_no_other_metric(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    def refuse(name: str) -> None:
        raise AirflowUnreachable("http://127.0.0.1:1", "does not answer", "start it")

    assert waits(root, mocker, FakeAirflow(before=refuse)) == []
    assert kept().seen == at("2026-06-04 01:00")
    fault = Fault("connection", "host", "the connection has no host", "give it one")
    assert waits(root, mocker, ChrononError(fault)) == []


def test_the_callback_hears_of_each_late_partition_once(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    survey(root, mocker, "2026-06-03 12:00")
    for when in ("2026-06-04 05:59", "2026-06-04 06:00", "2026-06-04 06:05"):
        survey(root, mocker, when)
    (late,) = CALLS
    assert (late["conf"], late["label"]) == ("staging_query/shop.one__1", "2026-06-03")
    assert late["late_since"] == "2026-06-04T06:00:00Z"


def test_a_callback_that_cannot_be_imported_is_told_and_fails_nothing(
    root: ConfRootOnDisk, mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    root.settings((root.path / "chronon.yaml").read_text().replace("page_someone", "nobody"))
    survey(root, mocker, "2026-06-03 12:00")
    survey(root, mocker, "2026-06-04 06:00")
    assert CALLS == []


def test_where_the_deployment_cannot_be_told_nothing_is_looked_at(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    fault = Fault("C24", "branch", "nobody knows the branch", "mend chronon.yaml")
    mocker.patch("airflow_chronon.airflow.operators.survey.deployment_of", side_effect=ChrononError(fault))
    with pytest.raises(AirflowSkipException) as skipped:
        SurveyOperator(task_id="survey", near=__file__, conf_root=str(root.path)).execute(CONTEXT)
    assert "No table is looked at" in str(skipped.value)


def kept() -> ConfSnapshot:
    (conf,) = snapshots_of(KEPT.values["dags-folder/main"])
    return conf


def test_what_it_saw_is_kept_for_the_page(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    survey(root, mocker, "2026-06-04 01:00")
    conf = kept()
    assert (conf.key, conf.team, conf.table) == ("staging_query/shop.one__1", "shop", "shop.shop_one__1")
    assert conf.seen == at("2026-06-04 01:00")
    assert conf.landed is not None and conf.landed.to_json() == [[at("2026-06-01"), 1]]


def test_a_table_that_cannot_be_listed_is_shown_as_it_was_last_seen(
    root: ConfRootOnDisk, mocker: MockerFixture
) -> None:
    survey(root, mocker, "2026-06-04 01:00")
    before = kept()
    table = root.path.parent / "warehouse" / "shop.shop_one__1"
    (table / "data.parquet").touch()
    (table / "ds=2026-06-01").rename(table.parent / "gone")
    survey(root, mocker, "2026-06-04 02:00")
    assert replace(kept(), words=before.words) == before


def test_what_is_kept_of_a_conf_that_is_gone_goes(root: ConfRootOnDisk, mocker: MockerFixture) -> None:
    survey(root, mocker, "2026-06-04 01:00")
    root.write("staging_query", "shop.two__1", staging_query("shop.two__1", dependencies=[dependency("raw.orders")]))
    (root.path / "compiled" / "staging_queries" / "shop" / "one__1").unlink()
    survey(root, mocker, "2026-06-04 02:00")
    assert kept().key == "staging_query/shop.two__1" and kept().landed is not None


def test_it_stands_beside_the_reconcile_and_neither_waits_for_the_other(root: ConfRootOnDisk) -> None:
    dag = build_reconciler(near=__file__, conf_root=root.path)
    assert {task.task_id: task.upstream_task_ids for task in dag.tasks} == {"survey": set(), "reconcile": set()}
