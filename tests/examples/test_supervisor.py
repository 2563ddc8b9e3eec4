"""The supervisor that the demo and the tests on real Airflows stand on, without an Airflow: what it starts, it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from local_airflow import HOST, AirflowNotRunning, LocalAirflow
from sessions import end_sessions, hold_signals, processes_of, start_session, stopped_by_signals

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.processes import deaf

WAITS = """
import time
from sessions import stopped_by_signals
with stopped_by_signals():
    try:
        print("ready", flush=True)
        time.sleep(600)
    finally:
        print("cleaned up", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("parent", ["listens", "ignores"])
def test_a_signal_leads_to_the_clean_up_also_where_the_parent_ignores_it(number: int, parent: str) -> None:
    command = [sys.executable, "-c", WAITS]
    program = subprocess.Popen(
        deaf(command) if parent == "ignores" else command,
        env={**os.environ, "PYTHONPATH": str(ROOT / "examples")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.send_signal(number)
        printed, _ = program.communicate(timeout=60)
        assert printed == "cleaned up\n"
        assert program.returncode != 0
    finally:
        program.kill()
        program.wait()


def test_a_start_ends_what_a_killed_predecessor_of_the_same_home_left(tmp_path: Path) -> None:
    server = LocalAirflow(home=tmp_path, dags=tmp_path)
    orphan = start_session(["sleep", "600"], environment=server.environment, log=tmp_path / "log")
    stranger = start_session(["sleep", "600"], environment=os.environ, log=tmp_path / "log")
    try:
        server.end_predecessors()
        assert orphan.poll() is not None or not psutil.pid_exists(orphan.pid)
        assert stranger.poll() is None
    finally:
        end_sessions([orphan.pid, stranger.pid], grace=1)


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = LocalAirflow(home=tmp_path / "home", dags=tmp_path, port=port)
        with pytest.raises(AirflowNotRunning, match=f"port {port} of 127.0.0.1 is in use; choose another"), server:
            pytest.fail("it cannot come up")
    assert not server.home.exists()


def test_settings_of_the_caller_do_not_leak_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW_CONFIG", "/elsewhere/airflow.cfg")
    server = LocalAirflow(home=tmp_path, dags=tmp_path, settings={"AIRFLOW__CORE__PARALLELISM": "2"})
    assert server.environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert server.environment["AIRFLOW__CORE__PARALLELISM"] == "2"
    assert "AIRFLOW_CONFIG" not in server.environment


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 1; done"
    process = start_session(["sh", "-c", script], environment=os.environ, log=tmp_path / "log")
    wait_until(lambda: "ready" in (tmp_path / "log").read_text(), timeout=10, why="the trap is set", every=0.05)
    end_sessions([process.pid], grace=0.5)
    assert processes_of([process.pid]) == []


def test_an_interrupt_during_a_held_block_acts_after_it() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), stopped_by_signals(), hold_signals():
        signal.raise_signal(signal.SIGINT)
        done.append("the whole block")
    assert done == ["the whole block"]


def test_a_wait_that_fails_says_what_it_waited_for_and_what_it_saw() -> None:
    with pytest.raises(TimeoutError, match=r"the label lands: not after 0 s; last seen: \[\]"):
        wait_until(list, timeout=0, why="the label lands")
