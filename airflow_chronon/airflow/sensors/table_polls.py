"""The polls of one table: one at a time, in a thread of its own, so that one that hangs delays no other table (S8)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor

from airflow_chronon.core.waits.poll import Observation
from airflow_chronon.errors import CatalogError, Fault
from airflow_chronon.threads import in_own_thread

#: After so many seconds the waits are told that a poll goes on: a listing of millions of folders is no mistake.
LONG_SECONDS = 300.0


class TablePolls:
    """Looks at a table on request. A look that takes very long is told of, and waited for: no second one is begun beside it.

    ``threads`` are those that looks of a kind share; without, each look has its own.
    """

    def __init__(self, table: str, look: Callable[[], Observation], *, threads: Executor | None = None) -> None:
        self._table, self._look, self._threads = table, look, threads
        self._running: asyncio.Future[Observation] | None = None
        self._began = 0.0

    async def observation(self) -> Observation:
        """What is there; while that is not known yet, why."""
        if self._running is None:
            begun = (
                in_own_thread(self._look, name="chronon-poll")
                if self._threads is None
                else self._threads.submit(self._look)
            )
            self._running, self._began = asyncio.wrap_future(begun), time.monotonic()
        await asyncio.wait({self._running}, timeout=LONG_SECONDS)
        if not self._running.done():
            problem = f"looking at it has not ended after {time.monotonic() - self._began:.0f} seconds"
            remedy = "does its store answer, and does it hold so many folders?"
            return Observation({}, str(CatalogError(Fault("S8", self._table, problem, remedy))))
        ended, self._running = self._running, None
        return ended.result()

    def close(self) -> None:
        """Nobody wants to know any more: what has not begun never will."""
        if self._running is not None:
            self._running.cancel()
