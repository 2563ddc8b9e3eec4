"""Warehouses of a few rows, and GroupBys and Joins over them as the compiler would write them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from airflow_chronon.core.calendar.instants import DAY, HOUR, TimeWindow, parse_instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, escape_label, partition_format
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import JobRequest

Rows = Sequence[Sequence[Any]]


def spec_of(interval: int = DAY, offset: int = 0, *, column: str = "ds") -> PartitionSpec:
    grid = PartitionGrid(interval, offset)
    return PartitionSpec(grid, partition_format(default_pattern(grid)), column)


DAILY, HOURLY, THREE_HOURLY = spec_of(), spec_of(HOUR), spec_of(3 * HOUR, HOUR)


def window(text: str) -> dict[str, int]:
    return {"length": int(text[:-1]), "timeUnit": {"h": 0, "d": 1, "m": 2}[text[-1]]}


def grid_fields(spec: PartitionSpec) -> dict[str, Any]:
    """The partition fields of a query or an output table, absent for a legacy daily grid."""
    if spec.grid.is_legacy_daily:
        return {}
    offset = {"partitionOffset": {"length": spec.grid.offset // 60, "timeUnit": 2}} if spec.grid.offset else {}
    return {
        "partitionColumn": spec.column,
        "partitionFormat": spec.format.pattern,
        "partitionInterval": {"length": spec.grid.interval // 60, "timeUnit": 2},
        **offset,
    }


def meta(name: str, spec: PartitionSpec) -> dict[str, Any]:
    info = grid_fields(spec)
    return {
        "name": name,
        "outputNamespace": "out",
        "executionInfo": {"outputTableInfo": info} if info else {},
    }


def events(table: str, spec: PartitionSpec = DAILY, *, time: str | None = "ts_ms", **query: Any) -> dict[str, Any]:
    timed = {"timeColumn": time} if time else {}
    return {"events": {"table": table, "query": {**grid_fields(spec), **timed, **query}}}


def entities(table: str, spec: PartitionSpec = DAILY, *, mutations: str | None = None, **query: Any) -> dict[str, Any]:
    mutated = {"mutationTable": mutations} if mutations else {}
    return {"entities": {"snapshotTable": table, **mutated, "query": {**grid_fields(spec), **query}}}


def group_by(
    *sources: Mapping[str, Any],
    keys: Sequence[str] = ("user",),
    aggregations: Sequence[Mapping[str, Any]] | None,
    spec: PartitionSpec = DAILY,
    name: str = "team.features.all__1",
    accuracy: int | None = 1,
    **more: Any,
) -> dict[str, Any]:
    document = {"sources": list(sources), "keyColumns": list(keys), "metaData": meta(name, spec), **more}
    if aggregations is not None:
        document["aggregations"] = list(aggregations)
    if accuracy is not None:
        document["accuracy"] = accuracy
    return document


def aggregation(
    column: str, operation: int, *windows: str, buckets: Sequence[str] = (), **arguments: str
) -> dict[str, Any]:
    found: dict[str, Any] = {"inputColumn": column, "operation": operation, "argMap": arguments}
    if windows:
        found["windows"] = [window(text) for text in windows]
    if buckets:
        found["buckets"] = list(buckets)
    return found


def join(
    left: Mapping[str, Any], *parts: Mapping[str, Any], spec: PartitionSpec = DAILY, **more: Any
) -> dict[str, Any]:
    return {"left": left, "joinParts": list(parts), "metaData": meta("team.training.set__1", spec), **more}


@dataclass
class Warehouse:
    """A folder of tables."""

    root: Path
    log: list[str] = field(default_factory=list)

    def land(
        self, table: str, columns: Mapping[str, str], rows: Rows, *, name: str = "a.parquet", **partition: str
    ) -> Path:
        """Write one file of a partition; ``columns`` are names and DuckDB types."""
        folder = self.root.joinpath(table, *(f"{column}={escape_label(label)}" for column, label in partition.items()))
        folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE t ({', '.join(f'{n} {t}' for n, t in columns.items())})")
            if rows:
                connection.executemany(
                    f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", [list(r) for r in rows]
                )
            connection.execute(f"COPY t TO '{folder / name}' (FORMAT parquet)")
        return folder / name

    def run(
        self,
        document: Mapping[str, Any],
        start: str,
        end: str,
        *,
        mode: str = "backfill",
        spec: PartitionSpec = DAILY,
        kind: str | None = None,
        **runner: Any,
    ) -> str:
        """Run one mode over ``[start, end)``; gives the table."""
        name = document["metaData"]["name"]
        table = f"out.{name.replace('.', '_')}" + ("__upload" if mode.startswith("upload") else "")
        job = JobRequest(
            kind or ("join" if "left" in document else "group_by"),
            name,
            mode,
            document,
            f"compiled/{name}",
            table,
            spec,
            TimeWindow(parse_instant(start), parse_instant(end)),
        )
        LocalRunner(str(self.root), threads=2, **runner).run(job, self.log.append)
        return table

    def rows(self, table: str, label: str, *columns: str, column: str = "ds") -> list[tuple[Any, ...]]:
        """The rows of a partition that was written, sorted."""
        path = self.root / table / f"{column}={escape_label(label)}" / "part-0.parquet"
        shown = ", ".join(columns) or "*"
        with duckdb.connect() as connection:
            answer = connection.execute(f"SELECT {shown} FROM read_parquet('{path}', hive_partitioning = false)")
            return sorted(answer.fetchall(), key=repr)

    def columns(self, table: str, label: str) -> list[str]:
        path = self.root / table / f"ds={escape_label(label)}" / "part-0.parquet"
        return list(duckdb.read_parquet(str(path), hive_partitioning=False).columns)

    def clear(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
