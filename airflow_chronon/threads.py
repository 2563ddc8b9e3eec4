"""Work in a thread of its own: given up, it is in nobody's way, and it keeps no process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Done = TypeVar("_Done")


def in_own_thread(work: Callable[[], _Done], *, name: str) -> Future[_Done]:
    """Begin the work; what it returns or raises is the future's. Not in a pool that all share: a few that hang would take it."""
    done: Future[_Done] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name=name).start()
    return done
