"""What Airflow's database and the state folder hold is read for ever: one payload of each kind, as text (rule 8 of the house).

A payload in ``tests/data/payloads`` is never changed: a later version reads it as this one does. One that writes more is
added beside it.
"""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET, contract_key
from airflow_chronon.core.records.manifest import plan_of_manifest
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.core.waits.dependencies import Lookback
from airflow_chronon.core.waits.serialization import dependency_from_json, writer_from_json
from tests.support.schedules import at

PAYLOADS = Path(__file__).resolve().parents[1] / "data" / "payloads"


def load(name: str) -> tuple[Any, dict[str, Any]]:
    """The class that a payload names, found as Airflow finds it, and what it is made of."""
    payload = json.loads((PAYLOADS / f"{name}.json").read_text())
    module, _, cls = payload["class"].rpartition(".")
    return getattr(import_module(module), cls), payload["data"]


def test_the_timetable_of_a_conf() -> None:
    cls, data = load("partition_timetable")
    schedule = cls.deserialize(data)._schedule
    run = schedule.next_run(None, at("2026-06-02T10:00:00Z"))
    assert (iso(run.fire), iso(run.end)) == ("2026-06-01T10:15:00Z", "2026-06-01T10:00:00Z")  # the newest eight
    assert [mode.value for mode in schedule.all_modes] == ["backfill", "upload"]
    assert cls.deserialize(data).serialize() == data


def test_the_timetable_of_a_job() -> None:
    cls, data = load("job_timetable")
    schedule = cls.deserialize(data)._schedule
    run = schedule.next_run(at("2026-06-01T06:30:00Z"), at("2026-06-01T12:00:00Z"))
    assert (iso(run.fire), str(run.window)) == ("2026-06-02T06:30:00Z", "[2026-06-01T05:30:00Z, 2026-06-02T05:30:00Z)")
    assert cls.deserialize(data).serialize() == data


def test_a_wait() -> None:
    cls, data = load("partition_trigger")
    trigger = cls(**data)
    assert trigger.serialize() == (f"{cls.__module__}.PartitionTrigger", data)
    (dependency,) = map(dependency_from_json, trigger.dependencies["backfill"])
    run = trigger._run()
    (wait,) = dependency.waits(run.window.start, run.window.end, grid=trigger._runs().spec.grid)
    assert wait.labels == ("2026-06-01-00-00", "2026-06-01-01-00", "2026-06-01-02-00")
    assert (wait.policy, wait.sub) == (Lookback.REQUIRE, ("region=eu",))
    (writer,) = map(writer_from_json, json.loads(trigger.writers))
    assert writer.dag_id == "staging_query.t.s.hourly__1" and writer.is_known


def test_a_wait_of_a_run_of_a_replay() -> None:
    cls, data = load("partition_trigger_of_a_replay")
    trigger = cls(**data)
    assert trigger.serialize() == (f"{cls.__module__}.PartitionTrigger", data)
    first = trigger._held_for()
    assert [each.run_id for each in first] == [f"manual__2026-06-01-0{hour}-00__ab12cd34" for hour in range(3)]


def test_a_gate() -> None:
    cls, data = load("gate_trigger")
    trigger = cls(**data)
    assert trigger.serialize() == (f"{cls.__module__}.GateTrigger", data)
    assert iso(trigger._run().modes[next(iter(trigger._run().modes))].fire) == "2026-06-01T04:15:00Z"


def test_a_wait_for_another_writer() -> None:
    cls, data = load("write_order_ticket_trigger")
    trigger = cls(**data)
    assert trigger.serialize() == (f"{cls.__module__}.WriteOrderTrigger", data)
    order = import_module(cls.__module__).WriteOrder.from_json(trigger.order)
    assert order.task == ("staging_query.t.s.x__1", "manual__x", "backfill")
    assert (order.ticket.written, order.ticket.attempt, order.ticket.number) == ("ns.t_s_x__1", 2, 0)


def test_a_wait_for_another_run_that_knew_no_tickets_ends_and_its_task_asks_again(mocker: MockerFixture) -> None:
    cls, data = load("write_order_trigger")
    trigger = cls(**data)
    assert trigger.serialize() == (f"{cls.__module__}.WriteOrderTrigger", data)
    mocker.patch(f"{cls.__module__}.LEAVING_SECONDS", 0)
    mocker.patch(f"{cls.__module__}.find_airflow", return_value=FakeAirflow())

    async def payloads() -> list[object]:
        return [event.payload async for event in trigger.run()]

    assert asyncio.run(payloads()) == ["first"]


def test_a_wait_for_a_job_that_another_task_follows() -> None:
    cls, data = load("followed_job_trigger")
    trigger = cls(**data)
    assert trigger.serialize() == (f"{cls.__module__}.FollowedJobTrigger", data)


def test_a_record() -> None:
    cls, data = load("record")
    record = cls.from_json(data, dag_id=data["dag_id"])
    assert isinstance(record, DeploymentRecord) and record.manifest is not None
    assert record.to_json() == data
    assert plan_of_manifest(record.manifest).dag_id == "staging_query.t.s.x__1"


def test_the_place_of_a_grid_contract() -> None:
    assert (CONTRACTS_ASSET, contract_key("group_by.t.x__1")) == (
        "chronon://airflow-chronon/grid-contracts",
        "grid:group_by.t.x__1",
    )


NEEDED = {
    "partition_timetable": {"spec"},
    "job_timetable": {"cron"},
    "partition_trigger": {"schedule", "dependencies", "table", "catalog"},
    "gate_trigger": {"schedule", "mode"},
    "write_order_trigger": {"order"},
    "write_order_ticket_trigger": {"order"},
    "followed_job_trigger": {"task_of"},
    "record": {"dag_id"},
}


def build(name: str, data: dict[str, Any]) -> Any:
    cls, _ = load(name)
    if name == "record":
        return cls.from_json(data, dag_id="staging_query.t.s.x__1")
    return cls.deserialize(data) if name.endswith("timetable") else cls(**data)


@pytest.mark.parametrize("name", NEEDED)
def test_keys_that_are_missing_are_read_with_defaults_and_keys_that_are_not_known_are_passed_over(name: str) -> None:
    _, data = load(name)
    build(name, {**data, "added_by_a_later_version": "1"})
    build(name, {key: value for key, value in data.items() if key in NEEDED[name]})
    if "catch_up" in data:
        build(name, {**data, "catch_up": [*data["catch_up"], "more"]})
        build(name, {**data, "catch_up": [False]})
