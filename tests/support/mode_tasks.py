"""Tasks of a daily conf over real folders, and their contexts as a worker sees them."""

from __future__ import annotations

import logging
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_chronon.dags import build_dags
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.schedules import at


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def root(tmp_path: Path, warehouse: Path, clock, monkeypatch) -> ConfRootOnDisk:
    """A conf root with one daily staging query, its source data for two days, and the present ten days later."""
    clock.instant = at("2026-06-10T00:00:00Z")
    root = ConfRootOnDisk(tmp_path / "chronon")
    root.settings(f"catalog: {{kind: filesystem, root: {warehouse}}}\n")
    root.staging_query(
        "orders.daily", query="SELECT id, ds FROM raw.orders WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}"
    )
    for day in (1, 2):
        folder = warehouse / "raw.orders" / f"ds=2026-06-0{day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": list(range(day * 10))}), folder / "part-0.parquet")
    monkeypatch.setattr(
        "airflow_chronon.airflow.operators.modes._PlanOperator.log", logging.getLogger("operators"), raising=False
    )
    monkeypatch.setattr(
        "airflow_chronon.airflow.operators.modes.find_airflow", lambda: None
    )  # test_writing.py has its turn
    return root


def task(root: ConfRootOnDisk, task_id: str, dag_id: str = "staging_query.orders.daily__1") -> Any:
    return build_dags(conf_root=root.path)[dag_id].get_task(task_id)


class State(dict[str, Any]):
    """Stands for the state that Airflow keeps of an asset."""

    set = dict.__setitem__


class Events(dict[Any, Any]):
    """Stands for Airflow's outlet events: remembers the labels of each asset."""

    def __missing__(self, asset: Any) -> Any:
        self[asset] = SimpleNamespace(labels=[])
        self[asset].add_partitions = self[asset].labels.extend
        return self[asset]

    @property
    def labels(self) -> dict[str, list[str]]:
        return {asset.uri: event.labels for asset, event in self.items()}


def context(
    key: str | None = None,
    run_type: str = "manual",
    conf: dict[str, Any] | None = None,
    interval: Any = (None, None),
    **params: str,
) -> dict[str, Any]:
    """A run as a worker sees it."""
    start, end = interval
    run = SimpleNamespace(
        partition_key=key,
        run_type=run_type,
        data_interval_start=start,
        data_interval_end=end,
        conf=conf,
        run_id="run-1",
    )
    given = {"start_ds": None, "end_ds": None} | params
    return {
        "dag_run": run,
        "params": given,
        "run_id": "run-1",
        "outlet_events": Events(),
        "asset_state_store": defaultdict(State),
    }
