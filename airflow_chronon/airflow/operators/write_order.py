"""The write order of tasks: each waits, without a worker, for earlier writers of its partitions, of whatever DAG (C28).

A task that is not first defers: while it waits it holds no worker, though Airflow counts it among the running ones of its task
(``max_active_tis_per_dag``). Where one whose work is under way lacks such a slot, it steps aside, and out of the order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

from airflow.sdk.configuration import conf
from airflow.sdk.execution_time.context import NEVER_EXPIRE
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_chronon.airflow.clock import moment
from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.writers import TICKET_KEY, Rivals, ticket_of
from airflow_chronon.core.runs.write_order import (
    DRAWING,
    TaskKey,
    Ticket,
    Writer,
    lacking_a_slot,
    next_number,
    passed_by,
    writers_before,
)
from airflow_chronon.errors import ChrononError

POLL_SECONDS = 5  #: seconds between two polls while a task waits
#: Seconds from a deferral to the first poll, and from the start of a further try to its work. A worker may need ``[workers]
#: min_heartbeat_interval`` (5) to report that it has deferred; Airflow fails a task that runs again when that report comes
#: (apache/airflow issues 71580 and 72716). One that was taken for lost may need as long to hear of it.
LEAVING_SECONDS = conf.getint("workers", "min_heartbeat_interval", fallback=5) + 3
LOOKS_AT_DRAWING = (
    10  #: a second apart, at others that are just drawing their numbers, before it waits without a worker
)
STEP_ASIDE = "step aside"  #: the event of a wait that holds a slot which a writer at work may need
ASIDE_SECONDS = 30  #: without any slot, so that the other one gets it


@dataclass(frozen=True)
class WriteOrder:
    """One task, the ticket that it draws, and the table of its conf, by whose name others are found."""

    task: TaskKey
    ticket: Ticket
    table: str

    def take(self, server: AirflowServer, store: Any, *, started: float, goes_on: bool) -> tuple[Writer, ...]:
        """Its predecessors; empty when it may write. ``store`` is Airflow's store of its state, where its ticket is kept.

        ``started`` is when the task began, in seconds since the epoch; ``goes_on`` says that it was deferred since. Raises
        ``ChrononError`` when Airflow does not answer.
        """
        left = started + LEAVING_SECONDS - moment()
        if self.ticket.attempt > 1 and 0 < left <= LEAVING_SECONDS:  # what a lost worker has left ends meanwhile
            time.sleep(left)
        rivals = Rivals(server, self.task, self.ticket, self.table)
        me = Writer(self.task, self._drawn(rivals, store, goes_on=goes_on))
        for look in range(LOOKS_AT_DRAWING):
            if look:
                time.sleep(1)
            writers = rivals.writers()
            predecessors = writers_before(me, writers) or self._passing(me, writers, rivals, store)
            if not any(writer.is_drawing for writer in predecessors):
                break
        return predecessors

    @staticmethod
    def _passing(me: Writer, writers: tuple[Writer, ...], rivals: Rivals, store: Any) -> tuple[Writer, ...]:
        """Say that it is first; returns those who came back while it passed them, and then it is not."""
        _keep(store, replace(me.ticket, is_first=True))
        if not passed_by(me, writers):
            return ()
        try:
            predecessors = writers_before(me, rivals.writers())
        except ChrononError:
            _keep(store, me.ticket)  # nobody is to wait for it while it waits for Airflow
            raise
        if predecessors:
            _keep(store, me.ticket)
        return predecessors

    def give_up(self, store: Any) -> None:
        """Leave the order for now; it draws anew when it is back."""
        _keep(store, self.ticket)

    def _drawn(self, rivals: Rivals, store: Any, *, goes_on: bool) -> Ticket:
        """Its ticket with a number: that of before a deferral of this try, else a new one."""
        data = store.get(TICKET_KEY) if goes_on else None
        kept = None if data is None else Ticket.from_json(data)
        if kept is not None and kept.number != DRAWING and kept.is_of_same_work(self.ticket):
            if kept.is_first:
                _keep(store, replace(kept, is_first=False))
            return replace(kept, is_first=False)
        _keep(store, self.ticket)  # before it looks: others wait for its number
        drawn = replace(self.ticket, number=next_number(rivals.writers()))
        _keep(store, drawn)
        return drawn

    def watch(self, server: AirflowServer) -> Callable[[], tuple[tuple[Writer, ...], frozenset[TaskKey]]]:
        """What tells again and again who is before it, by the number that it has drawn, and who lacks a slot."""
        rivals = Rivals(server, self.task, self.ticket, self.table)

        def look() -> tuple[tuple[Writer, ...], frozenset[TaskKey]]:
            mine = ticket_of(server, self.task) or self.ticket
            if mine.number == DRAWING or mine.is_first:  # Airflow did not answer when it drew, or later
                return (), frozenset()
            writers = rivals.writers()
            return writers_before(Writer(self.task, mine), writers), lacking_a_slot(writers)

        return look

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        return {"task": list(self.task), "ticket": self.ticket.to_json(), "table": self.table}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> WriteOrder | None:
        """None for one that an earlier version wrote: its task asks again by itself."""
        if "ticket" not in data:
            return None
        dag_id, run_id, task_id = data["task"]
        return cls((dag_id, run_id, task_id), Ticket.from_json(data["ticket"]), data["table"])


def _keep(store: Any, ticket: Ticket) -> None:
    store.set(TICKET_KEY, ticket.to_json(), retention=NEVER_EXPIRE)


def format_predecessors(predecessors: tuple[Writer, ...], *, dag_id: str) -> str:
    """A sentence for the log: which runs are waited for."""
    named = (
        writer.task[1] if writer.task[0] == dag_id else f"{writer.task[1]} of {writer.task[0]}"
        for writer in predecessors
    )
    return f"waiting for {', '.join(named)}, which writes the same partitions"


class WriteOrderTrigger(BaseTrigger):
    """Fires when no predecessor is left, or when one at work lacks a slot. The task then asks once more itself."""

    def __init__(self, *, order: dict[str, Any], poll_seconds: int = POLL_SECONDS, **_later: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.order, self.poll_seconds = order, poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.WriteOrderTrigger", {"order": self.order, "poll_seconds": self.poll_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(LEAVING_SECONDS)
        order, server = WriteOrder.from_json(self.order), await asyncio.to_thread(find_airflow)
        event = "first" if order is None or server is None else await self._turn(order, server)
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]

    async def _turn(self, order: WriteOrder, server: AirflowServer) -> str:
        said, lacking, look = "", frozenset[TaskKey](), order.watch(server)
        while True:
            try:
                predecessors, lack_now = await asyncio.to_thread(look)
            except AirflowUnreachable as error:  # it may be restarting: the predecessor is still there
                text = str(error)
            except ChrononError:
                return "first"  # the task asks once more itself, and fails with the reason
            else:
                if not predecessors:
                    return "first"
                text = format_predecessors(predecessors, dag_id=order.task[0])
                if lacking & lack_now:  # in two polls running: it does not just pass through
                    return STEP_ASIDE
                lacking = lack_now
            if text != said:
                said = text
                self.log.info("%s", text)
            await asyncio.sleep(self.poll_seconds)
