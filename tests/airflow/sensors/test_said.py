"""What people say of partitions ends the waits on them: ``land``, and ``land --never``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from airflow.triggers.base import TaskSuccessEvent

from airflow_chronon.airflow.sensors.triggers import PartitionTrigger
from airflow_chronon.core.waits.said import SAID_ASSET, Said, Word, partition_key, table_key
from tests.support.supervisor import FakeSupervisor
from tests.support.triggers import KEY, finish, outcome, until

pytestmark = pytest.mark.usefixtures("present")


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> FakeSupervisor:
    caplog.set_level(logging.INFO)
    fake = FakeSupervisor()
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", fake, raising=False)
    return fake


def say(supervisor: FakeSupervisor, label: str, said: Said, token: str = "a") -> None:
    supervisor.said |= {table_key("raw.orders"): token, partition_key("raw.orders", label): Word(said).to_json()}


@pytest.mark.parametrize(
    ("said", "told"), [(Said.NEVER, "is absent on purpose (land)"), (Said.LANDED, "is there by somebody's word (land)")]
)
def test_a_wait_passes_and_says_so(
    supervisor: FakeSupervisor, wait_for: Callable[..., PartitionTrigger], caplog: Any, said: Said, told: str
) -> None:
    async def story() -> Any:
        trigger = wait_for()
        task = asyncio.create_task(outcome(trigger))
        await until(lambda: bool(trigger._said))
        assert not task.done()
        say(supervisor, KEY, said)
        return await task

    event = finish(story())
    assert isinstance(event, TaskSuccessEvent)
    assert f"raw.orders ds={KEY} {told}" in caplog.text
    assert told in str(event.xcoms)  # the run's note tells it


def test_a_word_about_another_partition_ends_nothing_and_costs_one_question_a_poll(
    supervisor: FakeSupervisor, wait_for: Callable[..., PartitionTrigger]
) -> None:
    def asked(key: str) -> int:
        return sum(getattr(each, "key", None) == key and each.name == SAID_ASSET for each in supervisor.asked)

    async def story() -> None:
        say(supervisor, "2026-05-01", Said.NEVER)
        task = asyncio.create_task(outcome(wait_for()))
        await until(lambda: asked(table_key("raw.orders")) > 5)
        assert not task.done() and asked(partition_key("raw.orders", KEY)) == 1
        task.cancel()

    finish(story())


def test_what_is_taken_back_holds_the_next_wait(
    supervisor: FakeSupervisor, wait_for: Callable[..., PartitionTrigger]
) -> None:
    async def story() -> None:
        say(supervisor, KEY, Said.NEVER)
        assert isinstance(await outcome(wait_for()), TaskSuccessEvent)
        del supervisor.said[partition_key("raw.orders", KEY)]
        supervisor.said[table_key("raw.orders")] = "b"
        trigger = wait_for()
        task = asyncio.create_task(outcome(trigger))
        await until(lambda: "not there yet" in trigger._said)
        assert not task.done()
        task.cancel()

    finish(story())


@pytest.mark.parametrize("kept", [5, "x", {}, {"said": "maybe"}, None, []])
def test_what_nobody_can_read_says_nothing(
    supervisor: FakeSupervisor, wait_for: Callable[..., PartitionTrigger], kept: Any
) -> None:
    async def story() -> None:
        supervisor.said |= {table_key("raw.orders"): "a", partition_key("raw.orders", KEY): kept}
        trigger = wait_for()
        task = asyncio.create_task(outcome(trigger))
        await until(lambda: bool(trigger._said))
        assert not task.done()
        task.cancel()

    finish(story())
