"""Jobs as a run would ask for them, and a warehouse of real Parquet folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from airflow_chronon.core.calendar.instants import HOUR, TimeWindow, parse_instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, escape_label, partition_format
from airflow_chronon.engine.protocol import JobRequest

DAILY = PartitionSpec(PartitionGrid(24 * HOUR), partition_format("yyyy-MM-dd"))

MakeJob = Callable[..., JobRequest]


@pytest.fixture
def make_job() -> MakeJob:
    """A job over ``[start, end)``; by default the backfill of a daily staging query for one day."""

    def make(
        query: str = "SELECT 1",
        *,
        start: str | None = "2026-06-01",
        end: str = "2026-06-02",
        spec: PartitionSpec = DAILY,
        conf_type: str = "staging_query",
        mode: str = "backfill",
        path: str = "compiled/staging_queries/team/orders.daily__1",
        environment: Mapping[str, str] | None = None,
        **document: Any,
    ) -> JobRequest:
        return JobRequest(
            conf_type=conf_type,
            name="team.orders.daily__1",
            mode=mode,
            document={"query": query, "metaData": {}, **document},
            path=path,
            table="out.orders",
            spec=spec,
            window=TimeWindow(parse_instant(start), parse_instant(end)) if start else None,
            environment=environment or {},
        )

    return make


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def land(warehouse: Path) -> Callable[..., Path]:
    """Write a partition of a source table with the rows of a DuckDB query."""

    def write(table: str, select: str, *, name: str = "a.parquet", **partition: str) -> Path:
        folder = warehouse.joinpath(table, *(f"{column}={escape_label(label)}" for column, label in partition.items()))
        folder.mkdir(parents=True, exist_ok=True)
        duckdb.sql(select).write_parquet(str(folder / name))
        return folder / name

    return write


@pytest.fixture
def rows(warehouse: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """The rows of a partition that was written, sorted."""

    def read(label: str, table: str = "out.orders") -> list[tuple[Any, ...]]:
        path = warehouse / table / f"ds={escape_label(label)}" / "part-0.parquet"
        return sorted(duckdb.sql(f"SELECT * FROM read_parquet('{path}', hive_partitioning = false)").fetchall())

    return read
