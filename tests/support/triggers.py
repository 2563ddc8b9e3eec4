"""Waits and gates as a triggerer runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from airflow.triggers.base import TriggerEvent
from airflow.triggers.shared_stream import SharedStreamManager

from airflow_chronon.airflow.sensors.triggers import GateTrigger, PartitionTrigger
from airflow_chronon.core.calendar.instants import DAY
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.waits.dependencies import TableDependency
from tests.support.schedules import schedule_of, spec_of

DAILY = schedule_of("@daily", DAY)
ORDERS = TableDependency("raw.orders", "ds", spec_of(DAY))
KEY = "2026-06-01"
LIMIT = 60  # seconds after which a test that hangs gives up


def run_of(key: str = "", run_type: str = "backfill", **more: str) -> dict[str, str]:
    """A run's request as the triggerer renders it."""
    empty = dict.fromkeys(("start_ds", "end_ds", "asked_at", "interval_start", "interval_end"), "")
    return {"partition_key": key, "run_type": run_type} | empty | more


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, LIMIT))


async def outcome(trigger: Any) -> TriggerEvent:
    """The one event of a trigger that shares no stream."""
    events = [event async for event in trigger.run()]
    assert len(events) == 1
    return events[0]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # the condition is another thread's
        await asyncio.sleep(0.01)


class Triggerer:
    """What Airflow's triggerer does with triggers that share streams."""

    def __init__(self) -> None:
        self.streams = SharedStreamManager()

    async def run(self, trigger_id: int, trigger: PartitionTrigger) -> TriggerEvent:
        key = trigger.shared_stream_key()
        if key is None:
            return await outcome(trigger)
        stream = self.streams.subscribe(trigger_id=trigger_id, trigger=trigger, key=key)
        try:
            async for event in trigger.filter_shared_stream(stream):
                return event
        finally:
            await self.streams.unsubscribe(trigger_id, key)
        raise AssertionError("the wait ended without an event")


def gate(mode: str, **request: str) -> GateTrigger:
    """The gate of a mode where one mode fires daily and the other weekly."""
    schedule = schedule_of({Mode.BACKFILL: "0 6 * * mon", Mode.UPLOAD: "0 2 * * *"}, DAY)
    return GateTrigger(schedule=schedule_to_json(schedule), mode=mode, **run_of(**request))
