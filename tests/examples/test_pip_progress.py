"""What `make demo` says while pip is at work for two minutes."""

from __future__ import annotations

import itertools
import subprocess
import venv
from pathlib import Path

import pytest
from pip_progress import EVERY, locked, progress

from tests.support.checkout import ROOT

LINES = [
    *(f"Collecting package-{number}==1.0 (from -r requirements.lock (line {number}))\n" for number in range(1, 5)),
    "  Downloading package-4-1.0.tar.gz (1 kB)\n",
    "Installing collected packages: package-1, package-2\n",
]


def test_a_line_comes_every_few_seconds_and_one_before_the_silent_part() -> None:
    seconds = itertools.count(0, EVERY / 2)
    assert list(progress(LINES, total=9, clock=lambda: next(seconds))) == [
        "2 of at most 9 packages: package-2==1.0",
        "4 of at most 9 packages: package-4==1.0",
        "4 packages are here; unpacking them takes about a minute",
    ]


def test_the_packages_of_the_lock_are_counted() -> None:
    assert locked(["--no-deps", "-r", str(ROOT / "requirements.lock")]) > 100


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with pip and nothing else."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True, symlinks=True)
    return home / "bin" / "python"


def test_where_pip_fails_its_own_words_are_shown(python: Path, tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"nothing @ file://{tmp_path}/nothing-1.0-py3-none-any.whl\n")
    command = [str(python), str(ROOT / "examples/pip_progress.py"), "--no-index", "-r", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "nothing-1.0" in done.stderr
