"""Runs the sample shop's staging queries as the rules say, with DuckDB and nothing of the product's own engine."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
import yaml
from croniter import croniter_range
from sqlglot import exp

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant, parse_instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from tests.support.checkout import ROOT

COMPILED = ROOT / "dags" / "chronon" / "compiled"
SETTINGS = ROOT / "dags" / "chronon" / "chronon.yaml"

#: The confs that the demo waits for: every one but that which is backfilled on Mondays only.
DEMO_CONFS = sorted(
    f"{path.parent.name}.{path.name}"
    for folder in ("staging_queries", "group_bys", "joins")
    for path in (COMPILED / folder).glob("*/*")
    if path.name != "customers.engagement__1"
)

Row = dict[str, Any]

_UNITS = {0: HOUR, 1: DAY, 2: MINUTE}


def _seconds(window: Mapping[str, int] | None, default: int) -> int:
    return window["length"] * _UNITS[window["timeUnit"]] if window else default


def _spec(info: Mapping[str, Any]) -> PartitionSpec:
    grid = PartitionGrid(_seconds(info.get("partitionInterval"), DAY), _seconds(info.get("partitionOffset"), 0))
    pattern = info.get("partitionFormat", default_pattern(grid))
    return PartitionSpec(grid, partition_format(pattern), info.get("partitionColumn", "ds"))


@dataclass(frozen=True)
class StagingQuery:
    """What the tests need of one compiled staging query."""

    name: str
    document: Mapping[str, Any]

    @property
    def table(self) -> str:
        return f"{self.document['metaData']['outputNamespace']}.{self.name.replace('.', '_')}"

    @cached_property
    def spec(self) -> PartitionSpec:
        return _spec(self.document["metaData"]["executionInfo"].get("outputTableInfo", {}))

    @property
    def schedule(self) -> str:
        schedule = self.document["metaData"]["executionInfo"]["offlineSchedule"]
        assert isinstance(schedule, str)
        return schedule

    @property
    def dependencies(self) -> Sequence[Mapping[str, Any]]:
        dependencies = self.document["tableDependencies"]
        assert isinstance(dependencies, list)
        return dependencies

    def catch_up(self, *, now: Instant, runs: int) -> list[tuple[Instant, Instant]]:
        """The windows of the newest ``runs`` fires at or before ``now`` (in June 2026), oldest first (C8, C9)."""
        fires = _fires(self.schedule)
        newest = bisect_right(fires, now)
        ends = [self.spec.grid.floor(fire) for fire in fires[newest - runs - 1 : newest]]
        return list(pairwise(ends))


@cache
def _fires(schedule: str) -> list[Instant]:
    first, last = parse_instant("2026-05-01T00:00:00Z"), parse_instant("2026-07-01T00:00:00Z")
    return [int(fire) for fire in croniter_range(first, last, schedule, ret_type=float)]


def staging_queries() -> list[StagingQuery]:
    """Every compiled staging query, each after those whose tables it reads."""
    documents = [json.loads(path.read_text()) for path in sorted((COMPILED / "staging_queries").glob("*/*"))]
    waiting = [StagingQuery(document["metaData"]["name"], document) for document in documents]
    ordered: list[StagingQuery] = []
    while waiting:
        pending = {query.table for query in waiting}
        ready = [q for q in waiting if not pending & {d["tableInfo"]["table"] for d in q.dependencies}]
        assert ready, f"a cycle among {sorted(pending)}"
        ordered += ready
        waiting = [query for query in waiting if query not in ready]
    return ordered


@cache
def _settings() -> Mapping[str, Any]:
    settings = yaml.safe_load(SETTINGS.read_text())
    assert isinstance(settings, dict)
    return settings


def catch_up_runs(query: StagingQuery) -> int:
    """``max_catchup_runs`` of a staging query in the sample settings: the first override that matches wins."""
    settings = _settings()
    for override in settings["overrides"]:
        if fnmatchcase(f"staging_query/{query.name}", override["match"]):
            return int(override["max_catchup_runs"])
    return int(settings["max_catchup_runs"])


def _prepare(
    query: StagingQuery, *, warehouse: Path, start: Instant, end: Instant
) -> tuple[duckdb.DuckDBPyConnection, str]:
    labels = query.spec.labels(start, end)
    text = (
        query.document["query"]
        .replace("{{ start_date }}", f"'{labels[0]}'")
        .replace("{{ end_date }}", f"'{labels[-1]}'")
    )
    assert "{{" not in text
    tree = sqlglot.parse_one(text, read="spark")
    connection = duckdb.connect()
    for schema, name in sorted({(table.db, table.name) for table in tree.find_all(exp.Table) if table.db}):
        files = warehouse / f"{schema}.{name}" / "**" / "*.parquet"
        scan = f"read_parquet('{files}', hive_partitioning = true, hive_types_autocast = false)"
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        connection.execute(f'CREATE VIEW "{schema}"."{name}" AS SELECT * FROM {scan}')
    return connection, tree.sql(dialect="duckdb")


def run(query: StagingQuery, *, warehouse: Path, start: Instant, end: Instant) -> list[Row]:
    """The rows that a run over ``[start, end)`` gives: rendered, translated, over Parquet folders as views."""
    connection, sql = _prepare(query, warehouse=warehouse, start=start, end=end)
    with connection:
        answer = connection.execute(sql)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


def land(query: StagingQuery, *, warehouse: Path, start: Instant, end: Instant) -> None:
    """Run a query and write its partitions where the next query looks for them."""
    connection, sql = _prepare(query, warehouse=warehouse, start=start, end=end)
    with connection:
        connection.execute(
            f"COPY ({sql}) TO '{warehouse / query.table}' (FORMAT parquet, PARTITION_BY ({query.spec.column}))"
        )
