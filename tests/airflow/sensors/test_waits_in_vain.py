"""Waits for partitions of a produced table that no run will ever write (C30)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import TaskSkippedEvent, TaskSuccessEvent, TriggerEvent

from airflow_chronon.airflow.sensors.deferred import PartitionSensor
from airflow_chronon.airflow.sensors.triggers import FAILURE, PartitionTrigger
from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import CatchUp
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.settings.model import SensorSettings
from airflow_chronon.core.waits.dependencies import Lookback, TableDependency
from airflow_chronon.core.waits.outlook import TableWriter
from airflow_chronon.core.waits.serialization import dependency_to_json, writer_to_json
from tests.support.schedules import at, schedule_of
from tests.support.supervisor import FakeRun, FakeSupervisor

DAG = "staging_query.t.s.hourly__1"
HOURLY = schedule_of("5 * * * *", HOUR)
THREE_HOURLY = schedule_of("15 */3 * * *", 3 * HOUR)
NOW = "2026-06-01T12:20:00Z"  #: the consumer's newest partition is [09:00, 12:00)
KEY = "2026-06-01-09-00"
READS = TableDependency("ns.hourly", "ds", HOURLY.spec)
LIMIT = 20  #: seconds; a test that takes longer hangs


@pytest.fixture(autouse=True)
def _moment(clock: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock.instant = at(NOW)
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(
        "airflow_chronon.airflow.sensors.triggers._RunTrigger.log", logging.getLogger("triggers"), raising=False
    )


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> FakeSupervisor:
    fake = FakeSupervisor()
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", fake, raising=False)
    return fake


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path


def land(warehouse: Path, *hours: int) -> None:
    for hour in hours:
        folder = warehouse / "ns.hourly" / f"ds=2026-06-01-{hour:02}-00"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part-0.parquet").write_bytes(b"x")


def scheduled(hour: int, last_task: str | None = "success", state: str = "success") -> FakeRun:
    label = f"2026-06-01-{hour:02}-00"
    return FakeRun(f"scheduled__{label}", at(f"2026-06-01T{hour:02}:00:00Z"), state, last_task)


Build = Callable[..., PartitionTrigger]


@pytest.fixture
def wait(warehouse: Path) -> Build:
    """The wait of a three-hourly consumer for the hours of its newest partition."""

    def build(
        reads: TableDependency = READS, *, run_type: str = "scheduled", catch_up: CatchUp | None = None, **more: Any
    ) -> PartitionTrigger:
        empty = dict.fromkeys(("start_ds", "end_ds", "asked_at", "interval_start", "interval_end"), "")
        schedule = replace(THREE_HOURLY, catch_up=catch_up or CatchUp())
        return PartitionTrigger(
            schedule=schedule_to_json(schedule),
            dependencies={"backfill": [dependency_to_json(reads)]},
            table="ns.hourly",
            catalog={"kind": "filesystem", "root": str(warehouse)},
            poll_seconds=0.02,  # type: ignore[arg-type]
            on_timeout="fail",
            writers=json.dumps([writer_to_json(TableWriter(DAG, Mode.BACKFILL, HOURLY))]),
            partition_key=KEY,
            run_type=run_type,
            **(empty | more),
        )

    return build


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, LIMIT))


async def outcome(trigger: PartitionTrigger) -> TriggerEvent:
    (event,) = [event async for event in trigger.run()]
    return event


async def still_waits(trigger: PartitionTrigger, supervisor: FakeSupervisor) -> bool:
    """Whether a wait goes on over more polls than it takes to give up."""
    waiting = asyncio.create_task(outcome(trigger))
    seen = len(supervisor.asked)
    while len(supervisor.asked) < seen + 30 and not waiting.done():
        await asyncio.sleep(0.01)
    is_done = waiting.done()
    waiting.cancel()
    return not is_done


class TestAChainThatWasJustDeployed:
    """The producer's first run wrote the newest hour; the two before it nobody will write."""

    @pytest.fixture(autouse=True)
    def _deployed(self, supervisor: FakeSupervisor, warehouse: Path) -> None:
        supervisor.runs = [scheduled(11)]
        land(warehouse, 11)

    def test_begins_with_the_first_partition_whose_inputs_are_there(self, wait: Build, caplog) -> None:
        event = finish(outcome(wait()))
        assert isinstance(event, TaskSkippedEvent)
        assert "the chain begins with a later partition" in caplog.text
        assert event.xcoms is not None  # the run's note tells it
        assert "the chain begins with a later partition" in str(event.xcoms["return_value"])
        assert f"no run of {DAG} will write ds=2026-06-01-09-00, 2026-06-01-10-00 of ns.hourly (C30)" in caplog.text

    def test_fails_with_the_command_that_fills_it_where_catch_up_is_on(self, wait: Build) -> None:
        event = finish(outcome(wait(catch_up=CatchUp(enabled=True, start=at("2026-06-01T00:00:00Z")))))
        command = f"airflow-chronon backfill {DAG} --start-ds 2026-06-01-09-00 --end-ds 2026-06-01-10-00"
        assert command in event.payload[FAILURE]

    @pytest.mark.parametrize("run_type", ["backfill", "manual"])
    def test_fails_what_someone_asked_for(self, wait: Build, run_type: str) -> None:
        assert FAILURE in finish(outcome(wait(run_type=run_type))).payload

    def test_waits_for_a_replay_that_is_under_way(self, wait: Build, supervisor: FakeSupervisor) -> None:
        supervisor.runs.append(FakeRun("backfill__2026-06-01-09-00__00ff", None, "running", None))
        assert finish(still_waits(wait(), supervisor))

    def test_goes_on_when_the_hours_have_been_filled(self, wait: Build, warehouse: Path) -> None:
        land(warehouse, 9, 10)
        assert type(finish(outcome(wait()))) is TaskSuccessEvent


