"""A run of a replay holds until what it reads was rebuilt by the same replay (C27)."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import TaskSuccessEvent, TriggerEvent

from airflow_chronon.airflow.sensors.triggers import FAILURE, PartitionTrigger
from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.replay_order import ReplayOrder
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.core.waits.outlook import TableWriter
from airflow_chronon.core.waits.serialization import dependency_to_json, writer_to_json
from tests.support.schedules import at, schedule_of
from tests.support.supervisor import FakeRun, FakeSupervisor

DAG = "staging_query.t.s.hourly__1"
HOURLY = schedule_of("5 * * * *", HOUR)
THREE_HOURLY = schedule_of("15 */3 * * *", 3 * HOUR)
KEY = "2026-06-01-09-00"
LIMIT = 20  #: seconds; a test that takes longer hangs
ORDER = ReplayOrder(
    "ab12",
    {DAG: StartRanges.of_starts([at("2026-06-01T08:00:00Z"), at("2026-06-01T10:00:00Z")], interval=HOUR)},
    frozenset({DAG}),
)
RUN_ID = "manual__2026-06-01-10-00__ab12"


@pytest.fixture(autouse=True)
def _moment(clock: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clock.instant = at("2026-06-03T12:20:00Z")
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
def wait(tmp_path: Path) -> PartitionTrigger:
    """The wait of a run of a replay over hours that have all landed long ago."""
    for hour in range(12):
        folder = tmp_path / "ns.hourly" / f"ds=2026-06-01-{hour:02}-00"
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_bytes(b"x")
    empty = dict.fromkeys(("start_ds", "end_ds", "asked_at", "interval_start", "interval_end"), "")
    return PartitionTrigger(
        schedule=schedule_to_json(THREE_HOURLY),
        dependencies={"backfill": [dependency_to_json(TableDependency("ns.hourly", "ds", HOURLY.spec))]},
        table="ns.hourly",
        catalog={"kind": "filesystem", "root": str(tmp_path)},
        poll_seconds=0.02,  # type: ignore[arg-type]
        writers=json.dumps([writer_to_json(TableWriter(DAG, Mode.BACKFILL, HOURLY))]),
        partition_key=KEY,
        run_type="manual",
        replay=json.dumps(ORDER.to_json()),
        **empty,
    )


def run(last_task: str | None, state: str = "running") -> FakeRun:
    return FakeRun(RUN_ID, None, state, last_task, DAG)


async def first_event(trigger: PartitionTrigger) -> TriggerEvent:
    return await anext(aiter(trigger.run()))


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def finish(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, LIMIT))


def test_it_holds_until_the_run_that_rebuilds_what_it_reads_has_landed(
    wait: PartitionTrigger, supervisor: FakeSupervisor, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> TriggerEvent:
        supervisor.runs = [run(None)]
        task = asyncio.create_task(first_event(wait))
        await until(lambda: len(supervisor.asked) > 5)
        assert not task.done()  # though all that it reads has landed before
        supervisor.runs = [run("success", "success")]
        return await task

    assert isinstance(finish(story()), TaskSuccessEvent)
    assert f"holds for the replay of 2026-06-01-10-00 of {DAG}" in caplog.text
    assert "08-00" not in caplog.text  # it is replayed too, and this run does not read it


def test_a_failed_one_is_waited_for_and_named_and_a_clear_of_it_is_enough(
    wait: PartitionTrigger, supervisor: FakeSupervisor, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> TriggerEvent:
        supervisor.runs = [run("upstream_failed", "failed")]
        task = asyncio.create_task(first_event(wait))
        await until(lambda: "it failed for 2026-06-01-10-00" in caplog.text)
        assert not task.done()
        supervisor.runs = [run("success", "success")]
        return await task

    assert isinstance(finish(story()), TaskSuccessEvent)
    assert "clear these runs, and this one goes on" in caplog.text


def test_one_whose_run_was_deleted_is_told_at_once(wait: PartitionTrigger, supervisor: FakeSupervisor) -> None:
    event = finish(first_event(wait))
    assert f"replay 2026-06-01-10-00 of {DAG} first are not there any more" in event.payload[FAILURE]


def test_one_that_is_made_a_moment_later_is_not_taken_for_deleted(
    wait: PartitionTrigger, supervisor: FakeSupervisor
) -> None:
    async def story() -> TriggerEvent:
        task = asyncio.create_task(first_event(wait))
        await until(lambda: len(supervisor.asked) > 1)
        supervisor.runs = [run("success", "success")]
        return await task

    assert isinstance(finish(story()), TaskSuccessEvent)


def test_a_deadline_ends_the_hold_with_what_it_held_for(
    wait: PartitionTrigger, supervisor: FakeSupervisor, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PartitionTrigger, "_deadline", property(lambda self: clock.instant))
    supervisor.runs = [run(None)]
    event = finish(first_event(wait))
    assert f"the run fails: holds for the replay of 2026-06-01-10-00 of {DAG}" in event.payload[FAILURE]


def test_an_airflow_that_does_not_answer_ends_no_hold(
    wait: PartitionTrigger, supervisor: FakeSupervisor, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    async def silent(msg: Any) -> Any:
        raise RuntimeError("the supervisor is gone")

    answers = supervisor.asend

    async def story() -> TriggerEvent:
        monkeypatch.setattr(supervisor, "asend", silent)
        task = asyncio.create_task(first_event(wait))
        await until(lambda: "Airflow does not tell how the replay" in caplog.text)
        supervisor.runs = [run("success", "success")]
        monkeypatch.setattr(supervisor, "asend", answers)
        return await task

    assert isinstance(finish(story()), TaskSuccessEvent)


@pytest.mark.parametrize(
    "replay", ["", "null", '""', "{", '{"id": "a"}', json.dumps(replace(ORDER, held_for=frozenset()).to_json())]
)
def test_a_run_of_no_replay_holds_for_nothing(wait: PartitionTrigger, supervisor: FakeSupervisor, replay: str) -> None:
    wait.replay = replay  # type: ignore[attr-defined]
    assert isinstance(finish(first_event(wait)), TaskSuccessEvent)
