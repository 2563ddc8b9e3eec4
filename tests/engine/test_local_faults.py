"""A crash, a full disk or a second writer leaves the old partition or the new one, never half (C28)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from airflow_chronon.engine.local import LocalRunner

ROWS = 20_000
QUERY = (
    "SELECT range AS id, {version} AS version, md5(range::VARCHAR) AS filler, {{{{ start_date }}}} AS ds "
    "FROM range({rows})"
)

#: Runs one replay in a process of its own, with something broken in it.
CHILD = """
import os, resource, signal, sys
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.calendar.instants import TimeWindow, parse_instant
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from airflow_chronon.engine.local import LocalRunner, publish
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import JobFailed

root, query, fault = sys.argv[1:]

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

if fault == "before flush":
    publish.flush = die
elif fault == "before rename":
    publish.os.replace = die
elif fault == "before success":
    publish.Path.touch = die
elif fault == "after publish":
    whole = publish.TableWriter.publish
    publish.TableWriter.publish = lambda *args: (whole(*args), die())
elif fault == "disk full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

job = JobRequest("staging_query", "n", "backfill", {"query": query}, "p", "out.orders",
    PartitionSpec(PartitionGrid(86400), partition_format("yyyy-MM-dd")),
    TimeWindow(parse_instant("2026-06-01"), parse_instant("2026-06-02")))
try:
    LocalRunner(root, threads=1).run(job, print)
except JobFailed as error:
    sys.exit(str(error))
"""


@pytest.fixture
def replay(warehouse: Path):
    """Start a replay of version ``version`` with a fault; the caller ends it."""

    def start(version: int, fault: str = "none", rows: int = ROWS) -> subprocess.Popen[str]:
        query = QUERY.format(version=version, rows=rows)
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, str(warehouse), query, fault],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


def partition(warehouse: Path) -> tuple[int, int, int] | None:
    """Oldest and newest version and the number of rows, over every file a reader would see; None before it lands."""
    folder = warehouse / "out.orders" / "ds=2026-06-01"
    files = [str(path) for path in folder.glob("*") if not path.name.startswith("_")]
    if not files:
        return None
    found = duckdb.connect().execute(
        "SELECT min(version), max(version), count(DISTINCT id) FROM read_parquet(?)", [files]
    )
    return found.fetchone()


@pytest.mark.parametrize("fault", ["before flush", "before rename", "before success", "after publish"])
def test_a_kill_at_any_step_leaves_the_old_partition_or_the_new_one(replay, warehouse, fault):
    versions = [None]
    for version in range(2):
        process = replay(version, fault)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        versions.append((version, version, ROWS))
        assert partition(warehouse) in versions
    process = replay(9)
    assert process.communicate() and process.returncode == 0
    assert partition(warehouse) == (9, 9, ROWS)


def test_a_kill_while_the_file_is_written_leaves_the_old_partition(replay, warehouse):
    first = replay(0)
    assert first.communicate() and first.returncode == 0
    for version in range(1, 3):
        process = replay(version, rows=2_000_000)
        while process.poll() is None and not any(
            path.stat().st_size for path in (warehouse / "out.orders").glob("_chronon-*/part-*.parquet")
        ):
            os.sched_yield()
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert partition(warehouse) == (0, 0, ROWS)
        for path in (warehouse / "out.orders").glob("_chronon-*"):
            for file in path.glob("part-*"):
                file.unlink()


def test_a_full_disk_is_one_sentence_and_leaves_the_old_partition(replay, warehouse):
    first = replay(0)
    assert first.communicate() and first.returncode == 0
    process = replay(1, "disk full")
    said = process.communicate()[0]
    assert process.returncode == 1 and "File too large" in said.splitlines()[-1], said
    assert "Traceback" not in said
    assert partition(warehouse) == (0, 0, ROWS)
    assert sorted(os.listdir(warehouse / "out.orders")) == ["ds=2026-06-01"]


def test_two_writers_of_one_partition_never_mix(warehouse, make_job):
    done = threading.Event()
    failures: list[BaseException] = []

    def write(version: int) -> None:
        try:
            for _ in range(4):
                query = QUERY.format(version=version, rows=ROWS)
                LocalRunner(str(warehouse), threads=1).run(make_job(query), lambda line: None)
        except BaseException as error:  # shown by the assertion below
            failures.append(error)

    def read() -> None:
        while not done.is_set():
            seen = partition(warehouse)
            if seen not in (None, (1, 1, ROWS), (2, 2, ROWS)):
                failures.append(AssertionError(seen))

    writers = [threading.Thread(target=write, args=(version,)) for version in (1, 2)]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert failures == []
    assert partition(warehouse) in ((1, 1, ROWS), (2, 2, ROWS))
    assert sorted(os.listdir(warehouse / "out.orders")) == ["ds=2026-06-01"]
