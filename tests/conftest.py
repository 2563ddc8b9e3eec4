"""What several suites share: the real Chronon compiler, in a virtual environment of its own, and the split over workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from compile import ensure_compiler

ROOT = Path(__file__).resolve().parents[1]


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the compiler on one worker, so that it is installed once."""
    for item in items:
        if "compiler" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("compiler"))


@pytest.fixture(scope="session")
def compiler() -> Path:
    """The folder of the virtual environment that holds zipline-ai; installed from its lock when it is not there yet."""
    home = Path(os.environ.get("CHRONON_COMPILE_VENV", ROOT / ".venv-compile"))
    ensure_compiler(home=home)
    return home