class TestAnOutageWithoutCatchUp:
    @pytest.fixture(autouse=True)
    def _after_it(self, supervisor: FakeSupervisor, warehouse: Path) -> None:
        supervisor.runs = [scheduled(7), scheduled(8), scheduled(11)]
        land(warehouse, 7, 8, 11)

    def test_ends_the_wait_with_the_command_that_fills_it(self, wait: Build) -> None:
        text = finish(outcome(wait())).payload[FAILURE]
        assert text.endswith(f"airflow-chronon backfill {DAG} --start-ds 2026-06-01-09-00 --end-ds 2026-06-01-10-00")

    def test_skips_the_run_where_the_settings_say_so(self, wait: Build, caplog) -> None:
        assert type(finish(outcome(wait(on_never="skip")))) is TaskSkippedEvent
        assert "sensor.on_never says so" in caplog.text

    def test_is_waited_out_where_the_settings_say_so(self, wait: Build, supervisor: FakeSupervisor, caplog) -> None:
        assert finish(still_waits(wait(on_never="wait"), supervisor))
        assert caplog.text.count("sensor.on_never says to wait all the same") == 1

    def test_fails_on_a_worker_where_callbacks_are_called(self) -> None:
        sensor = PartitionSensor(
            task_id="wait.t", table="ns.t", schedule=HOURLY, dependencies={}, catalog={}, settings=SensorSettings()
        )
        with pytest.raises(AirflowFailException, match="no run of x"):
            sensor.execute_complete({}, {FAILURE: "no run of x will write it"})


@pytest.mark.parametrize(
    "run",
    [scheduled(10, None, "running"), scheduled(10, "failed", "failed"), scheduled(10, "success")],
    ids=["running", "failed", "gone"],
)
def test_what_may_still_come_is_waited_for(
    wait: Build, supervisor: FakeSupervisor, warehouse: Path, run: FakeRun, caplog
) -> None:
    supervisor.runs = [scheduled(9), run, scheduled(11)]
    land(warehouse, 9, 11)
    assert finish(still_waits(wait(), supervisor))
    said = {"failed": f"2026-06-01-10-00: failed in {DAG}", "success": f"2026-06-01-10-00: gone in {DAG}"}
    assert said.get(str(run.last_task), "lacks") in caplog.text


def test_a_skipped_producer_skips_its_consumers(wait: Build, supervisor: FakeSupervisor, warehouse: Path) -> None:
    supervisor.runs = [scheduled(9, "skipped"), scheduled(10), scheduled(11)]
    land(warehouse, 10, 11)
    assert type(finish(outcome(wait()))) is TaskSkippedEvent


