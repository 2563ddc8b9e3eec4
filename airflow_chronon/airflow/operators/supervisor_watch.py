"""Work ends with Airflow's supervisor of its task.

The supervisor is the process above the one that works: it tells Airflow how the task does. Where it is killed (a scheduler
that goes with its workers, the kernel out of memory), Airflow starts the task anew within seconds, while the process that
works knows nothing of it: there would be a second writer of the same partitions beside the first (C28).
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

POLL_SECONDS = 0.5
#: How long stopped work may take to end by itself: longer than a command has from SIGTERM to SIGKILL by default.
STOPPING_SECONDS = 10.0


@contextmanager
def ends_with_supervisor(stop: Callable[[], None]) -> Iterator[None]:
    """``stop`` is called from another thread when the supervisor is gone; work that goes on all the same is cut off, and
    the process with it. Without a supervisor, as in ``airflow dags test``, nothing is watched."""
    connection = _connection()
    if connection is None:
        yield
        return
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(connection, stop, done), name="supervisor watch", daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()


def _watch(connection: socket.socket, stop: Callable[[], None], done: threading.Event) -> None:
    while not done.wait(POLL_SECONDS):
        if _is_closed(connection):
            stop()
            if not done.wait(STOPPING_SECONDS):
                os._exit(1)  # nobody is left to be told, and what Airflow started anew must not wait for this
            return


def _connection() -> socket.socket | None:
    """The socket by which a task talks to its supervisor; None where the task runs in the process of whoever asked."""
    from airflow.sdk.execution_time import task_runner

    comms: Any = getattr(task_runner, "SUPERVISOR_COMMS", None)
    found = getattr(comms, "socket", None)
    return found if isinstance(found, socket.socket) else None


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end is gone; what it sends is left for the one who reads it."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, InterruptedError, TimeoutError):
        return False  # also where somebody's code has given all sockets a timeout
    except OSError:
        return True
