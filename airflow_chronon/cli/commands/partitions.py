"""``partitions``: what became of each partition of a conf, or interval of a job (H20)."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from airflow_chronon.airflow_api.coverage import known_runs
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.replay import kept_grid
from airflow_chronon.cli.intervals import asked_range, check_size, is_active, runs_in, schedule_of, seen_plan
from airflow_chronon.cli.landed import Landings
from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.root import GOOD, open_plan, open_root, print_json, report_problems
from airflow_chronon.cli.server import AIRFLOW, find_server
from airflow_chronon.cli.state import BUNDLE, STATE_ROOT, find_state
from airflow_chronon.cli.text import columns
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.jobs.verdicts import GoodPlan
from airflow_chronon.core.runs.states import Known, PartitionRow, State, done_labels, partition_rows

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
    record = find_state(root, options)[1].read_record(plan.dag_id)
    active_since = is_active(plan, record)
    plan = seen_plan(plan, record)
    window = asked_range(plan, options.start_ds, options.end_ds)
    check_size(plan, window)
    server = find_server(options.airflow)
    known = Known(
        revisions=record.seen_revisions if record is not None else (), is_active=active_since, good=State.DONE
    )
    if isinstance(plan, ConfPlan):
        known = replace(known, landed=Landings().of_conf(plan), good=State.LANDED)
    if server is not None:
        known = with_airflow(known, server, plan, window, now=now)
    schedule = schedule_of(plan)
    rows = partition_rows(schedule, schedule.starts(window.start, window.end), known, now=now)
    if options.format == "json":
        print_json(
            {
                "conf": plan.key,
                "dag_id": plan.dag_id,
                **({"grid": str(plan.spec.grid)} if isinstance(plan, ConfPlan) else {}),
                "airflow": server is not None,
                "partitions": [row.as_json() for row in rows],
            }
        )
    else:
        print(_text(rows))
        if server is None:
            asked = "only catalogs were asked" if isinstance(plan, ConfPlan) else "what ran is not known"
            print(f"{asked}: no connection names an Airflow", file=sys.stderr)
    report_problems(root)
    return GOOD


PARTITIONS = Command(
    "partitions",
    "show which partitions of a conf have landed, or intervals of a job are done, run, failed, or were skipped and why",
    (CONF, ROOT, *LABELS, AIRFLOW, STATE_ROOT, BUNDLE, FORMAT),
    partitions,
)


def with_airflow(known: Known, server: AirflowServer, plan: GoodPlan, window: TimeWindow, *, now: Instant) -> Known:
    """What Airflow adds: runs, which alone tell what of a job is done, and the grid of a table's first write."""
    runs, schedule = [], schedule_of(plan)
    if server.dag(plan.dag_id) is not None:
        runs = runs_in(server, plan, window, now=now)
        runs += known_runs(server.newest_scheduled(plan.dag_id), schedule, now=now)
    if isinstance(plan, ConfPlan):
        return replace(known, runs=runs, kept_grid=kept_grid(server, plan))
    return replace(known, runs=runs, landed=done_labels(schedule, runs))


def _text(rows: Sequence[PartitionRow]) -> str:
    table = [(row.label, row.state.value, row.reason or (row.run_id or "")) for row in rows]
    sums = Counter(row.state.value for row in rows)
    lines = columns([("partition", "state", "why or run"), *table])
    return "\n".join([*lines, ", ".join(f"{count} {state}" for state, count in sums.items())])
