"""An hourly conf with a warehouse beside it, and an Airflow that the commands find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.login import ENVIRONMENT_VARIABLE
from airflow_chronon.airflow_api.records import DagRecord, RunRecord
from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format

CONF = "checkout.orders.hourly_rollup__1"
DAG = f"staging_query.{CONF}"
TABLE = "checkout_features.checkout_orders_hourly_rollup__1"
SPEC = PartitionSpec(PartitionGrid(HOUR), partition_format("yyyy-MM-dd-HH-mm"))


@dataclass(frozen=True)
class Place:
    """A conf root with a warehouse beside it."""

    root: Path
    warehouse: Path

    def land(self, *labels: str) -> None:
        for label in labels:
            folder = self.warehouse / TABLE / f"ds={label}"
            folder.mkdir(parents=True)
            (folder / "part-0.parquet").touch()


@pytest.fixture
def place(root: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(root))
    return Place(root, root / "warehouse")


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> FakeAirflow:
    """An Airflow that the commands find."""
    fake = FakeAirflow(dag_records={DAG: DagRecord(DAG)}, specs={DAG: SPEC})
    for module in ("partitions", "backfill", "why"):
        monkeypatch.setattr(f"airflow_chronon.cli.commands.{module}.find_server", lambda address: fake)
    monkeypatch.setattr("airflow_chronon.cli.commands.backfill.need_server", lambda address: fake)
    return fake


def labels(first: int, last: int) -> list[str]:
    return [f"2026-06-01-{hour:02}-00" for hour in range(first, last + 1)]


def run(label: str, state: str, run_type: str = "scheduled") -> RunRecord:
    start = SPEC.start_of(label)
    return RunRecord(DAG, f"{run_type}__{label}", run_type, state, label, start, run_after=start + HOUR)
