"""SIGKILL for processes of a running deployment, and a service manager that starts again what has ended."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import psutil
from sessions import hold_signals

from tests.support.integration.compose_processes import ComposeProcesses, Container


class Kill(Enum):
    """Who is killed at a time."""

    ALONE = "a process alone"
    GROUP = "its group"
    SESSION = "its session"
    CHILDREN = "its children alone"
    MACHINE = "all that a machine holds"
    SUPERVISORS = "supervisors of tasks only"
    RUNNERS = "runners of tasks only"


@dataclass
class ServiceManager:
    """Starts the containers again whose process has ended, a moment later, and leaves alone what else they have left."""

    processes: ComposeProcesses
    restart_seconds: float = 2.0
    restarts: int = 0
    _ended: dict[str, float] = field(default_factory=dict)

    def restart(self, name: str) -> None:
        """End a scheduler whose idle LocalExecutor workers were killed; it comes back as others do.

        A worker that dies while it waits for a task leaves the lock of the executor's queue taken. That scheduler
        says that it is well and runs nothing more, so people restart it (docs/troubleshooting.md).
        """
        for process in _alike(os.getsid, self.processes.running[name].pid):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def look(self) -> None:
        """Start again what ended long enough ago."""
        for container in self.processes.containers:
            if self.processes.running[container.name].poll() is None:
                continue
            since = self._ended.setdefault(container.name, time.monotonic())
            if time.monotonic() - since >= self.restart_seconds:
                del self._ended[container.name]
                self.processes.start(container)
                self.restarts += 1


@dataclass
class Killer:
    """Kills as its seed has it."""

    processes: ComposeProcesses
    job: Path  #: the script that jobs are, by which runners are found
    chance: random.Random
    done: list[str] = field(default_factory=list)  #: when and what was killed, for people; times as in the jobs' tales

    def kill(self) -> str | None:
        """Kill something; where no task works there is no supervisor, and another kind is taken.

        The answer names the scheduler that lost its children alone, if one did.
        """
        kinds = list(Kill)
        self.chance.shuffle(kinds)
        for kind in kinds:
            whose, victims = self._victims(kind)
            if victims:
                with hold_signals():
                    for victim in victims:
                        with contextlib.suppress(psutil.Error):
                            victim.kill()
                self.done.append(f"{time.time():.1f} {kind.value}, {whose}: {len(victims)}")
                return whose if kind is Kill.CHILDREN and whose.startswith("scheduler") else None
        return None

    def _victims(self, kind: Kill) -> tuple[str, list[psutil.Process]]:
        container = self.chance.choice(self.processes.containers)
        pid = self.processes.running[container.name].pid
        found: Iterable[psutil.Process]
        with contextlib.suppress(psutil.Error):
            if kind is Kill.MACHINE:
                number = self.chance.choice((1, 2))
                held = [each for each in self.processes.containers if each.number == number and _is_doubled(each)]
                return f"machine {number}", [victim for each in held for victim in _processes_of(each)]
            if kind in (Kill.SUPERVISORS, Kill.RUNNERS):
                tasks = _tasks(self.job)
                found = [pair[0] if kind is Kill.SUPERVISORS else pair[1] for pair in tasks]
                unique = list({each.pid: each for each in found}.values())
                return "of some", self.chance.sample(unique, self.chance.randint(min(1, len(unique)), len(unique)))
            found = {
                Kill.ALONE: lambda: [psutil.Process(pid)],
                Kill.GROUP: lambda: _alike(os.getpgid, pid),
                Kill.SESSION: lambda: _alike(os.getsid, pid),
                Kill.CHILDREN: lambda: psutil.Process(pid).children(),
            }[kind]()
            return container.name, list(found)
        return container.name, []


def _is_doubled(container: Container) -> bool:
    return container.service in ("scheduler", "triggerer", "worker")


def _alike(of: Callable[[int], int], pid: int) -> list[psutil.Process]:
    found = []
    for each in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if of(each) == pid:
                found.append(psutil.Process(each))
    return found


def _processes_of(container: Container) -> list[psutil.Process]:
    """Everything that runs for a container, its jobs and what watches them too."""
    home, found = str(container.home), []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("AIRFLOW_HOME") == home:
                found.append(process)
    return found


def _tasks(job: Path) -> list[tuple[psutil.Process, psutil.Process]]:
    """The supervisor and the runner of each job that works now."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if str(job) not in process.cmdline():
                continue
            runner = process.parent()
            supervisor = runner.parent() if runner is not None and runner.pid != 1 else None
            if runner is not None and supervisor is not None and supervisor.pid != 1:
                found.append((supervisor, runner))
    return found
