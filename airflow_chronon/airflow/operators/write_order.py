"""Waiting for one's turn to write, without a worker (C28).

A task that is not first defers: while it waits it holds neither a worker nor one of the DAG's work slots (H12), so
that other partitions go on. Its place in the order is its first start, which Airflow keeps over a deferral.
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
from airflow_chronon.airflow_api.coverage import Claim, ahead_of
from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.runs.write_order import SETTLING_SECONDS, Writer
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import RunSchedule
from airflow_chronon.core.schedules.serialization import schedule_from_json, schedule_to_json
from airflow_chronon.errors import ChrononError, Fault

LOOK_EVERY = 5  #: seconds between two looks while a task waits
#: Seconds from a deferral to the first look. A worker may need ``[workers] min_heartbeat_interval`` (5) to report that it
#: has deferred; Airflow fails a task that runs again when that report comes (apache/airflow issues 71580 and 72716).
LEAVING_SECONDS = conf.getint("workers", "min_heartbeat_interval", fallback=5) + 3
LOOKS_FOR_ONESELF = 10  #: a second apart, until Airflow lists the task that asks
NOT_LISTED = "waiting until Airflow lists this task"


@dataclass(frozen=True)
class Turn:
    """One task that wants to write, and the schedule that tells what the runs of its DAG write."""

    claim: Claim
    schedule: RunSchedule

    def take(self, server: AirflowServer, *, started: float) -> tuple[Writer, ...]:
        """Who is ahead, asked once those who began just before show up in listings; empty: it is this task's turn.

        ``started`` is when the task began by its own clock, in seconds since the epoch. Raises ``ChrononError`` when
        Airflow does not tell, or goes on not knowing of this task.
        """
        left = started + SETTLING_SECONDS - moment()
        if 0 < left <= SETTLING_SECONDS:  # a task that has waited already goes straight on
            time.sleep(left)
        for _ in range(LOOKS_FOR_ONESELF):
            ahead = self.ahead(server)
            if ahead is not None:
                return ahead
            time.sleep(1)
        problem = f"Airflow does not list {self.claim.task_id} of {self.claim.run_id}, which is running"
        raise ChrononError(Fault("C28", "", problem, "may the connection's user read this DAG's tasks?"))

    def ahead(self, server: AirflowServer) -> tuple[Writer, ...] | None:
        """Who is at work on these partitions and came first; None when Airflow does not show this task yet."""
        return ahead_of(self.claim, server, self.schedule, now=now())

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        claim = self.claim
        return {
            "dag_id": claim.dag_id,
            "task_id": claim.task_id,
            "run_id": claim.run_id,
            "mode": claim.mode.value,
            "window": [claim.window.start, claim.window.end],
            "schedule": schedule_to_json(self.schedule),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Turn:
        names = (data["dag_id"], data["task_id"], data["run_id"])
        claim = Claim(*names, mode=Mode(data["mode"]), window=TimeWindow(*data["window"]))
        return cls(claim, schedule_from_json(data["schedule"]))


def in_words(ahead: tuple[Writer, ...]) -> str:
    """Who is waited for."""
    return f"waiting for {', '.join(writer.run_id for writer in ahead)}, which writes the same partitions"


class TurnTrigger(BaseTrigger):
    """Fires when nobody is ahead any more. The task then looks once more itself."""

    def __init__(self, *, turn: dict[str, Any], look_every: int = LOOK_EVERY) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.turn, self.look_every = turn, look_every

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.TurnTrigger", {"turn": self.turn, "look_every": self.look_every}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        turn, said = Turn.from_json(self.turn), ""
        await asyncio.sleep(LEAVING_SECONDS)
        server = await asyncio.to_thread(find_airflow)
        while server is not None:
            try:
                ahead = await asyncio.to_thread(turn.ahead, server)
                text = NOT_LISTED if ahead is None else in_words(ahead) if ahead else ""
            except AirflowUnreachable as error:  # it may be restarting: the writer ahead is still there
                text = str(error)
            except ChrononError:
                break  # the task asks once more itself, and fails with the reason
            if not text:
                break
            if text != said:
                said = text
                self.log.info("%s", text)
            await asyncio.sleep(self.look_every)
        yield TriggerEvent("first")  # type: ignore[no-untyped-call]
