"""What several suites share: the real Chronon compiler, in a virtual environment of its own, and the split over workers."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil
import pytest
from compile import ensure_compiler
from local_airflow import MARK
from sessions import end_processes

ROOT = Path(__file__).resolve().parents[1]
INTEGRATION = ROOT / "tests" / "integration"


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell pytest-xdist which tests share something slow, so that it is made once and ended after the last of them."""
    for item in items:
        if INTEGRATION in item.path.parents:
            is_folder = item.path.parent != INTEGRATION  # the tests of a folder share one Airflow
            item.add_marker(pytest.mark.xdist_group(item.path.parent.name if is_folder else item.path.stem))
        elif "compiler" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("compiler"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers of workers that were interrupted: they die without ending what they started."""
    factory: pytest.TempPathFactory | None = getattr(config, "_tmp_path_factory", None)
    if factory is None or hasattr(config, "workerinput"):
        return
    left, base = [], f"{factory.getbasetemp()}/"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK, "").startswith(base):
                left.append(process)
    end_processes(left, grace=10)


@pytest.fixture(scope="session")
def compiler() -> Path:
    """The folder of the virtual environment that holds zipline-ai; installed from its lock when it is not there yet."""
    home = Path(os.environ.get("CHRONON_COMPILE_VENV", ROOT / ".venv-compile"))
    ensure_compiler(home=home)
    return home
