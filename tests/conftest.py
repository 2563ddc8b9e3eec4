"""What several suites share: the real Chronon compiler, in a virtual environment of its own, and the split over workers."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import psutil
import pytest
from compile import ensure_compiler
from local_airflow import MARK
from sessions import end_processes
from xdist.scheduler import LoadScopeScheduling

from tests.support.checkout import ROOT

USE_THE_COMPILER = (
    "tests/engine/test_argv.py",
    "tests/examples/test_compiled_output.py",
    "tests/examples/test_scaffold.py",
)


#: Those that take longest begin first, so that no worker is left alone with one at the end.
LONGEST_FIRST = tuple(
    f"tests/integration/{name}"
    for name in (
        "test_kills.py",
        "reconciling",
        "runs",
        "replays",
        "edges",
        "test_demo.py",
        "test_story.py",
        "test_from_nothing.py",
        "test_compose.py",
        "test_compose_processes.py",
    )
)


class OneWorkerPerAirflow(LoadScopeScheduling):
    """Keeps tests together that share something slow: the folders of ``tests/integration`` that share an Airflow, each
    other file there, the tests of the compiler, and else the files."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """The tests that stay together, by a name."""
    file = nodeid.partition("::")[0]
    folders = Path(file).parts
    if folders[:2] == ("tests", "integration"):
        return "/".join(folders[:3])
    return "compiler" if file in USE_THE_COMPILER else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneWorkerPerAirflow:
    config.option.loadscopereorder = False  # in the order of the collection, see below
    return OneWorkerPerAirflow(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        rank = {scope: place for place, scope in enumerate(LONGEST_FIRST)}
        items.sort(key=lambda item: rank.get(scope_of(item.nodeid), len(rank)))


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
