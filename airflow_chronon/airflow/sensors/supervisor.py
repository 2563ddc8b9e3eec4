"""The triggerer's own supervisor, which answers triggers about runs without a connection or rights."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Protocol

ANSWERS_WITHIN = 60.0  #: seconds; a supervisor that takes longer is gone on without


class Supervisor(Protocol):
    """What answers: the triggerer's supervisor."""

    async def asend(self, msg: Any) -> Any: ...


class NoAnswer(Exception):
    """The supervisor has not answered in time."""


class ProcessSupervisor:
    """The supervisor of this process, as there is one in a triggerer, waited for no longer than :data:`ANSWERS_WITHIN`.

    One that never answers must not hold all waits on a table. Yet no question is taken back, since its answer might be taken
    for that of the next one: while one is overdue, no other of its kind is asked.
    """

    _overdue: ClassVar[dict[str, asyncio.Future[Any]]] = {}  #: by kind, of all who ask in this process

    async def asend(self, msg: Any) -> Any:
        """Ask, and return the answer. Raises :class:`NoAnswer`, and whatever the supervisor raises."""
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS  # set when the process starts

        kind = type(msg).__name__
        overdue = self._overdue.get(kind)
        if overdue is not None and not overdue.done():
            raise NoAnswer(f"an earlier {kind} has not been answered yet")
        question = asyncio.ensure_future(SUPERVISOR_COMMS.asend(msg))
        await asyncio.wait((question,), timeout=ANSWERS_WITHIN)
        if question.done():
            return question.result()
        self._overdue[kind] = question
        question.add_done_callback(_is_nobodys)
        raise NoAnswer(f"{kind} has not been answered within {ANSWERS_WITHIN:g} seconds")


def _is_nobodys(question: asyncio.Future[Any]) -> None:
    """Take a late answer for nobody, so that asyncio does not complain of an exception that nobody has seen."""
    if not question.cancelled():
        question.exception()
