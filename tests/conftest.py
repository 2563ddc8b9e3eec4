"""What several suites share: the real Chronon compiler, in a virtual environment of its own, and the split over workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from compile import ensure_compiler

ROOT = Path(__file__).resolve().parents[1]
#: Fixtures that cost much and are made once per worker: the tests that share one run on one worker.
SHARED = ("compiler", "real_airflow", "reconciled_airflow", "lab")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell pytest-xdist which tests belong together; whole files where they start servers of their own."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        shared = next((name for name in SHARED if name in fixtures), None)
        if shared is None and "integration" in item.path.parts:
            shared = item.path.stem
        if shared is not None:
            item.add_marker(pytest.mark.xdist_group(shared))


@pytest.fixture(scope="session")
def compiler() -> Path:
    """The folder of the virtual environment that holds zipline-ai; installed from its lock when it is not there yet."""
    home = Path(os.environ.get("CHRONON_COMPILE_VENV", ROOT / ".venv-compile"))
    ensure_compiler(home=home)
    return home
