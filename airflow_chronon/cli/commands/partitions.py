"""``partitions``: what became of each partition of a conf, or interval of a job (H20)."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence

from airflow_chronon.cli.completion import complete_confs
from airflow_chronon.cli.intervals import AskedIntervals
from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.output import GOOD, columns, show, tell
from airflow_chronon.cli.partition_facts import PartitionFacts
from airflow_chronon.cli.server import AIRFLOW, find_server
from airflow_chronon.cli.state import BUNDLE, STATE_ROOT, find_state
from airflow_chronon.cli.target import open_target
from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.runs.states import PartitionRow, State

CONF = option("conf", metavar="CONF", completer=complete_confs, help="a DAG id, type/name, a name or a file")
LABELS = (
    option("--start-ds", required=True, metavar="L", help="first partition, inclusive: a label, a day or a time"),
    option("--end-ds", metavar="L", help="last partition, inclusive; the first one when left out"),
)

STATE = option(
    "--state",
    action="append",
    choices=[state.value for state in State],
    metavar="S",
    help=f"show only those in this state, may be repeated: {', '.join(state.value for state in State)}",
)


def partitions(options: argparse.Namespace) -> int:
    """Print a row per partition. Airflow is asked when a connection names it; without, only catalogs tell."""
    target = open_target(options)
    plan = target.need_scheduled(options.conf)
    now = int(time.time())
    server = find_server(options)
    facts = PartitionFacts(target, find_state(target.root, options), server, now)
    plan = facts.seen(plan)
    ends = (options.start_ds, options.end_ds or options.start_ds)
    asked = AskedIntervals(plan, plan.read_range(*ends), now)
    for note in plan.range_notes(*ends):
        tell(note)
    rows = asked.rows(facts.known(asked))
    if options.state:
        rows = [row for row in rows if row.state.value in options.state]
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
    (CONF, ROOT, *LABELS, STATE, AIRFLOW, STATE_ROOT, BUNDLE, FORMAT),
    partitions,
)


def _text(rows: Sequence[PartitionRow]) -> str:
    table = [(row.label, row.state.value, _why_or_run(row)) for row in rows]
    sums = Counter(row.state.value for row in rows)
    late = sum(row.late_since is not None for row in rows)
    lines = columns([("partition", "state", "why or run"), *table])
    total = ", ".join(f"{count} {state}" for state, count in sums.items())
    return "\n".join([*lines, f"{total}; {late} of them late" if late else total])


def _why_or_run(row: PartitionRow) -> str:
    late = "" if row.late_since is None else f"late since {iso(row.late_since)}"
    return "; ".join(filter(None, (late, row.reason or row.run_id)))
