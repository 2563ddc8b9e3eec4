"""`make demo` as its users meet it: the program itself, in folders of the test's own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_airflow import HOST, MARK
from sessions import end_processes, processes_marked

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.processes import deaf
from tests.support.shop_runs import DEMO_CONFS

pytestmark = pytest.mark.soak

SMALL = "commerce.orders.hourly__1"


def test_everything_lands_and_the_demo_ends_with_code_0(demo: Demo) -> None:
    program = demo.start("--exit")
    result, progress = program.communicate(timeout=620)
    assert program.returncode == 0, progress
    for name in DEMO_CONFS:
        assert name in result
    assert "Features of" in result and "block_customer_id_amount_cents_sum_3d" in result
    assert f"http://{HOST}:" not in result + progress and "password" not in result + progress  # it is gone by then
    assert "Traceback" not in progress + result
    assert demo.processes() == []


def test_it_stays_up_until_ctrl_c_and_leaves_no_process(small_demo: Demo) -> None:
    program = small_demo.start()
    wait_until(lambda: "Ctrl-C stops it" in small_demo.told(), timeout=600, why="everything landed")

    second = small_demo.start()
    _, refusal = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "one is running already in" in refusal and f"process {program.pid}" in refusal
    assert "Traceback" not in refusal

    program.send_signal(signal.SIGINT)
    result, _ = program.communicate(timeout=60)
    assert program.returncode == 0
    assert SMALL in result
    assert small_demo.processes() == []
    port = int(result.split(f"http://{HOST}:")[1].split()[0])
    with socket.socket() as probe:
        assert probe.connect_ex((HOST, port)) != 0


def test_it_says_what_is_late_when_its_time_is_over(small_demo: Demo) -> None:
    program = small_demo.start("--exit", "--minutes", "0")
    _, progress = program.communicate(timeout=200)
    assert program.returncode == 1
    assert "not everything landed in time" in progress
    assert "Traceback" not in progress
    assert small_demo.processes() == []


class Demo:
    """Starts the demo in one folder, and ends whatever a failed test left."""

    def __init__(self, *, home: Path, checkout: Path = ROOT) -> None:
        self.home = home
        self._checkout = checkout
        self._progress = home.with_suffix(".progress")
        self._programs: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        first = not self._programs
        program = subprocess.Popen(
            deaf([sys.executable, str(self._checkout / "examples/demo.py"), "--home", str(self.home), *arguments]),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            # the first one's progress is read while it runs
            stderr=self._progress.open("w") if first and not arguments else subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._programs.append(program)
        return program

    def told(self) -> str:
        return self._progress.read_text()

    def processes(self) -> list[int]:
        return [process.pid for process in processes_marked(variable=MARK, value=str(self.home / "airflow"))]

    def end(self) -> None:
        for program in self._programs:
            program.kill()
            program.wait()
        end_processes(processes_marked(variable=MARK, value=str(self.home / "airflow")), grace=2)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    started = Demo(home=tmp_path / "demo")
    yield started
    started.end()


@pytest.fixture
def small_demo(tmp_path: Path) -> Iterator[Demo]:
    """The demo of a checkout whose tree holds a single conf."""
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "examples", checkout / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "dags", checkout / "dags", ignore=shutil.ignore_patterns("__pycache__", "compiled"))
    folder, name = SMALL.split(".", 1)
    conf = Path("dags/chronon/compiled/staging_queries", folder, name)
    (checkout / conf).parent.mkdir(parents=True)
    shutil.copy(ROOT / conf, checkout / conf)
    started = Demo(home=tmp_path / "demo", checkout=checkout)
    yield started
    started.end()
