"""Why partitions of a produced table are not there, in the log of the wait: told when it changes, and asked for next to nothing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.execution_time.comms import GetAssetStateStoreByName, GetTaskStates
from airflow.triggers.base import TaskSuccessEvent

from airflow_chronon.airflow.sensors.deferred import PartitionSensor
from airflow_chronon.airflow.sensors.triggers import PartitionTrigger
from airflow_chronon.airflow.sensors.upstream_log import MOST_A_MINUTE, UpstreamLog
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.overview.snapshot import SNAPSHOT_ASSET, snapshot_of
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.settings.model import SensorSettings
from airflow_chronon.core.waits.serialization import dependency_to_json, writer_to_json
from tests.support.confs import dependency, judge, staging_query
from tests.support.schedules import at
from tests.support.supervisor import FakeRun, FakeSupervisor
from tests.support.triggers import Triggerer, finish, run_of, until

KEY, LABELS = "dags-folder/main", ("2026-06-01-10-00", "2026-06-01-11-00")
TABLE, DAG = "ns.t_a__1", "staging_query.t.a__1"
TREE = f"staging_query/t.a__1 {LABELS[1]}: "


def plans() -> dict[str, ConfPlan]:
    """An hourly producer, and its hourly consumer."""
    reads = {"t.a__1": "raw.orders", "t.b__1": TABLE}
    documents = [
        staging_query(
            name, schedule="5 * * * *", interval="1h", dependencies=[dependency(read, "1h", partitionColumn="ds")]
        )
        for name, read in reads.items()
    ]
    return {key: verdict.plan for key, verdict in judge(*documents).items() if isinstance(verdict.plan, ConfPlan)}


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch, clock: Any, caplog: pytest.LogCaptureFixture) -> FakeSupervisor:
    """A producer's run that waits, and the snapshot of both confs."""
    clock.instant = at("2026-06-01T12:30:00Z")
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(PartitionTrigger, "_observations", {})
    monkeypatch.setattr(PartitionTrigger, "_upstream", UpstreamLog())
    monkeypatch.setattr(
        "airflow_chronon.airflow.sensors.triggers._RunTrigger.log", logging.getLogger("triggers"), raising=False
    )
    snapshot = json.dumps({plan.dag_id: snapshot_of(plan).to_json() for plan in plans().values()})
    fake = FakeSupervisor(runs=[run(LABELS[1], {"wait.raw.orders": "deferred"})], snapshots={KEY: snapshot})
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", fake, raising=False)
    return fake


def run(label: str, tasks: dict[str, str | None], landed: str | None = None) -> FakeRun:
    return FakeRun(f"scheduled__{label}", None, "running", landed, dag_id=DAG, tasks=tasks)


@pytest.fixture
def wait(tmp_path: Path) -> Callable[..., PartitionTrigger]:
    """The wait of the consumer on the producer."""
    consumer = plans()["staging_query/t.b__1"]

    def build(key: str = LABELS[1], *, snapshot: str = KEY) -> PartitionTrigger:
        return PartitionTrigger(
            schedule=schedule_to_json(consumer.schedule),
            dependencies={"backfill": [dependency_to_json(each) for each in consumer.dependencies[Mode.BACKFILL]]},
            table=TABLE,
            catalog={"kind": "filesystem", "root": str(tmp_path)},
            poll_seconds=0.02,  # type: ignore[arg-type]
            writers=json.dumps([writer_to_json(each) for each in consumer.writers[TABLE]]),
            snapshot=snapshot,
            **run_of(key),
        )

    return build


def land(folder: Path, label: str) -> None:
    path = folder / TABLE / f"ds={label}"
    path.mkdir(parents=True)
    (path / "_SUCCESS").touch()


def asked_whole(supervisor: FakeSupervisor) -> list[str]:
    """The DAGs of whose runs all tasks were asked for."""
    return [each.dag_id for each in supervisor.asked if isinstance(each, GetTaskStates) and each.task_ids is None]


def asked_snapshots(supervisor: FakeSupervisor) -> int:
    return sum(isinstance(each, GetAssetStateStoreByName) and each.name == SNAPSHOT_ASSET for each in supervisor.asked)


