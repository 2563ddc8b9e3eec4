"""What a work task does before it writes: its turn, and the grid of the first write (C22, C28)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    TaskDeferred,
)
from pytest_mock import MockerFixture

from airflow_chronon.airflow.dags.plans import build_dag
from airflow_chronon.airflow.operators.modes import ChrononOperator
from airflow_chronon.airflow.operators.write_order import (
    LEAVING_SECONDS,
    STEP_ASIDE,
    WriteOrder,
    WriteOrderTrigger,
)
from airflow_chronon.airflow_api.errors import AirflowRefused, AirflowUnreachable
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.login import Login
from airflow_chronon.airflow_api.records import DagRecord, RunRecord, TaskRecord
from airflow_chronon.airflow_api.writers import TICKET_KEY
from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.write_order import DRAWING, Ticket
from airflow_chronon.core.schedules.partitioned import ModeRun
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import events, group_by, plan_of, staging_query

PLAN = plan_of(staging_query("t.s.x__1", schedule="@never", interval="1h"))
DAG = PLAN.dag_id
KEY = "2026-06-01-03-00"
STARTED = datetime(2026, 6, 2, tzinfo=UTC)


def work(plan: ConfPlan = PLAN) -> ChrononOperator:
    task = build_dag(plan, path="x", doc="").get_task("backfill")
    assert isinstance(task, ChrononOperator)
    return task


TABLE = PLAN.conf.table
BRANCH = plan_of(staging_query("t.s.x__1", schedule="@never", interval="3h"), branch="try").dag_id
WINDOW = PLAN.schedule.partition(PLAN.spec.start_of(KEY))


class Store:
    """A task's own state, as Airflow shows it to others."""

    def __init__(self, fake: FakeAirflow | None, run_id: str, task_id: str) -> None:
        self.kept: Any = {} if fake is None else fake.task_states
        self.at = (DAG, run_id, task_id)

    def get(self, key: str) -> Any:
        return self.kept.get((*self.at, key))

    def set(self, key: str, value: Any, *, retention: Any) -> None:
        self.kept[(*self.at, key)] = value


def take_turn(
    task: ChrononOperator,
    fake: FakeAirflow | None = None,
    *,
    run_id: str = "me",
    attempt: int = 1,
    event: object = None,
    window: TimeWindow = WINDOW,
) -> None:
    ti = SimpleNamespace(start_date=STARTED, try_number=attempt)
    context = {"run_id": run_id, "ti": ti, "task_state_store": Store(fake, run_id, task.task_id)}
    task._take_turn(context, ModeRun(window.end, window), event)


def begun(
    fake: FakeAirflow,
    run_id: str,
    number: int | None,
    *,
    state: str = "running",
    dag_id: str = DAG,
    task_id: str = "backfill",
    written: str = TABLE,
    window: TimeWindow = WINDOW,
    attempt: int = 1,
    of_attempt: int = 1,
    is_first: bool = False,
) -> None:
    """Let a work task have begun and drawn a number; None: it has not drawn one yet."""
    fake.task_records.append(TaskRecord(dag_id, run_id, task_id, state, attempt, STARTED.timestamp()))
    if number is not None:
        ticket = Ticket(written, window, of_attempt, number, is_first)
        fake.task_states[dag_id, run_id, task_id, TICKET_KEY] = ticket.to_json()


def ticket_of(fake: FakeAirflow, run_id: str = "me") -> Ticket:
    return Ticket.from_json(fake.task_states[DAG, run_id, "backfill", TICKET_KEY])


def number_of(fake: FakeAirflow, run_id: str = "me") -> int:
    return ticket_of(fake, run_id).number


def airflow() -> FakeAirflow:
    """An Airflow where a run is at its work task."""
    fake = FakeAirflow(dag_records={DAG: DagRecord(DAG)}, specs={DAG: PLAN.spec})
    fake.run_records.append(RunRecord(DAG, "me", "manual", "running", KEY))
    fake.task_records.append(TaskRecord(DAG, "me", "backfill", "running", 1, STARTED.timestamp()))
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


