"""What the embedded engine costs beside plain SQL: one snapshot of a GroupBy with four windows and three operations.

    python bench/engine.py [--events 10000000] [--keys 1000000] [--threads 2] [--operations sum,count,max]
                           [--rounds 2] [--pyspark PYTHON]

Every contender runs in a process of its own over the same Parquet folders and writes a Parquet file of the same rows;
the time is the whole work, reading and writing included, without the start of the process. Processor time is what to
compare on a machine that does something else besides. PYTHON is an interpreter that has pyspark. The results are
compared before anything is said.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from airflow_chronon.core.calendar.instants import DAY, TimeWindow, parse_instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import JobRequest

DAYS, WINDOWS = 60, (1, 7, 30, 60)
OPERATIONS = {"min": 0, "max": 1, "last": 3, "count": 6, "sum": 7, "average": 8}
START = parse_instant("2026-01-01")
END = START + DAYS * DAY
SPEC = PartitionSpec(PartitionGrid(DAY), partition_format("yyyy-MM-dd"))
TABLE = "out.bench_purchases__1"


def land(root: Path, *, events: int, keys: int) -> None:
    """Events spread evenly over the days, keys at random, seeded."""
    stamp = f"make_timestamp(({START} + second) * 1000000)"
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT (random() * {keys})::BIGINT AS user_id, (random() * 10000)::BIGINT AS amount, "
            f"{stamp} AS happened_at, strftime({stamp}, '%Y-%m-%d') AS ds "
            f"FROM (SELECT (i * {DAYS * DAY} // {events})::BIGINT AS second FROM range({events}) AS t(i))) "
            f"TO '{root / 'data.events'}' (FORMAT parquet, PARTITION_BY (ds))"
        )


def document(operations: list[str]) -> dict[str, Any]:
    windows = [{"length": days, "timeUnit": 1} for days in WINDOWS]
    query = {"selects": {"user_id": "user_id", "amount": "amount"}, "timeColumn": "UNIX_MILLIS(happened_at)"}
    return {
        "accuracy": 1,
        "keyColumns": ["user_id"],
        "aggregations": [
            {"inputColumn": "amount", "operation": OPERATIONS[name], "argMap": {}, "windows": windows}
            for name in operations
        ],
        "sources": [{"events": {"table": "data.events", "query": query}}],
        "metaData": {"name": "bench.purchases__1", "outputNamespace": "out", "executionInfo": {}},
    }


def plain_sql(operations: list[str], *, table: str, is_spark: bool) -> str:
    """What one would write by hand for this result."""
    millis = "unix_millis(happened_at)" if is_spark else "epoch_ms(happened_at)"
    calls = {"average": "avg({})", "last": "max_by({}, ts)" if is_spark else "arg_max({}, ts)"}
    columns = []
    for name in operations:
        for days in WINDOWS:
            value = f"CASE WHEN ts >= {(END - days * DAY) * 1000} THEN amount END"
            columns.append(f"{calls.get(name, name + '({})').format(value)} AS amount_{name}_{days}d")
    first, last = (SPEC.label(at) for at in (START, END - DAY))
    return (
        f"SELECT user_id, {', '.join(columns)} FROM (SELECT user_id, amount, {millis} AS ts FROM {table} "
        f"WHERE ds BETWEEN '{first}' AND '{last}') AS e "
        f"WHERE ts < {END * 1000} AND ts >= {START * 1000} GROUP BY user_id"
    )


def run_engine(root: Path, operations: list[str], threads: int) -> Path:
    window = TimeWindow(END - DAY, END)
    job = JobRequest("group_by", "bench.purchases__1", "backfill", document(operations), "bench", TABLE, SPEC, window)
    LocalRunner(str(root), threads=threads).run(job, lambda line: None)
    return root / TABLE / f"ds={SPEC.label(END - DAY)}" / "part-0.parquet"


def run_plain(root: Path, operations: list[str], threads: int) -> Path:
    written = root / "plain.parquet"
    files = f"'{root}/data.events/*/*.parquet', hive_partitioning = true, hive_types_autocast = false"
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = plain_sql(operations, table=f"read_parquet({files})", is_spark=False)
        connection.execute(f"COPY ({query}) TO '{written}' (FORMAT parquet)")
    return written


_PYSPARK = """
import json, os, sys, time
root, query, threads = sys.argv[1:]
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master(f"local[{threads}]").config("spark.sql.session.timeZone", "UTC")
    .config("spark.driver.memory", "6g").config("spark.sql.shuffle.partitions", threads)
    .config("spark.ui.enabled", "false").config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    .config("spark.sql.parquet.inferTimestampNTZ.enabled", "false").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
