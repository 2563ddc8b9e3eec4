"""Waits on the tables of a folder, at one moment."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_chronon.airflow.sensors.triggers import PartitionTrigger
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.core.waits.serialization import dependency_to_json
from tests.support.schedules import at
from tests.support.triggers import DAILY, KEY, ORDERS, run_of


@pytest.fixture
def present(clock, monkeypatch) -> None:
    clock.instant = at("2026-06-10T00:00:00Z")
    monkeypatch.setattr(PartitionTrigger, "_observations", {})
    monkeypatch.setattr(
        "airflow_chronon.airflow.sensors.triggers._RunTrigger.log", logging.getLogger("triggers"), raising=False
    )


@pytest.fixture
def land(tmp_path: Path) -> Callable[[str], None]:
    """Land a partition: ``raw.orders/ds=2026-06-01``."""

    def land(path: str) -> None:
        folder = tmp_path / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part-0.parquet").write_bytes(b"x")

    return land


@pytest.fixture
def wait_for(tmp_path: Path) -> Callable[..., PartitionTrigger]:
    def build(
        *dependencies: TableDependency, key: str = KEY, on_timeout: str = "fail", **request: str
    ) -> PartitionTrigger:
        given = dependencies or (ORDERS,)
        return PartitionTrigger(
            schedule=schedule_to_json(DAILY),
            dependencies={"backfill": [dependency_to_json(each) for each in given]},
            table=given[0].table,
            catalog={"kind": "filesystem", "root": str(tmp_path)},
            poll_seconds=0.02,  # type: ignore[arg-type]  # whole seconds are for people
            on_timeout=on_timeout,
            **(run_of(key) | request),
        )

    return build
