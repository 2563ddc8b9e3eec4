"""Work ends with Airflow's supervisor of its task.

The supervisor is the process above the one that works: it tells Airflow how the task does. Where it is killed (a scheduler
that goes with its workers, the kernel out of memory), Airflow starts the task anew within seconds, while the process that
works knows nothing of it: there would be a second writer of the same partitions beside the first (C28).

With LocalExecutor the supervisor is a child of the scheduler and lives on when that alone is killed. Another scheduler takes its tasks
for lost, while it has not heard of it: work ends with that scheduler, too.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil

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
    is_gone = _either(lambda: _is_closed(connection), _scheduler_is_gone())
    watch = threading.Thread(target=_watch, args=(is_gone, stop, done), name="supervisor watch", daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()


def _watch(is_gone: Callable[[], bool], stop: Callable[[], None], done: threading.Event) -> None:
    while not done.wait(POLL_SECONDS):
        if is_gone():
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


def _either(*questions: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: any(ask() for ask in questions)


def _scheduler_is_gone() -> Callable[[], bool]:
    """What tells whether the process that started this task's supervisor by multiprocessing is gone, as LocalExecutor's scheduler
    may be before the work begins: its children take on from their queue what it has put there. Of others nobody knows, and the
    answer is no."""
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return lambda: False
    try:
        scheduler = psutil.Process(parent.pid)
        began = psutil.Process().create_time()
        if scheduler.create_time() > began:  # another that has got its number
            return lambda: True
    except psutil.NoSuchProcess:
        return lambda: True
    except psutil.Error:
        return lambda: False
    return lambda: not _is_alive(scheduler)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end is gone; what it sends is left for the one who reads it."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, InterruptedError, TimeoutError):
        return False  # also where somebody's code has given all sockets a timeout
    except OSError:
        return True
