"""On an Airflow that is too old everything says the same one sentence, and Airflow itself goes on."""

from __future__ import annotations

import subprocess
import sys

from tests.support.checkout import ROOT

SENTENCE = (
    "airflow_chronon needs Airflow 3.3 or newer: waits without a worker do not exist before; this is Airflow {version}"
)
#: What a program begins with: the Airflow that is there says that it is another one.
PRETENDS = "import airflow; airflow.__version__ = {version!r}\n"


def run(version: str, program: str) -> str:
    """What a program printed under an Airflow of this version, the errors of a logger included."""
    pretending = PRETENDS.format(version=version) + program
    done = subprocess.run(
        [sys.executable, "-c", pretending],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_plugin_says_it_and_registers_nothing() -> None:
    program = "from airflow_chronon.plugin import ChrononPlugin; print(ChrononPlugin.timetables)"
    said = run("3.2.1", program)
    assert said.count(SENTENCE.format(version="3.2.1")) == 1
    assert said.splitlines()[-1] == "[]"
    assert "Traceback" not in said


def test_it_is_the_import_error_of_every_loader_file() -> None:
    program = """
import pathlib, runpy
for loader in pathlib.Path("dags").glob("*.py"):
    try:
        runpy.run_path(str(loader))
    except ImportError as error:
        print(f"{loader.name}: {error}")
"""
    loaders = sorted(path.name for path in (ROOT / "dags").glob("*.py"))
    expected = [f"{name}: {SENTENCE.format(version='3.2.1')}" for name in loaders]
    assert sorted(line for line in run("3.2.1", program).splitlines() if line.startswith("chronon")) == expected


def test_a_preview_of_the_oldest_airflow_that_has_it_all_is_new_enough() -> None:
    program = "from airflow_chronon.plugin import ChrononPlugin; print(len(ChrononPlugin.timetables))"
    assert run("3.3.0rc1", program).splitlines()[-1] == "2"
