"""What somebody else's code starts on a worker ends with the worker (C28)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until

#: Starts a process that starts another and leaves it, as spark-submit does with Java and Python, in a group of its own.
WORKER = """
import os, subprocess, sys, time
from pathlib import Path
from airflow_chronon.engine.confined import confined
os.setpgid(0, 0)
below = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);" \\
    "open(sys.argv[1], 'w').write(str(p.pid) + chr(10)); {how}"
with confined(grace_seconds=2, environment={{}}):
    subprocess.Popen([sys.executable, "-c", below, sys.argv[1]])
    while not Path(sys.argv[1]).exists() or not Path(sys.argv[1]).read_text().endswith(chr(10)):
        time.sleep(0.05)
    print("at work", flush=True)
    sys.stdin.readline()
print("ended", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("how", ["time.sleep(600)", "pass"], ids=["its parent works", "its parent is gone"])
@pytest.mark.parametrize("end", ["kill", "return"])
def test_a_process_that_the_work_has_started_ends_with_it(tmp_path: Path, how: str, end: str) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER.format(how=how), str(tmp_path / "pid")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdin is not None
    try:
        assert worker.stdout.readline() == "at work\n"
        started = psutil.Process(int((tmp_path / "pid").read_text()))
        if end == "kill":
            worker.send_signal(signal.SIGKILL)
        else:
            worker.stdin.write("\n")
            worker.stdin.flush()
            assert worker.stdout.readline() == "ended\n"
        wait_until(lambda: _has_ended(started), timeout=60, every=0.05, why="what the work has started ends")
        assert end == "kill" or worker.poll() is None
    finally:
        worker.kill()
        worker.communicate()


def _has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
