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

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.core.conf import Mode
from airflow_chronon.core.instants import TimeWindow
from airflow_chronon.core.runs import RunSchedule
from airflow_chronon.core.turns import SETTLING_SECONDS, Writer, writers_ahead
from airflow_chronon.core.wire import schedule_from_json, schedule_to_json
from airflow_chronon.errors import ChrononError
from airflow_chronon.rest.coverage import writers
from airflow_chronon.rest.protocol import AirflowServer

LOOK_EVERY = 5  #: seconds between two looks while a task waits


@dataclass(frozen=True)
class Turn:
    """One task that wants to write."""

    dag_id: str
    task_id: str
    mode: Mode
    me: Writer
    schedule: RunSchedule

    def ahead(self, server: AirflowServer) -> tuple[Writer, ...]:
        """Who is at work on these partitions and came first."""
        others = writers(server, self.dag_id, self.task_id, self.mode, self.schedule, now=now(), but=self.me.run_id)
        return writers_ahead(self.me, others)

    def settle(self) -> None:
        """Let those who started just before show up in listings; a task that has waited already goes straight on."""
        left = self.me.start + SETTLING_SECONDS - time.time()
        if 0 < left <= SETTLING_SECONDS:
            time.sleep(left)

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        return {
            "dag_id": self.dag_id,
            "task_id": self.task_id,
            "mode": self.mode.value,
            "run_id": self.me.run_id,
            "start": self.me.start,
            "window": [self.me.window.start, self.me.window.end],
            "schedule": schedule_to_json(self.schedule),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Turn:
        me = Writer(data["run_id"], data["start"], TimeWindow(*data["window"]))
        return cls(data["dag_id"], data["task_id"], Mode(data["mode"]), me, schedule_from_json(data["schedule"]))


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
        server = await asyncio.to_thread(find_airflow)
        while server is not None:
            try:
                ahead = await asyncio.to_thread(turn.ahead, server)
                text = in_words(ahead) if ahead else ""
            except ChrononError as error:  # the server may be restarting: the writer ahead is still there
                text = str(error)
            if not text:
                break
            if text != said:
                said = text
                self.log.info("%s", text)
            await asyncio.sleep(self.look_every)
        yield TriggerEvent("first")  # type: ignore[no-untyped-call]
