"""The watchdog of a command: a small process that ends the command's group when the worker that started it is gone.

Nothing in a process can act on its own SIGKILL (the kernel out of memory, Airflow after its grace). The watchdog holds
the other end of a pipe instead: it closes with the worker, however that ended. Without it a retry would be a second
writer of the same partitions beside the first (C28).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

_POLL_SECONDS = 0.1


@contextmanager
def watchdog(*, grace_seconds: float, environment: Mapping[str, str]) -> Iterator[Callable[[int], None]]:
    """Gives ``watch(group)``: if this process dies inside the block, that process group is ended.

    It gets SIGTERM, and SIGKILL after ``grace_seconds`` (0 or more). ``environment`` is the watchdog's own. Call ``watch``
    once. Raises ``OSError`` when no process can be started.
    """
    process = subprocess.Popen(
        # The interpreter alone (no site, no variables, no current folder): it starts in a few milliseconds.
        [sys.executable, "-I", "-S", __file__, str(grace_seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,  # what ends the worker's own group must not end the watchdog too
        bufsize=0,
    )
    pipe = process.stdin
    assert pipe is not None

    def tell(text: str) -> None:
        with suppress(BrokenPipeError):  # somebody ended the watchdog: the command goes on without one
            pipe.write(f"{text}\n".encode())

    try:
        yield lambda group: tell(str(group))
    finally:
        tell("done")
        pipe.close()
        process.wait()


def _main(grace_seconds: float) -> None:
    group, done = sys.stdin.readline(), sys.stdin.readline()
    if group.strip().isdigit() and not done:
        _end(int(group), grace_seconds)


def _end(group: int, grace_seconds: float) -> None:
    deadline = time.monotonic() + grace_seconds
    with suppress(ProcessLookupError):  # the group has gone
        os.killpg(group, signal.SIGTERM)
        while time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    _main(float(sys.argv[1]))
