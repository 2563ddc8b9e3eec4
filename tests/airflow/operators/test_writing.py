"""What a work task does before it writes: its turn, and the grid of the first write (C22, C28)."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from pytest_mock import MockerFixture

from airflow_chronon.airflow.dags.plans import build_dag
from airflow_chronon.airflow.operators.modes import ChrononOperator
from airflow_chronon.airflow.operators.write_order import LEAVING_SECONDS, WriteOrder, WriteOrderTrigger
from airflow_chronon.airflow_api.coverage import Ticket
from airflow_chronon.airflow_api.errors import AirflowRefused, AirflowUnreachable
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.login import Login
from airflow_chronon.airflow_api.records import DagRecord, RunRecord, TaskRecord
from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeRun
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import at, plan_of, staging_query

PLAN = plan_of(staging_query("t.s.x__1", schedule="@never", interval="1h"))
DAG = PLAN.dag_id
KEY = "2026-06-01-03-00"
STARTED = datetime(2026, 6, 2, tzinfo=UTC)


def work(plan: ConfPlan = PLAN) -> ChrononOperator:
    task = build_dag(plan, path="x", doc="").get_task("backfill")
    assert isinstance(task, ChrononOperator)
    return task


def take_turn(task: ChrononOperator, key: str = KEY) -> None:
    window = PLAN.schedule.partition(PLAN.spec.start_of(key))
    context = {"run_id": "me", "ti": SimpleNamespace(start_date=STARTED)}
    task._take_turn(context, ModeRun(window.end, window))


def airflow_with(*others: tuple[str, str, float | None], conf: dict[str, Any] | None = None) -> FakeAirflow:
    """An Airflow where other runs of ``KEY`` (or of ``conf``) have a work task: run id, its state, its start."""
    fake = FakeAirflow(dag_records={DAG: DagRecord(DAG)}, specs={DAG: PLAN.spec})
    fake.run_records.append(RunRecord(DAG, "me", "manual", "running", KEY))
    fake.task_records.append(TaskRecord(DAG, "me", "backfill", "running", 1, STARTED.timestamp()))
    for run_id, state, start in others:
        key = None if conf else KEY
        fake.run_records.append(RunRecord(DAG, run_id, "manual", "running", key, conf=conf or {}))
        fake.task_records.append(TaskRecord(DAG, run_id, "backfill", state, 1, start))
    return fake


@pytest.fixture
def find(mocker: MockerFixture) -> Any:
    return mocker.patch("airflow_chronon.airflow.operators.modes.find_airflow")


def test_without_a_connection_the_log_says_once_that_writers_are_not_kept_apart(
    find: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    find.return_value = None
    with caplog.at_level(logging.WARNING):
        take_turn(work())
    said = caplog.text + "".join(capsys.readouterr())
    assert said.count("not kept apart in time") == 1
    assert "chronon_airflow" in said


def test_alone_it_goes_on_and_asks_once(find: Any) -> None:
    find.return_value = fake = airflow_with()
    take_turn(work())
    assert [name for name, *_ in fake.calls] == ["tasks"]


@pytest.mark.parametrize("state", ["running", "deferred", "queued", "scheduled"])
def test_it_waits_without_a_worker_for_whoever_began_earlier(find: Any, state: str) -> None:
    find.return_value = airflow_with(("other", state, STARTED.timestamp() - 1))
    with pytest.raises(TaskDeferred) as deferred:
        take_turn(work())
    trigger = deferred.value.trigger
    assert isinstance(trigger, WriteOrderTrigger)
    path, kwargs = trigger.serialize()
    assert path == "airflow_chronon.airflow.operators.write_order.WriteOrderTrigger"
    order = WriteOrder.from_json(kwargs["order"])
    window = PLAN.schedule.partition(PLAN.spec.start_of(KEY))
    assert order.ticket == Ticket(DAG, "backfill", "me", Mode.BACKFILL, window)
    assert order.to_json() == kwargs["order"]


def test_a_wait_looks_once_the_worker_has_had_the_time_to_say_that_it_waits(mocker: MockerFixture) -> None:
    # Airflow fails a task that runs again before it has heard of the deferral
    done: list[object] = []

    async def sleep(seconds: float) -> None:
        done.append(seconds)

    async def outcome() -> list[object]:
        return [event.payload async for event in WriteOrderTrigger(order=order.to_json()).run()]

    fake = airflow_with()
    fake.before = done.append
    mocker.patch("airflow_chronon.airflow.operators.write_order.find_airflow", return_value=fake)
    mocker.patch("airflow_chronon.airflow.operators.write_order.asyncio.sleep", sleep)
    window = PLAN.schedule.partition(PLAN.spec.start_of(KEY))
    order = WriteOrder(Ticket(DAG, "backfill", "me", Mode.BACKFILL, window), PLAN.schedule)
    assert asyncio.run(outcome()) == ["first"]
    assert done == [LEAVING_SECONDS, "tasks"]
    assert conf.getint("workers", "min_heartbeat_interval") < LEAVING_SECONDS


def test_a_run_made_before_a_change_of_schedule_is_waited_for_over_all_that_it_writes() -> None:  # C22, C28
    daily, week = plan_of(staging_query(schedule="0 6 * * *")), TimeWindow(at("2026-06-01"), at("2026-06-08"))
    fake = airflow_with()
    for run_id, run_type, key, made, start in (
        ("weekly", "scheduled", "2026-06-07", week, 1.0),
        ("replay", "backfill", "2026-06-03", None, 2.0),
    ):
        fake.run_records.append(RunRecord(daily.dag_id, run_id, run_type, "running", key, window=made))
        fake.task_records.append(TaskRecord(daily.dag_id, run_id, "backfill", "running", 1, start))
    ticket = Ticket(daily.dag_id, "backfill", "replay", Mode.BACKFILL, daily.schedule.partition(at("2026-06-03")))
    predecessors = WriteOrder(ticket, daily.schedule).predecessors(fake)
    assert predecessors is not None
    assert [writer.run_id for writer in predecessors] == ["weekly"]


@pytest.mark.parametrize(
    ("state", "start"), [("running", STARTED.timestamp() + 1), ("queued", None), ("success", STARTED.timestamp() - 1)]
)
def test_it_does_not_wait_for_who_came_later_has_not_begun_or_has_ended(
    find: Any, state: str, start: float | None
) -> None:
    find.return_value = airflow_with(("other", state, start))
    take_turn(work())


def test_two_that_start_together_agree_on_who_is_first_whatever_their_own_clocks_say(find: Any) -> None:
    # a task's own clock reads later than Airflow's, by as long as it took to tell Airflow of the start
    find.return_value = airflow_with(("other", "running", STARTED.timestamp() + 0.2))
    window = PLAN.schedule.partition(PLAN.spec.start_of(KEY))
    late = SimpleNamespace(start_date=STARTED + timedelta(seconds=1))
    work()._take_turn({"run_id": "me", "ti": late}, ModeRun(window.end, window))
    with pytest.raises(TaskDeferred):
        work()._take_turn({"run_id": "other", "ti": late}, ModeRun(window.end, window))


def test_it_does_not_go_on_while_airflow_does_not_list_it(find: Any, mocker: MockerFixture) -> None:
    mocker.patch("airflow_chronon.airflow.operators.write_order.time.sleep")
    find.return_value = fake = airflow_with()
    fake.task_records.clear()
    with pytest.raises(AirflowException, match="does not list backfill of me"):
        take_turn(work())


def test_a_range_that_covers_the_partition_is_waited_for_and_one_that_does_not_is_not(find: Any) -> None:
    earlier = ("range", "running", STARTED.timestamp() - 1)
    find.return_value = airflow_with(earlier, conf={"start_ds": "2026-06-01-01-00", "end_ds": "2026-06-01-04-00"})
    with pytest.raises(TaskDeferred):
        take_turn(work())
    find.return_value = airflow_with(earlier, conf={"start_ds": "2026-06-01-04-00", "end_ds": "2026-06-01-06-00"})
    take_turn(work())


def test_a_run_that_was_deleted_meanwhile_is_nobody(find: Any) -> None:
    find.return_value = fake = airflow_with(("other", "running", STARTED.timestamp() - 1))
    fake.run_records.clear()
    take_turn(work())


def test_one_work_slot_needs_no_asking(find: Any) -> None:  # H12: Airflow runs one at a time itself
    plan = plan_of(staging_query("t.s.x__1", schedule="@never", interval="1h"), settings=Settings(max_active_runs=1))
    take_turn(work(plan))
    find.assert_not_called()


def test_an_api_that_is_down_spends_no_try(find: Any, caplog: pytest.LogCaptureFixture) -> None:
    def unreachable(name: str) -> None:
        raise AirflowUnreachable("http://x", "does not answer")

    find.return_value = fake = airflow_with()
    fake.before = unreachable
    with pytest.raises(TaskDeferred) as deferred:
        take_turn(work())
    assert isinstance(deferred.value.trigger, WriteOrderTrigger)


def test_what_airflow_refuses_fails_the_try_and_not_the_run(find: Any) -> None:
    def refuse(name: str) -> None:
        raise AirflowRefused("GET /api/v2/dags", status=403, detail="Forbidden")

    find.return_value = fake = airflow_with()
    fake.before = refuse
    with pytest.raises(AirflowException, match=r"is not known: .*Forbidden") as caught:
        take_turn(work())
    assert not isinstance(caught.value, AirflowFailException)


class State(dict[str, Any]):
    """An asset's state, as a task's context gives it."""

    set = dict.__setitem__


@pytest.mark.parametrize(("kept", "after"), [(None, "1h"), ("1h", "1h")])
def test_the_grid_of_the_first_write_is_kept_under_the_dag_id(kept: str | None, after: str) -> None:
    task = work()
    state = State({} if kept is None else {f"grid:{DAG}": kept})
    keep = task._hold_to_grid({"asset_state_store": {task.inlets[0]: state}})
    assert state == ({} if kept is None else {f"grid:{DAG}": kept})  # nothing is written yet
    keep()
    assert state == {f"grid:{DAG}": after}


def test_another_grid_fails_for_good_and_changes_nothing() -> None:
    task = work()
    state = State({f"grid:{DAG}": "3h@1h"})
    with pytest.raises(AirflowFailException, match=r"staging_query/t\.s\.x__1: .*3h@1h.*C22.*Bump its version"):
        task._hold_to_grid({"asset_state_store": {task.inlets[0]: state}})
    assert state == {f"grid:{DAG}": "3h@1h"}


def test_a_connection_of_airflow_becomes_a_login() -> None:
    from airflow.sdk import Connection

    from airflow_chronon.airflow.hooks import login_of_connection

    connection = Connection.from_uri("chronon-airflow://a:b%40c@127.0.0.1:8080", conn_id="x")
    assert login_of_connection(connection) == Login("http://127.0.0.1:8080", "a", "b@c")


def test_airflow_knows_the_connection_type() -> None:
    from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

    hook = ProvidersManagerTaskRuntime().hooks["chronon_airflow"]
    assert hook is not None
    assert hook.hook_class_name == "airflow_chronon.airflow.hooks.ChrononAirflowHook"