def test_the_log_of_a_wait_says_why_its_partition_is_not_there(supervisor, wait, tmp_path, caplog):
    async def story() -> Any:
        waiting = asyncio.create_task(Triggerer().run(1, wait()))
        await until(lambda: f"+- raw.orders {LABELS[1]}: not landed" in caplog.text)
        polls = len(supervisor.asked)
        await until(lambda: len(supervisor.asked) > polls + 10)  # nothing changes
        land(tmp_path, LABELS[1])
        return await waiting

    assert isinstance(finish(story()), TaskSuccessEvent)
    assert f"{TREE}waiting (wait.raw.orders not over)" in caplog.text
    assert caplog.text.count(TREE) == 1
    assert asked_whole(supervisor) == [DAG] and asked_snapshots(supervisor) == 1


def test_it_is_told_again_when_what_is_lacking_changes(supervisor, wait, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("airflow_chronon.airflow.sensors.upstream_log.STATES_SECONDS", 0)

    async def story() -> Any:
        waiting = asyncio.create_task(Triggerer().run(1, wait()))
        await until(lambda: f"{TREE}waiting" in caplog.text)
        supervisor.runs = [run(LABELS[1], {"wait.raw.orders": "success", "backfill": "failed"}, "failed")]
        await until(lambda: f"{TREE}failed (backfill, landed failed)" in caplog.text)
        land(tmp_path, LABELS[1])
        return await waiting

    assert isinstance(finish(story()), TaskSuccessEvent)


def test_a_thousand_waits_for_the_same_ask_once(supervisor, wait, tmp_path, caplog):
    async def story() -> None:
        triggerer = Triggerer()
        waiting = [asyncio.create_task(triggerer.run(number, wait())) for number in range(1000)]
        await until(lambda: caplog.text.count(TREE) >= MOST_A_MINUTE)
        land(tmp_path, LABELS[1])
        await asyncio.gather(*waiting)

    finish(story())
    assert caplog.text.count(TREE) == MOST_A_MINUTE
    assert asked_whole(supervisor) == [DAG] and asked_snapshots(supervisor) == 1


@pytest.mark.parametrize("kept", [None, "", "{", "[]", '{"staging_query.t.a__1": 7}'])
def test_without_a_snapshot_the_wait_says_what_it_lacks_and_goes_on(supervisor, wait, tmp_path, caplog, kept):  # S9
    supervisor.snapshots = {} if kept is None else {KEY: kept}

    async def story() -> Any:
        waiting = asyncio.create_task(Triggerer().run(1, wait()))
        await until(lambda: asked_snapshots(supervisor) > 0)
        land(tmp_path, LABELS[1])
        return await waiting

    assert isinstance(finish(story()), TaskSuccessEvent)
    assert f"{TABLE} is not there yet" in caplog.text and TREE not in caplog.text


def test_an_airflow_that_does_not_answer_costs_the_tree_alone(supervisor, wait, tmp_path, caplog, monkeypatch):
    answer = supervisor.asend

    async def refuse(message: Any) -> Any:
        if isinstance(message, GetTaskStates) and message.task_ids is None:
            supervisor.asked.append(message)
            raise OSError("the supervisor is gone")
        return await answer(message)

    monkeypatch.setattr(supervisor, "asend", refuse)

    async def story() -> Any:
        waiting = asyncio.create_task(Triggerer().run(1, wait()))
        await until(lambda: bool(asked_whole(supervisor)))
        land(tmp_path, LABELS[1])
        return await waiting

    assert isinstance(finish(story()), TaskSuccessEvent)
    assert TREE not in caplog.text


def test_only_waits_on_tables_of_the_tree_know_of_the_snapshot() -> None:
    both = plans()

    def kwargs(key: str, table: str) -> dict[str, Any]:
        plan = both[key]
        sensor = PartitionSensor(
            task_id="wait", table=table, schedule=plan.schedule, dependencies=plan.dependencies, catalog={},
            settings=SensorSettings(), writers=plan.writers.get(table, ()), snapshot=KEY,
        )  # fmt: skip
        assert sensor.start_trigger_args is not None and sensor.start_trigger_args.trigger_kwargs is not None
        return sensor.start_trigger_args.trigger_kwargs

    assert kwargs("staging_query/t.b__1", TABLE)["snapshot"] == KEY
    assert "snapshot" not in kwargs("staging_query/t.a__1", "raw.orders")


def test_its_kwargs_come_back(supervisor, wait):
    trigger = wait()
    assert PartitionTrigger(**trigger.serialize()[1]).snapshot == KEY
    assert "snapshot" not in wait(snapshot="").serialize()[1]
