"""``python -m airflow_chronon``: for where no script is on the path."""

from __future__ import annotations

import subprocess
import sys

from airflow_chronon import __version__
from tests.support.checkout import ROOT


def test_it_is_the_command_line() -> None:
    command = [sys.executable, "-m", "airflow_chronon"]
    said = subprocess.run([*command, "--version"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (said.stdout, said.stderr) == (f"airflow-chronon {__version__}\n", "")  # no warning of a library either


def test_its_exit_code_tells_what_became_of_it() -> None:
    command = [sys.executable, "-m", "airflow_chronon", "check", "--root", "nowhere"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "nowhere" in done.stdout + done.stderr and "Traceback" not in done.stderr
