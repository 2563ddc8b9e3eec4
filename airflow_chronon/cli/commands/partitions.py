"""``partitions``: what became of each partition of a conf, or interval of a job (H20)."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from airflow_chronon.airflow_api.coverage import known_runs, with_skipped
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import DagRecord
from airflow_chronon.airflow_api.replay import kept_grid
from airflow_chronon.cli.completion import complete_confs
from airflow_chronon.cli.intervals import AskedIntervals
from airflow_chronon.cli.landed import Landings
from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.output import GOOD, columns, show, tell
from airflow_chronon.cli.server import AIRFLOW, find_server
from airflow_chronon.cli.state import BUNDLE, STATE_ROOT, find_state
from airflow_chronon.cli.target import open_target
from airflow_chronon.core.records.history import is_active, seen_plan
from airflow_chronon.core.runs.skip_reasons import Reason, Skip
from airflow_chronon.core.runs.states import Known, KnownRun, PartitionRow, done_labels

CONF = option("conf", metavar="CONF", completer=complete_confs, help="a DAG id, type/name, a name or a file")
LABELS = (
    option("--start-ds", required=True, metavar="L", help="first partition, inclusive: a label, a day or a time"),
    option("--end-ds", metavar="L", help="last partition, inclusive; the first one when left out"),
)


def partitions(options: argparse.Namespace) -> int:
    """Print a row per partition. Airflow is asked when a connection names it; without, only catalogs tell."""
    target = open_target(options)
    plan = target.need_scheduled(options.conf)
    now = int(time.time())
    record = find_state(target.root, options).read_record(plan.dag_id)
    active = record is not None or is_active(plan, record)
    plan = seen_plan(plan, record)
    ends = (options.start_ds, options.end_ds or options.start_ds)
    asked = AskedIntervals(plan, plan.read_range(*ends), now)
    for note in plan.range_notes(*ends):
        tell(note)
    server = find_server(options)
    revisions = record.seen_revisions if record is not None else ()
    seen = None if record is None or plan.has_partitions else record.first_seen
    known = Known(Landings().of_plan(plan), revisions=revisions, is_active=active, first_seen=seen, good=asked.good)
    rows = asked.rows(known if server is None else _with_airflow(known, server, asked))
    show(
        options,
        text=lambda: _text(rows),
        value=lambda: {
            "conf": plan.key,
            "dag_id": plan.dag_id,
            **({} if plan.grid is None else {"grid": str(plan.grid)}),
            "airflow": server is not None,
            "partitions": [row.as_json() for row in rows],
        },
    )
    if server is None and options.format != "json":
        scope = "only catalogs were asked" if plan.has_partitions else "what ran is not known"
        tell(f"{scope}: no connection names an Airflow")
    target.report_problems()
    return GOOD


PARTITIONS = Command(
    "partitions",
    "show which partitions of a conf have landed, or intervals of a job are done, run, failed, or were skipped and why",
    (CONF, ROOT, *LABELS, AIRFLOW, STATE_ROOT, BUNDLE, FORMAT),
    partitions,
)


def _with_airflow(known: Known, server: AirflowServer, asked: AskedIntervals) -> Known:
    """What Airflow adds: runs, which alone tell what of a job is done, and the grid of a table's first write."""
    plan, schedule, runs = asked.plan, asked.plan.need_schedule(), list[KnownRun]()
    dag = server.dag(plan.dag_id)
    if dag is not None:
        runs = asked.runs(server)
        runs += known_runs(server.newest_scheduled(plan.dag_id), schedule, now=asked.now)
        runs = with_skipped(runs, server, plan.dag_id) if plan.has_partitions else runs
    landed = known.landed if plan.has_partitions else done_labels(schedule, runs)
    return replace(known, runs=runs, landed=landed, kept_grid=kept_grid(server, plan), halted=_halted(dag))


def _halted(dag: DagRecord | None) -> Reason | None:
    """Why nothing fires by itself now, so that nothing is called due that no run will come for (H20)."""
    if dag is None or dag.is_stale:
        return Reason(Skip.NO_DAG, "no loader file produces it now")
    return Reason(Skip.PAUSED, "in Airflow, now") if dag.is_paused else None


def _text(rows: Sequence[PartitionRow]) -> str:
    table = [(row.label, row.state.value, row.reason or (row.run_id or "")) for row in rows]
    sums = Counter(row.state.value for row in rows)
    lines = columns([("partition", "state", "why or run"), *table])
    return "\n".join([*lines, ", ".join(f"{count} {state}" for state, count in sums.items())])
