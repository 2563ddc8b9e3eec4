"""Processes that a program starts in sessions of their own, and ends with everything that they started in turn.

A process group is not enough: Airflow's LocalExecutor gives its workers groups of their own. They stay in the session,
so the session is what is ended; children that left even that are found as descendants.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import psutil


@contextlib.contextmanager
def hold_signals() -> Iterator[None]:
    """Keep Ctrl-C and SIGTERM back until the block is done, then let the first of them act.

    Between the birth of a process and the line that notes its id an interrupt would leave it behind; so would a second
    Ctrl-C while processes are being ended. Does nothing outside the main thread, where signals never arrive.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    previous = {number: signal.signal(number, hold) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Within the block Ctrl-C raises :class:`KeyboardInterrupt` and SIGTERM :class:`SystemExit` (143), so that clean-up runs.

    Also where the parent ignores them, as shells do for what they start in the background: Python leaves an ignored
    Ctrl-C ignored. Handlers already there stay. Does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    previous: dict[int, Any] = {}
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, leave)):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.SIG_IGN):
            previous[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for replaced, handler in previous.items():
            signal.signal(replaced, handler)


def start_session(command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a command as the leader of a new session, its output appended to ``log``, without standard input."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def processes_of(sessions: Iterable[int]) -> list[psutil.Process]:
    """The living processes of the sessions, and those that any of them started elsewhere; zombies do not count."""
    wanted = set(sessions)
    found: dict[int, psutil.Process] = {}
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(pid) in wanted:
                process = psutil.Process(pid)
                for one in (process, *process.children(recursive=True)):
                    found[one.pid] = one
    return [process for process in found.values() if _lives(process)]


def processes_marked(*, variable: str, value: str) -> list[psutil.Process]:
    """The living processes, this one aside, whose environment holds ``variable=value``."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(variable) == value and _lives(process):
                found.append(process)
    return found


def end_processes(processes: Iterable[psutil.Process], *, grace: float) -> None:
    """SIGTERM to every process, SIGKILL to those that are left after ``grace`` seconds; returns when all are gone.

    psutil compares start times before it signals, so a number that another process has taken over is left alone.
    """
    left = list(processes)
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in left:
            with contextlib.suppress(psutil.Error):
                end(process)
        _, left = psutil.wait_procs([process for process in left if _lives(process)], timeout=grace)
        left = [process for process in left if _lives(process)]
        if not left:
            return


def end_sessions(sessions: Iterable[int], *, grace: float) -> None:
    """End the sessions and whatever their processes start while they are being ended."""
    wanted = set(sessions)
    end_processes(processes_of(wanted), grace=grace)
    while born_meanwhile := processes_of(wanted):
        for process in born_meanwhile:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(born_meanwhile, timeout=1)


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
