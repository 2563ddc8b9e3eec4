"""Work that ends with Airflow's supervisor of its task (C28)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.execution_time import task_runner

from airflow_chronon.airflow.operators.supervisor_watch import _is_closed, ends_with_supervisor
from airflow_chronon.engine.command import Command, CommandRunner
from airflow_chronon.errors import JobFailed


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The supervisor's end of the connection of this process, as if it were a task's."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", SimpleNamespace(socket=ours), raising=False)
    with ours, theirs:
        yield theirs


def test_a_command_that_prints_nothing_ends_with_the_supervisor(supervisor: socket.socket, tmp_path: Path) -> None:
    runner, began = CommandRunner(grace_seconds=1), tmp_path / "began"
    script = f"echo $$ > {began}.part; mv {began}.part {began}; exec sleep 1000"

    def kill_the_supervisor() -> None:
        while not began.exists():
            pass
        supervisor.close()

    killer = threading.Thread(target=kill_the_supervisor)
    killer.start()
    with pytest.raises(JobFailed, match="was stopped before it was done"), ends_with_supervisor(runner.stop):
        runner.run_command(Command("job/a.b", ["sh", "-c", script]), lambda line: None)
    killer.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(began.read_text()), 0)


def test_work_that_has_a_supervisor_ends_by_itself(supervisor: socket.socket) -> None:
    supervisor.sendall(b"an answer")
    stopped: list[str] = []
    with ends_with_supervisor(lambda: stopped.append("stopped")):
        CommandRunner().run_command(Command("job/a.b", ["sleep", "1"]), lambda line: None)
    assert stopped == []
    ours = task_runner.SUPERVISOR_COMMS.socket
    assert ours.recv(100) == b"an answer"  # left for whoever reads it


@pytest.mark.parametrize("seconds", [None, 0.0, 0.05])
def test_a_timeout_that_somebodys_code_gave_to_all_sockets_is_not_the_end_of_the_supervisor(
    supervisor: socket.socket, seconds: float | None
) -> None:
    ours = task_runner.SUPERVISOR_COMMS.socket
    ours.settimeout(seconds)
    assert not _is_closed(ours)
    supervisor.close()
    assert _is_closed(ours)


def test_without_a_supervisor_nothing_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", SimpleNamespace(), raising=False)
    before = threading.active_count()
    with ends_with_supervisor(lambda: None):
        assert threading.active_count() == before


WORK_THAT_DOES_NOT_STOP = """
import socket, sys, time
from types import SimpleNamespace
from airflow.sdk.execution_time import task_runner
from airflow_chronon.airflow.operators import supervisor_watch

supervisor_watch.STOPPING_SECONDS = 0.2
task_runner.SUPERVISOR_COMMS = SimpleNamespace(socket=socket.socket(fileno=int(sys.argv[1])))
with supervisor_watch.ends_with_supervisor(lambda: print("asked to stop", flush=True)):
    while True:
        time.sleep(1)
"""


def test_work_that_does_not_stop_is_cut_off(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        process = subprocess.Popen(
            [sys.executable, "-c", WORK_THAT_DOES_NOT_STOP, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        theirs.close()
    try:
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 1 and said.endswith("asked to stop\n")


#: A scheduler whose child is the supervisor of a task, as LocalExecutor has it; the task works in a child of that one.
SCHEDULER = """
import multiprocessing, os, socket, sys, time
from types import SimpleNamespace
from airflow.sdk.execution_time import task_runner
from airflow_chronon.airflow.operators.supervisor_watch import ends_with_supervisor

is_orphan, told = sys.argv[1] == "orphan", int(sys.argv[2])

def worker(scheduler):
    while is_orphan and os.getppid() == scheduler:
        time.sleep(0.01)
    ours, theirs = socket.socketpair()
    if os.fork():
        os.close(told)
        time.sleep(1000)
    task_runner.SUPERVISOR_COMMS = SimpleNamespace(socket=theirs)
    os.write(told, f"{os.getpid()} {os.getppid()}\\n".encode())
    with ends_with_supervisor(lambda: os._exit(0)):
        time.sleep(1000)

multiprocessing.get_context("fork").Process(target=worker, args=(os.getpid(),)).start()
os.close(told)
if not is_orphan:
    time.sleep(1000)
os._exit(0)
"""


@pytest.mark.parametrize("when", ["orphan", "at work"])
def test_work_ends_with_the_scheduler_of_a_local_executor(when: str, tmp_path: Path) -> None:
    """Its worker lives on, and takes tasks from its queue (C28)."""
    reads, told = os.pipe()
    scheduler = subprocess.Popen(
        [sys.executable, "-c", SCHEDULER, when, str(told)],
        pass_fds=[told],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
    )
    os.close(told)
    with os.fdopen(reads) as said:
        runner, supervisor = map(int, said.readline().split())
        try:
            scheduler.kill()
            assert said.readline() == ""  # closed by the runner's end: the supervisor has closed nothing
        finally:
            scheduler.wait()
            for pid in (runner, supervisor):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
