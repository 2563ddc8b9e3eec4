"""``partitions``: what became of each partition of a conf (H20)."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from airflow_chronon.cli.airflow import AIRFLOW, find_server
from airflow_chronon.cli.commands import FORMAT, ROOT, Command, option
from airflow_chronon.cli.landed import Landings
from airflow_chronon.cli.root import GOOD, open_plan, open_root, print_json, report_problems
from airflow_chronon.cli.state import BUNDLE, STATE_ROOT, find_state
from airflow_chronon.cli.text import columns
from airflow_chronon.core.instants import Instant, TimeWindow
from airflow_chronon.core.manual import IllegalPartition, read_end, read_start
from airflow_chronon.core.partition_states import Known, PartitionRow, partition_rows
from airflow_chronon.core.resolve import ConfPlan
from airflow_chronon.errors import Fault
from airflow_chronon.rest.coverage import known_runs, runs_covering
from airflow_chronon.rest.protocol import AirflowServer
from airflow_chronon.rest.records import RunRecord
from airflow_chronon.rest.replay import kept_grid

CONF = option("conf", metavar="CONF", help="a DAG id, type/name, a name or a file")
LABELS = (
    option("--start-ds", required=True, metavar="L", help="first partition, inclusive: a label, a day or a time"),
    option("--end-ds", metavar="L", help="last partition, inclusive; the first one when left out"),
)


def partitions(options: argparse.Namespace) -> int:
    """Print a row per partition. Airflow is asked when a connection names it; without, only catalogs tell."""
    root = open_root(options.root)
    plan, _ = open_plan(root, options.conf)
    now = int(time.time())
    window = _asked(plan, options.start_ds, options.end_ds or options.start_ds)
    server = find_server(options.airflow)
    entry = find_state(root, options)[1].journal().get(plan.dag_id)
    known = Known(landed=Landings().of_conf(plan), eras=entry.eras if entry is not None else ())
    if server is not None:
        known = with_airflow(known, server, plan, window, now=now)
    rows = partition_rows(plan.runs, plan.spec.grid.starts(window.start, window.end), known, now=now)
    if options.format == "json":
        print_json(
            {
                "conf": str(plan.conf.key),
                "dag_id": plan.dag_id,
                "grid": str(plan.spec.grid),
                "airflow": server is not None,
                "partitions": [row.as_json() for row in rows],
            }
        )
    else:
        print(_text(rows))
        if server is None:
            print("only catalogs were asked: no connection names an Airflow", file=sys.stderr)
    report_problems(root)
    return GOOD


PARTITIONS = Command(
    "partitions",
    "show which partitions of a conf have landed, run, failed, or were skipped and why",
    (CONF, ROOT, *LABELS, AIRFLOW, STATE_ROOT, BUNDLE, FORMAT),
    partitions,
)


def with_airflow(known: Known, server: AirflowServer, plan: ConfPlan, window: TimeWindow, *, now: Instant) -> Known:
    """What Airflow adds: runs, and the grid of the table's first write."""
    records: tuple[RunRecord, ...] = ()
    newest: tuple[RunRecord, ...] = ()
    if server.dag(plan.dag_id) is not None:
        records, newest = (
            runs_covering(server, plan.dag_id, window, grid=plan.spec.grid),
            server.newest_scheduled(plan.dag_id),
        )
    runs = known_runs((*records, *newest), plan.runs, now=now)
    return Known(landed=known.landed, runs=runs, kept_grid=kept_grid(server, plan), eras=known.eras)


def _asked(plan: ConfPlan, start: str, end: str) -> TimeWindow:
    first, last = read_start(start, plan.spec), read_end(end, plan.spec)
    if last < first:
        raise IllegalPartition(Fault("C27", "end_ds", f"{end!r} is before start_ds {start!r}", "swap them"))
    return TimeWindow(first, last + plan.spec.grid.interval)


def _text(rows: Sequence[PartitionRow]) -> str:
    table = [(row.label, row.state.value, row.reason or (row.run_id or "")) for row in rows]
    sums = Counter(row.state.value for row in rows)
    lines = columns([("partition", "state", "why or run"), *table])
    return "\n".join([*lines, ", ".join(f"{count} {state}" for state, count in sums.items())])
