"""What several suites share: the real Chronon compiler, in a virtual environment of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from compile import ensure_compiler

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def compiler() -> Path:
    """The folder of the virtual environment that holds zipline-ai; installed from its lock when it is not there yet."""
    home = Path(os.environ.get("CHRONON_COMPILE_VENV", ROOT / ".venv-compile"))
    ensure_compiler(home=home)
    return home
