"""``why``: what a partition still waits for, followed upstream to the root."""

from __future__ import annotations

import argparse
import time

from airflow_chronon.cli.completion import complete_confs
from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.output import GOOD, show, tell
from airflow_chronon.cli.partition_facts import PartitionFacts
from airflow_chronon.cli.server import AIRFLOW, find_server
from airflow_chronon.cli.state import BUNDLE, STATE_ROOT, find_state
from airflow_chronon.cli.target import open_target
from airflow_chronon.core.describe.causes import format_cause, format_roots
from airflow_chronon.core.runs.why import explain_partition

CONF = option("conf", metavar="CONF", completer=complete_confs, help="a DAG id, type/name, a name or a file")
LABEL = option("label", metavar="LABEL", help="the partition: a label or a time; of a day with several, the first one")


def why(options: argparse.Namespace) -> int:
    """Print the tree of causes. Airflow is asked when a connection names it; without, only catalogs tell."""
    target = open_target(options)
    plan = target.need_scheduled(options.conf)
    server = find_server(options)
    facts = PartitionFacts(target, find_state(target.root, options), server, int(time.time()))
    plan = facts.seen(plan)
    window = plan.read_range(options.label, options.label)
    start = next(iter(plan.need_schedule().starts(window.start, window.end)))
    cause = explain_partition(plan, start, facts)
    show(
        options,
        text=lambda: "\n".join([format_roots(cause), "", *format_cause(cause)]),
        value=lambda: {"airflow": server is not None, **cause.as_json()},
    )
    if server is None and options.format != "json":
        tell("only catalogs were asked, so what ran and what fires is not known: no connection names an Airflow")
    target.report_problems()
    return GOOD


WHY = Command(
    "why",
    "show what a partition still waits for, followed through what writes it to the root, and when it should land",
    (CONF, LABEL, ROOT, AIRFLOW, STATE_ROOT, BUNDLE, FORMAT),
    why,
)