def test_one_poll_is_not_enough(wait: Build, supervisor: FakeSupervisor, warehouse: Path) -> None:
    supervisor.runs = [scheduled(9), scheduled(11)]
    land(warehouse, 9, 11)

    async def story() -> TriggerEvent:
        waiting = asyncio.create_task(outcome(wait()))
        while not supervisor.asked:
            await asyncio.sleep(0)
        supervisor.runs.append(scheduled(10, None, "queued"))  # its run was being created
        await asyncio.sleep(0.2)
        assert not waiting.done()
        land(warehouse, 10)
        return await waiting

    assert type(finish(story())) is TaskSuccessEvent


class TestALookback:
    """Older hours that the consumer reads besides: the table begins with 06:00, and an old hour was replayed."""

    READS = replace(READS, reach=10 * HOUR, policy=Lookback.REQUIRE)

    @pytest.fixture(autouse=True)
    def _replayed(self, supervisor: FakeSupervisor, warehouse: Path) -> None:
        supervisor.runs = [scheduled(hour) for hour in range(6, 12)]
        supervisor.runs.append(FakeRun("backfill__2026-06-01-02-00__00ff", None, "success", "success"))
        land(warehouse, 2, *range(6, 12))

    def test_goes_without_what_nobody_will_write(self, wait: Build, caplog) -> None:
        event = finish(outcome(wait(self.READS)))
        assert type(event) is TaskSuccessEvent
        assert "nobody writes ds=2026-06-01-03-00, 2026-06-01-04-00, 2026-06-01-05-00 of ns.hourly" in caplog.text

    def test_ends_the_wait_where_it_was_required_on_purpose(self, wait: Build) -> None:
        assert type(finish(outcome(wait(replace(self.READS, is_strict=True))))) is TaskSkippedEvent

    def test_waits_for_a_hole_that_a_failed_run_left(
        self, wait: Build, supervisor: FakeSupervisor, warehouse: Path, caplog
    ) -> None:
        supervisor.runs[1] = scheduled(7, "failed", "failed")
        for file in (warehouse / "ns.hourly" / "ds=2026-06-01-07-00").iterdir():
            file.unlink()
        assert finish(still_waits(wait(self.READS), supervisor))
        assert "has holes: ds=2026-06-01-07-00 (2026-06-01-07-00: failed in" in caplog.text


def test_where_airflow_does_not_answer_it_waits_as_before(
    wait: Build, warehouse: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    class Broken(FakeSupervisor):
        async def asend(self, msg: Any) -> Any:
            self.asked.append(msg)
            raise OSError("the supervisor is gone")

    broken = Broken()
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", broken, raising=False)
    land(warehouse, 11)
    assert finish(still_waits(wait(), broken))
    assert caplog.text.count("the supervisor is gone") == 2  # once for each kind of question


def test_a_supervisor_that_never_answers_holds_no_wait(
    wait: Build, warehouse: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    class Silent(FakeSupervisor):
        async def asend(self, msg: Any) -> Any:
            self.asked.append(msg)
            await asyncio.Event().wait()

    monkeypatch.setattr("airflow_chronon.airflow.sensors.supervisor.ANSWERS_WITHIN", 0.02)
    silent = Silent()
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", silent, raising=False)
    land(warehouse, 11)

    async def story() -> TriggerEvent:
        waiting = asyncio.create_task(outcome(wait()))
        while "has not been answered" not in caplog.text:
            await asyncio.sleep(0.01)
        land(warehouse, 9, 10)
        return await waiting

    assert type(finish(story())) is TaskSuccessEvent
    assert len({type(each) for each in silent.asked}) == len(
        silent.asked
    )  # none is asked again while it owes an answer


def test_a_table_that_no_conf_writes_is_asked_of_nobody(
    wait: Build, supervisor: FakeSupervisor, warehouse: Path
) -> None:
    land(warehouse, 9, 10, 11)
    trigger = wait()
    trigger.writers = "[]"
    assert type(finish(outcome(trigger))) is TaskSuccessEvent
    assert supervisor.asked == []
