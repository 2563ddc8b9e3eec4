"""The write order of tasks: each waits, without a worker, for earlier writers of its partitions (C28).

A task that is not first defers: while it waits it holds no worker, though Airflow counts it among the running ones of its task
(``max_active_tis_per_dag``). Its place in the order is its first start, which Airflow keeps over a deferral.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from airflow.sdk.configuration import conf
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_chronon.airflow.clock import moment, now
from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.airflow_api.coverage import Ticket, predecessors_of
from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.runs.write_order import SETTLING_SECONDS, Writer
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.schedules.serialization import schedule_from_json, schedule_to_json
from airflow_chronon.errors import ChrononError, Fault

POLL_SECONDS = 5  #: seconds between two polls while a task waits
#: Seconds from a deferral to the first poll. A worker may need ``[workers] min_heartbeat_interval`` (5) to report that it
#: has deferred; Airflow fails a task that runs again when that report comes (apache/airflow issues 71580 and 72716).
LEAVING_SECONDS = conf.getint("workers", "min_heartbeat_interval", fallback=5) + 3
TRIES_TO_FIND_ITSELF = 10  #: a second apart, until Airflow lists the task that asks
NOT_LISTED = "waiting until Airflow lists this task"


@dataclass(frozen=True)
class WriteOrder:
    """The ticket of one task, and the schedule that says what the runs of its DAG write."""

    ticket: Ticket
    schedule: PartitionedSchedule

    def take(self, server: AirflowServer, *, started: float) -> tuple[Writer, ...]:
        """Its predecessors, once those that began just before it show up in listings; empty when it may write.

        ``started`` is when the task began by its own clock, in seconds since the epoch. Raises ``ChrononError`` when
        Airflow does not answer, or does not list this task.
        """
        left = started + SETTLING_SECONDS - moment()
        if 0 < left <= SETTLING_SECONDS:  # a task that has waited already goes straight on
            time.sleep(left)
        for _ in range(TRIES_TO_FIND_ITSELF):
            predecessors = self.predecessors(server)
            if predecessors is not None:
                return predecessors
            time.sleep(1)
        problem = f"Airflow does not list {self.ticket.task_id} of {self.ticket.run_id}, which is running"
        raise ChrononError(Fault("C28", "", problem, "may the connection's user read this DAG's tasks?"))

    def predecessors(self, server: AirflowServer) -> tuple[Writer, ...] | None:
        """The writers at work on these partitions that came first; None when Airflow does not list this task yet."""
        return predecessors_of(self.ticket, server, self.schedule, now=now())

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        ticket = self.ticket
        return {
            "dag_id": ticket.dag_id,
            "task_id": ticket.task_id,
            "run_id": ticket.run_id,
            "mode": ticket.mode.value,
            "window": [ticket.window.start, ticket.window.end],
            "schedule": schedule_to_json(self.schedule),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> WriteOrder:
        names = (data["dag_id"], data["task_id"], data["run_id"])
        ticket = Ticket(*names, mode=Mode(data["mode"]), window=TimeWindow(*data["window"]))
        return cls(ticket, schedule_from_json(data["schedule"]))


def format_predecessors(predecessors: tuple[Writer, ...]) -> str:
    """A sentence for the log: which runs are waited for."""
    return f"waiting for {', '.join(writer.run_id for writer in predecessors)}, which writes the same partitions"


class WriteOrderTrigger(BaseTrigger):
    """Fires when no predecessor is left. The task then asks once more itself."""

    def __init__(self, *, order: dict[str, Any], poll_seconds: int = POLL_SECONDS, **_later: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.order, self.poll_seconds = order, poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.WriteOrderTrigger", {"order": self.order, "poll_seconds": self.poll_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        order, said = WriteOrder.from_json(self.order), ""
        await asyncio.sleep(LEAVING_SECONDS)
        server = await asyncio.to_thread(find_airflow)
        while server is not None:
            try:
                predecessors = await asyncio.to_thread(order.predecessors, server)
                text = NOT_LISTED if predecessors is None else format_predecessors(predecessors) if predecessors else ""
            except AirflowUnreachable as error:  # it may be restarting: the predecessor is still there
                text = str(error)
            except ChrononError:
                break  # the task asks once more itself, and fails with the reason
            if not text:
                break
            if text != said:
                said = text
                self.log.info("%s", text)
            await asyncio.sleep(self.poll_seconds)
        yield TriggerEvent("first")  # type: ignore[no-untyped-call]