def cpu():
    with open(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
began, busy = time.perf_counter(), cpu()
spark.read.parquet(root + "/data.events").createOrReplaceTempView("events")
spark.sql(query).write.mode("overwrite").parquet(root + "/spark.parquet")
seconds, busy = time.perf_counter() - began, cpu() - busy
peak = 0
for line in open(f"/proc/{spark.sparkContext._gateway.proc.pid}/status"):
    if line.startswith("VmHWM"):
        peak = int(line.split()[1]) // 1024
spark.stop()
print(json.dumps({"seconds": seconds, "cpu": busy, "megabytes": peak, "file": root + "/spark.parquet/*.parquet"}))
"""


def measured(root: Path, contender: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one contender in a process of its own; seconds, peak memory and where the rows are."""
    operations, threads = options.operations, str(options.threads)
    if contender == "pyspark":
        query = plain_sql(operations.split(","), table="events", is_spark=True)
        command = [options.pyspark, "-c", _PYSPARK, str(root), query, threads]
    else:
        command = [sys.executable, __file__, "--child", contender, "--root", str(root)]
        command += ["--threads", threads, "--operations", operations]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{contender} failed: {done.stderr.strip()[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def child(options: argparse.Namespace) -> None:
    run = {"engine": run_engine, "plain": run_plain}[options.child]
    began, busy = time.perf_counter(), time.process_time()
    written = run(options.root, options.operations.split(","), options.threads)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    answer = {"seconds": seconds, "cpu": time.process_time() - busy, "megabytes": used.ru_maxrss // 1024}
    print(json.dumps({**answer, "file": str(written)}))


def same_rows(one: str, other: str, operations: list[str]) -> bool:
    """Whether both files hold the same features; the engine's count over nothing is null, SQL's is 0."""
    names = [(name, f"amount_{name}_{days}d") for name in operations for days in WINDOWS]
    shown = ["user_id", *(f"coalesce({column}, 0)" if name == "count" else column for name, column in names)]
    queries = [
        f"SELECT {', '.join(shown)} FROM read_parquet('{path}', hive_partitioning = false)" for path in (one, other)
    ]
    with duckdb.connect() as connection:
        for first, second in (queries, queries[::-1]):
            if connection.execute(f"SELECT count(*) FROM ({first} EXCEPT ALL {second})").fetchone() != (0,):
                return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--operations", default="sum,count,max", help=f"of {', '.join(OPERATIONS)}")
    parser.add_argument(
        "--rounds", type=int, default=2, help="of so many runs the one with the least processor time counts"
    )
    parser.add_argument("--pyspark", metavar="PYTHON", help="an interpreter that has pyspark")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    with tempfile.TemporaryDirectory(prefix="bench-engine-") as folder:
        compare(Path(folder), options)


def compare(root: Path, options: argparse.Namespace) -> None:
    operations = options.operations.split(",")
    land(root, events=options.events, keys=options.keys)
    names = ["plain", "engine"] + (["pyspark"] if options.pyspark else [])
    found: dict[str, dict[str, Any]] = {}
    for _ in range(options.rounds):
        for name in names:  # in turns, so that whatever else the machine does falls on all of them
            one = measured(root, name, options)
            if name not in found or one["cpu"] < found[name]["cpu"]:
                found[name] = one
    for name in names[1:]:
        if not same_rows(found["plain"]["file"], found[name]["file"], operations):
            sys.exit(f"{name} and plain differ")
    print(
        f"{options.events} events, {options.keys} keys, {len(WINDOWS)} windows, "
        f"{', '.join(operations)}, {options.threads} threads"
    )
    for name in names:
        seconds, cpu, megabytes = (found[name][key] for key in ("seconds", "cpu", "megabytes"))
        ratio, rate = cpu / found["plain"]["cpu"], options.events / seconds
        print(
            f"{name:8} {seconds:7.2f} s  {rate:12,.0f} events/s  {megabytes:6} MB peak  "
            f"{cpu:7.2f} s of processor time, {ratio:.2f} of plain"
        )


if __name__ == "__main__":
    main()
