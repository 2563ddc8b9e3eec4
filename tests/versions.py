"""The unit tests on the oldest and the newest Python that are there, and on both Airflows: a part of ``make soak``.

    python tests/versions.py                  the oldest Python with the lock's Airflow, the newest with the next one
    python tests/versions.py 3.12+3.4 …       these pairs of Python and Airflow

Each pair has a virtual environment of its own below ``.venvs``, made from the lock when it is missing or the lock has
changed; the next Airflow is put over it, a preview as long as nothing else is published. Needs only the standard library.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOCKED, NEXT = "3.3", "3.4"


@dataclass(frozen=True)
class Pair:
    """A Python and an Airflow, as ``major.minor``."""

    python: str
    airflow: str

    def __str__(self) -> str:
        return f"Python {self.python} with Airflow {self.airflow}"

    @property
    def home(self) -> Path:
        return ROOT / ".venvs" / f"python{self.python}-airflow{self.airflow}"


def main(asked: Sequence[str]) -> int:
    found = {version: program for version in PYTHONS if (program := find_python(version))}
    for version in PYTHONS:
        print(f"Python {version}: {found.get(version, 'not found, so not tested')}", flush=True)
    if not found:
        return 1
    oldest, newest = min(found, key=PYTHONS.index), max(found, key=PYTHONS.index)
    pairs = [Pair(*text.split("+")) for text in asked] or [Pair(oldest, LOCKED), Pair(newest, NEXT)]
    if missing := [pair for pair in pairs if pair.python not in found]:
        print(f"no such Python here: {', '.join(map(str, missing))}", file=sys.stderr)
        return 2
    results = {pair: run(pair, program=found[pair.python]) for pair in pairs}
    for pair, outcome in results.items():
        print(f"{pair}: {outcome}")
    return 0 if set(results.values()) == {"passed"} else 1


def find_python(version: str) -> str | None:
    """A program of this version: on the PATH, or one that pyenv or uv has installed."""
    for program in _candidates(version):
        answer = subprocess.run(
            [program, "-c", "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.stdout.strip() == version:
            return program
    return None


def _candidates(version: str) -> Iterator[str]:
    for name in (f"python{version}", "python3"):
        if program := shutil.which(name):
            yield program
    yield sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python")).expanduser()
    for found in (*pyenv.glob(f"{version}.*/bin/python"), *uv.glob(f"cpython-{version}.*/bin/python")):
        yield str(found)


def run(pair: Pair, *, program: str) -> str:
    """Run the unit tests; returns ``passed``, or how it ended otherwise."""
    print(f"\n{pair}: its environment is {pair.home.relative_to(ROOT)}", flush=True)
    try:
        ensure_environment(pair, program=program)
    except subprocess.CalledProcessError as error:
        return f"not tested: its environment cannot be made (pip ended with {error.returncode})"
    python = str(pair.home / "bin" / "python")
    version = subprocess.run(
        [python, "-c", "import airflow; print(airflow.__version__)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    print(f"{pair}: it is Airflow {version}", flush=True)
    # no cache: each pair would take the other's failures for its own
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", os.environ.get("WORKERS", "2")]
    code = subprocess.run(
        [python, *tests, "-m", "not soak", "--ignore", "tests/integration"], cwd=ROOT, check=False
    ).returncode
    return "passed" if code == 0 else f"pytest ended with {code}"


def ensure_environment(pair: Pair, *, program: str) -> None:
    """Make the environment if need be. Raises CalledProcessError when pip fails."""
    python, stamp = pair.home / "bin" / "python", pair.home / "lock.sha256"
    digest = hashlib.sha256(LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    subprocess.run([program, "-m", "venv", "--clear", str(pair.home)], check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", str(LOCK)], check=True)
    if pair.airflow != LOCKED:
        subprocess.run([*pip, "--pre", f"apache-airflow=={pair.airflow}.*"], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True)
    stamp.write_text(digest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
