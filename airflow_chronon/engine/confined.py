"""Work whose processes end with it: those that somebody else's code starts in the process group of a worker.

A worker that is killed (the kernel out of memory, Airflow after its grace) leaves what it has started running, and
a retry would be a second writer of the same partitions beside it (C28).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from airflow_chronon.engine.watchdog import watchdog

_POLL_SECONDS = 0.05


@contextmanager
def confined(*, grace_seconds: float, environment: Mapping[str, str]) -> Iterator[None]:
    """What is started inside, in the process group of this process, is ended with the block, and with the process.

    It gets SIGTERM, and SIGKILL after ``grace_seconds``. A process whose group is led by another, which belongs to more than
    this work, is left alone. ``environment`` is that of the watchdog.
    """
    if os.getpgrp() != os.getpid():
        yield
        return
    with watchdog(grace_seconds=grace_seconds, environment=environment) as watch:
        watch(os.getpgrp())
        try:
            yield
        finally:
            _end_others(grace_seconds)


def _end_others(grace_seconds: float) -> None:
    deadline = time.monotonic() + grace_seconds
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _others():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        while _others() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


def _others() -> list[int]:
    """The other processes of this one's group that run; none where the system has no ``/proc``."""
    group, found = str(os.getpgrp()), list[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, of, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            if of == group and state not in "ZX" and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found
