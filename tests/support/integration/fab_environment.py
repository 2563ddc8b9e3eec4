"""The FAB auth manager, in a virtual environment of its own: it wants an older library than the rest does."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

from tests.support.checkout import ROOT

LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-fab.lock")
HOME = ROOT / ".venvs" / "fab"


def ensure_fab() -> Path:
    """The Python that has Airflow, this package and FAB, installed from the locks if need be.

    Raises CalledProcessError when pip fails.
    """
    python, stamp = HOME / "bin" / "python", HOME / "locks.sha256"
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in (*LOCKS, ROOT / "pyproject.toml"))).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == digest:
        return python
    print(f"installing the FAB auth manager into {HOME}", file=sys.stderr)
    venv.create(HOME, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    for lock in LOCKS:  # the second one has another version of what the first one has too
        subprocess.run([*pip, "install", "--quiet", "--require-hashes", "--no-deps", "-r", str(lock)], check=True)
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True)
    subprocess.run([*pip, "check"], check=True)
    stamp.write_text(digest)
    return python
