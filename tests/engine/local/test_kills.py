"""`kill -9` at a random moment of a run leaves the old partition or the new one, never half (C28)."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.support.warehouse import Warehouse, aggregation, events, group_by, join

KEYS = 20_000
CHILD = """
import json, sys
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.calendar.instants import TimeWindow, parse_instant
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import JobRequest

root, kind, document = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
job = JobRequest(kind, document["metaData"]["name"], "backfill", document, "p", "out.killed",
    PartitionSpec(PartitionGrid(86400), partition_format("yyyy-MM-dd")),
    TimeWindow(parse_instant("2026-06-01"), parse_instant("2026-06-03")))
LocalRunner(root, threads=1).run(job, print)
"""


def document(kind: str, version: int) -> dict[str, object]:
    """A GroupBy, or a Join with a derived table, that writes the version into every row."""
    source = events("data.events", selects={"user": "user", "version": f"IF(user >= 0, {version}, 0)"})
    features = group_by(source, aggregations=[aggregation("version", 1)], accuracy=0)
    if kind == "group_by":
        return features
    left = events(
        "data.events",
        selects={"user": "user", "version": f"IF(user >= 0, {version}, 0)", "ts": "ts_ms + 1"},
        time="ts_ms + 1",
    )
    derivations = [{"name": "*", "expression": "*"}, {"name": "again", "expression": "user_version_max"}]
    return join(left, {"groupBy": features}, derivations=derivations)


def start(root: Path, kind: str, version: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root), kind, json.dumps(document(kind, version))],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def seen(root: Path, table: str, label: str, column: str) -> tuple[int, int, int]:
    """Oldest and newest version and the number of rows, over every file that a reader would see."""
    folder = root / table / f"ds={label}"
    files = [str(path) for path in folder.glob("*") if not path.name.startswith("_")]
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT min({column}), max({column}), count(*) FROM read_parquet(?)", [files]
        ).fetchone()
    assert found is not None
    return found


def kill_often(store: Warehouse, kind: str, times: int) -> None:
    for day in (1, 2):
        folder = store.root / "data.events" / f"ds=2026-06-0{day}"
        folder.mkdir(parents=True)
        stamp = f"(epoch_ms(TIMESTAMP '2026-06-0{day}') + 1000)::BIGINT"
        duckdb.sql(f"SELECT range AS user, {stamp} AS ts_ms FROM range({KEYS})").write_parquet(
            str(folder / "a.parquet")
        )
    column, tables = (
        ("version_max", ["out.killed"]) if kind == "group_by" else ("version", ["out.killed", "out.killed__derived"])
    )
    began = time.monotonic()
    whole = start(store.root, kind, 1)
    assert whole.communicate() and whole.returncode == 0
    lasts = time.monotonic() - began
    chance, killed, landed = random.Random(times), 0, 1
    while killed < times:
        version = landed + 1
        began = time.monotonic()
        process = start(store.root, kind, version)
        try:
            process.wait(timeout=chance.uniform(0.3, 1) * lasts)
            lasts = time.monotonic() - began  # it ended before its kill: the machine has become faster
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        for table in tables:
            for label in ("2026-06-01", "2026-06-02"):
                oldest, newest, rows = seen(store.root, table, label, column)
                assert oldest == newest and oldest <= version, (table, label, oldest, newest)
                assert rows in (KEYS, 2 * KEYS), rows
                landed = max(landed, newest)
    last = start(store.root, kind, landed + 1)
    assert last.communicate() and last.returncode == 0
    for table in tables:
        assert [seen(store.root, table, f"2026-06-0{day}", column)[:2] for day in (1, 2)] == [
            (landed + 1, landed + 1)
        ] * 2


def test_a_group_by_killed_at_random_moments_is_never_half(store: Warehouse) -> None:
    kill_often(store, "group_by", times=5)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["group_by", "join"])
def test_fifty_kills_leave_no_partial_partition(store: Warehouse, kind: str) -> None:
    kill_often(store, kind, times=50)
