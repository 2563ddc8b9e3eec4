"""A wait on an Iceberg table (C16)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_chronon.airflow.sensors.triggers import PartitionTrigger
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.waits.serialization import dependency_to_json
from tests.support.iceberg import IcebergLake
from tests.support.triggers import DAILY, KEY, ORDERS, run_of


def test_a_wait_ends_with_the_commit_that_it_waits_for(tmp_path: Path, present: None, caplog: Any) -> None:
    lake = IcebergLake(tmp_path)
    lake.create("raw.orders", pa.schema({"ds": pa.string(), "v": pa.int64()}), {"ds": "identity"})
    trigger = PartitionTrigger(
        schedule=schedule_to_json(DAILY),
        dependencies={"backfill": [dependency_to_json(ORDERS)]},
        table="raw.orders",
        catalog={"kind": "iceberg", "properties": lake.properties},
        poll_seconds=0.05,  # type: ignore[arg-type]
        **run_of(KEY),  # type: ignore[arg-type]
    )

    async def story() -> object:
        async def first() -> object:
            return await anext(aiter(trigger.run()))

        task = asyncio.create_task(first())
        while not trigger._said:
            await asyncio.sleep(0.01)
        assert not task.done()
        await asyncio.to_thread(lake.append, "raw.orders", [{"ds": KEY, "v": 1}])
        return await task

    event = asyncio.run(asyncio.wait_for(story(), 30))
    assert type(event).__name__ == "TaskSuccessEvent"


def test_one_that_names_a_connection_asks_airflow_for_it_and_says_when_there_is_none(
    present: None, caplog: Any, monkeypatch: Any
) -> None:
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    async def nothing(connection_id: str) -> Any:
        raise AirflowNotFoundException(connection_id)

    monkeypatch.setattr(BaseHook, "aget_connection", nothing)
    trigger = PartitionTrigger(
        schedule=schedule_to_json(DAILY),
        dependencies={"backfill": [dependency_to_json(ORDERS)]},
        table="raw.orders",
        catalog={"kind": "iceberg", "connection": "lake"},
        poll_seconds=0.05,  # type: ignore[arg-type]
        **run_of(KEY),  # type: ignore[arg-type]
    )

    async def story() -> None:
        async def first() -> object:
            return await anext(aiter(trigger.run()))

        task = asyncio.create_task(first())
        while not trigger._said:
            await asyncio.sleep(0.01)
        assert not task.done()
        task.cancel()

    asyncio.run(asyncio.wait_for(story(), 30))
    assert "Airflow has no connection 'lake'" in trigger._said