def test_alone_it_goes_on_after_two_looks_and_asks_nothing_else(find: Any) -> None:
    find.return_value = fake = airflow()
    take_turn(work(), fake)
    assert [name for name, *_ in fake.calls] == ["tasks", "tasks"]
    assert number_of(fake) == 1 and ticket_of(fake).is_first


@pytest.mark.parametrize("state", ["running", "deferred", "queued", "restarting"])
def test_it_waits_without_a_worker_for_whoever_drew_earlier(find: Any, state: str) -> None:
    find.return_value = fake = airflow()
    begun(fake, "other", 3, state=state)
    with pytest.raises(TaskDeferred) as deferred:
        take_turn(work(), fake)
    trigger = deferred.value.trigger
    assert isinstance(trigger, WriteOrderTrigger) and number_of(fake) == 4
    path, kwargs = trigger.serialize()
    assert path == "airflow_chronon.airflow.operators.write_order.WriteOrderTrigger"
    order = WriteOrder.from_json(kwargs["order"])
    assert order is not None and order.to_json() == kwargs["order"]
    assert (order.task, order.ticket.written, order.ticket.window) == ((DAG, "me", "backfill"), TABLE, WINDOW)


def test_another_branch_that_writes_the_table_on_another_grid_is_waited_for_by_time(
    find: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:  # C24
    hour = WINDOW.end - WINDOW.start
    three = TimeWindow(WINDOW.start, WINDOW.start + 3 * hour)
    find.return_value = fake = airflow()
    begun(fake, "other", 1, dag_id=BRANCH, window=three)
    with caplog.at_level(logging.INFO), pytest.raises(TaskDeferred):
        take_turn(work(), fake)
    assert f"waiting for other of {BRANCH}, which writes the same" in caplog.text + "".join(capsys.readouterr())
    after = TimeWindow(three.end, three.end + hour)
    take_turn(work(), fake, run_id="next", window=after)  # half open: they touch


def test_another_conf_that_writes_the_table_is_waited_for(find: Any) -> None:
    find.return_value = fake = airflow()
    begun(fake, "other", 1, dag_id="group_by.t.s.x__1")
    with pytest.raises(TaskDeferred):
        take_turn(work(), fake)


@pytest.mark.parametrize("online", [True, False])
def test_a_table_that_is_called_like_the_upload_of_another_conf_is_one_with_it(find: Any, online: bool) -> None:
    upload = plan_of(group_by("t.g.x__1", sources=[events("data.e")], online="0 6 * * *"))
    named = plan_of(staging_query("t.g.x__1__upload"))
    mine, other = (upload, named) if online else (named, upload)
    job = {upload.dag_id: "upload", named.dag_id: "backfill"}
    find.return_value = fake = airflow()
    begun(fake, "other", 1, dag_id=other.dag_id, task_id=job[other.dag_id], written="ns.t_g_x__1__upload")
    task = build_dag(mine, path="x", doc="").get_task(job[mine.dag_id])
    assert isinstance(task, ChrononOperator)
    with pytest.raises(TaskDeferred):
        take_turn(task, fake)


@pytest.mark.parametrize("of", [{"written": "other.t_s_x__1"}, {"window": TimeWindow(WINDOW.end, WINDOW.end + 60)}])
def test_whoever_writes_another_table_or_partition_is_not_waited_for(find: Any, of: dict[str, Any]) -> None:
    find.return_value = fake = airflow()
    begun(fake, "other", 1, dag_id=BRANCH, **of)
    take_turn(work(), fake)


def test_putting_values_online_waits_for_its_like_and_not_for_the_table(find: Any) -> None:
    plan = plan_of(group_by("t.g.x__1", sources=[events("data.e")], online="0 6 * * *"))
    task = build_dag(plan, path="x", doc="").get_task("upload_to_kv")
    assert isinstance(task, ChrononOperator)
    find.return_value = fake = airflow()
    begun(fake, "other", 1, dag_id=plan.dag_id, task_id="upload", written="ns.t_g_x__1__upload")
    take_turn(task, fake)
    like = {"task_id": "upload_to_kv", "written": "ns.t_g_x__1__upload (upload_to_kv)"}
    begun(fake, "other", 1, dag_id=f"try--{plan.dag_id}", **like)  # type: ignore[arg-type]
    with pytest.raises(TaskDeferred):
        take_turn(task, fake, run_id="next")


@pytest.mark.parametrize(
    "other",
    [
        {"number": 1, "state": "success"},
        {"number": 1, "state": "up_for_retry"},
        {"number": None},
        {"number": 1, "attempt": 2},
        {"number": DRAWING, "state": "deferred"},
    ],
    ids=["ended", "is to begin again", "has not drawn", "drew in an earlier try", "gave up drawing"],
)
def test_it_does_not_wait_for_who_is_not_in_the_order(find: Any, other: dict[str, Any]) -> None:
    find.return_value = fake = airflow()
    begun(fake, "other", **other)
    take_turn(work(), fake)


def test_its_number_stays_over_a_wait_and_a_further_try_draws_anew(find: Any, mocker: MockerFixture) -> None:
    mocker.patch("airflow_chronon.airflow.operators.write_order.time.sleep")
    find.return_value = fake = airflow()
    begun(fake, "first", 1)
    with pytest.raises(TaskDeferred):
        take_turn(work(), fake)
    begun(fake, "late", 9)
    with pytest.raises(TaskDeferred):
        take_turn(work(), fake, event="first")
    assert number_of(fake) == 2
    with pytest.raises(TaskDeferred):
        take_turn(work(), fake, attempt=2, event="first")
    assert number_of(fake) == 10


def test_it_waits_a_moment_for_whoever_is_just_drawing(find: Any, mocker: MockerFixture) -> None:
    find.return_value = fake = airflow()
    begun(fake, "other", DRAWING)

    def drawn(_: float) -> None:
        fake.task_states[DAG, "other", "backfill", TICKET_KEY]["number"] = 5

    mocker.patch("airflow_chronon.airflow.operators.write_order.time.sleep", drawn)
    take_turn(work(), fake)


def test_whoever_draws_and_says_no_more_is_waited_for_without_a_worker(find: Any, mocker: MockerFixture) -> None:
    mocker.patch("airflow_chronon.airflow.operators.write_order.time.sleep")
    find.return_value = fake = airflow()
    begun(fake, "other", DRAWING)  # its worker is lost, and Airflow does not know yet
    with pytest.raises(TaskDeferred):
        take_turn(work(), fake)


def wait_of(
    fake: FakeAirflow, mocker: MockerFixture, before: Callable[[str], None] = lambda name: None
) -> tuple[object, list[object]]:
    """What the wait of ``me`` ends with, and what it did; ``before`` is called before each call of Airflow."""
    done: list[object] = []

    def called(name: str) -> None:
        done.append(name)
        before(name)

    async def sleep(seconds: float) -> None:
        done.append(seconds)

    async def outcome() -> object:
        async for event in WriteOrderTrigger(order=order.to_json()).run():
            return event.payload
        raise AssertionError("it never fired")

    fake.before = called
    mocker.patch("airflow_chronon.airflow.operators.write_order.find_airflow", return_value=fake)
    mocker.patch("airflow_chronon.airflow.operators.write_order.asyncio.sleep", sleep)
    order = WriteOrder((DAG, "me", "backfill"), Ticket(TABLE, WINDOW, 1), TABLE)
    return asyncio.run(outcome()), done


def test_a_wait_looks_once_the_worker_has_had_the_time_to_say_that_it_waits(mocker: MockerFixture) -> None:
    # Airflow fails a task that runs again before it has heard of the deferral
    fake = airflow()
    begun(fake, "me", 4)
    assert wait_of(fake, mocker) == ("first", [LEAVING_SECONDS, "task_state", "tasks"])
    assert conf.getint("workers", "min_heartbeat_interval") < LEAVING_SECONDS


@pytest.mark.parametrize("window", [WINDOW, TimeWindow(WINDOW.end, WINDOW.end + 60)], ids=["same", "other partition"])
def test_a_wait_gives_its_slot_to_a_writer_that_has_begun_and_lacks_one(
    find: Any, mocker: MockerFixture, window: TimeWindow
) -> None:
    # Airflow counts waiting tasks among those of max_active_tis_per_dag: else all would wait for ever
    fake = airflow()
    begun(fake, "me", 4)
    begun(fake, "working", 1)
    begun(fake, "woken", 2, state="scheduled", window=window, is_first=True)
    event, _ = wait_of(fake, mocker)
    assert event == STEP_ASIDE
    find.return_value = fake
    with pytest.raises(AirflowRescheduleException):  # it is neither deferred nor running then
        take_turn(work(), fake, event=event)
    assert number_of(fake) == DRAWING  # it has left the order
    with pytest.raises(TaskDeferred):
        take_turn(work(), fake)


@pytest.mark.parametrize("state", ["scheduled", "up_for_reschedule"])
def test_whoever_only_waits_in_a_dag_that_is_paused_or_gone_is_passed(find: Any, state: str) -> None:
    find.return_value = fake = airflow()
    begun(fake, "stuck", 1, dag_id=BRANCH, state=state)
    take_turn(work(), fake)
    assert ticket_of(fake).is_first


def test_it_waits_for_one_that_comes_back_while_it_passes_it(find: Any, mocker: MockerFixture) -> None:
    find.return_value = fake = airflow()
    mocker.patch("airflow_chronon.airflow.operators.write_order.time.sleep")
    begun(fake, "woken", 1, state="scheduled")
    looks = 0

    def wakes(name: str) -> None:
        nonlocal looks
        looks += name == "tasks"
        if looks == 3:  # after it was seen without a slot
            fake.task_records[-1] = replace(fake.task_records[-1], state="running")

    fake.before = wakes
    with pytest.raises(TaskDeferred):
        take_turn(work(), fake)
    assert not ticket_of(fake).is_first


def test_an_outage_while_it_passes_another_leaves_nobody_waiting_for_it(find: Any) -> None:
    find.return_value = fake = airflow()
    begun(fake, "stuck", 1, state="scheduled")
    looks = 0

    def fails(name: str) -> None:
        nonlocal looks
        looks += name == "tasks"
        if looks == 3:
            raise AirflowUnreachable("http://x", "does not answer")

    fake.before = fails
    with pytest.raises(TaskDeferred):
        take_turn(work(), fake)
    assert not ticket_of(fake).is_first


def test_one_that_is_to_begin_needs_nobodys_slot(mocker: MockerFixture) -> None:
    # nobody waits for it: it has no number yet
    fake = airflow()
    begun(fake, "me", 4)
    begun(fake, "working", 1)
    begun(fake, "new", None, state="scheduled")
    polls = []

    def ends(name: str) -> None:
        polls.append(name)
        if polls.count("tasks") == 5:
            fake.task_records[:] = [each for each in fake.task_records if each.run_id != "working"]

    assert wait_of(fake, mocker, ends)[0] == "first"


def test_an_api_that_is_down_spends_no_try(find: Any) -> None:
    def unreachable(name: str) -> None:
        raise AirflowUnreachable("http://x", "does not answer")

    find.return_value = fake = airflow()
    fake.before = unreachable
    with pytest.raises(TaskDeferred) as deferred:
        take_turn(work(), fake)
    assert isinstance(deferred.value.trigger, WriteOrderTrigger)
    assert number_of(fake) == DRAWING  # nobody waits for it meanwhile


def test_what_airflow_refuses_fails_the_try_and_not_the_run(find: Any) -> None:
    def refuse(name: str) -> None:
        raise AirflowRefused("GET /api/v2/dags", status=403, detail="Forbidden")

    find.return_value = fake = airflow()
    fake.before = refuse
    with pytest.raises(AirflowException, match=r"is not known: .*Forbidden") as caught:
        take_turn(work(), fake)
    assert not isinstance(caught.value, AirflowFailException)


def test_one_work_slot_asks_too(find: Any) -> None:  # another DAG may write the table
    plan = plan_of(staging_query("t.s.x__1", schedule="@never", interval="1h"), settings=Settings(max_active_runs=1))
    find.return_value = fake = airflow()
    begun(fake, "other", 1, dag_id=BRANCH)
    with pytest.raises(TaskDeferred):
        take_turn(work(plan), fake)


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
