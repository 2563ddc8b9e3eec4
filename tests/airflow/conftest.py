"""An Airflow home of these tests' own, chosen before anything imports Airflow, and a clock that tests set."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

_HOME = tempfile.mkdtemp(prefix="airflow-chronon-tests-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ["AIRFLOW_HOME"] = _HOME
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{_HOME}/airflow.db"


@pytest.fixture(autouse=True)
def state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a loader keeps in its state folder (C23) stays with its test."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))


class Clock:
    """What the Airflow layer takes for the present: an instant that a test sets."""

    instant = 0

    def utcnow(self) -> datetime:
        return datetime.fromtimestamp(self.instant, UTC)


@pytest.fixture
def clock(mocker: MockerFixture) -> Clock:
    """The clock of the Airflow layer, stopped."""
    clock = Clock()
    mocker.patch("airflow_chronon.airflow.clock.timezone", clock)
    return clock


@pytest.fixture
def quick_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks and their triggers called by hand: they log like anybody, find no Airflow, and wait for nothing but their job."""
    operators = "airflow_chronon.airflow.operators"
    for each in ("modes._PlanOperator", "job.JobOperator", "remote.RemoteTrigger"):
        monkeypatch.setattr(f"{operators}.{each}.log", logging.getLogger("operators"), raising=False)
    monkeypatch.setattr(f"{operators}.modes.find_airflow", lambda: None)
    monkeypatch.setattr(f"{operators}.remote.find_airflow", lambda: None)
    monkeypatch.setattr(f"{operators}.remote.LEAVING_SECONDS", 0)
    monkeypatch.setattr(f"{operators}.remote.SHORTEST_POLL", 0.01)


@pytest.fixture
def corpus() -> Path:
    """Compiled confs of every shape."""
    return Path(__file__).resolve().parents[1] / "data" / "main"


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """Airflow's own tables in SQLite."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def session(airflow_database: None) -> Iterator[Any]:
    """A session whose rows are rolled back."""
    from airflow import settings

    assert settings.Session is not None
    session = settings.Session()
    yield session
    session.rollback()
    session.close()
