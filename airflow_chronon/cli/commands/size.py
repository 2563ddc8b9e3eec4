"""``size``: how large an Airflow the confs and jobs of a tree need, and with which settings."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace

from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.output import FINDINGS, GOOD, columns, show
from airflow_chronon.cli.target import open_target
from airflow_chronon.core.calendar.instants import parse_instant
from airflow_chronon.core.confs.plan import good_plans
from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.sizing.load import load_of
from airflow_chronon.core.sizing.scheduler import Simulated
from airflow_chronon.core.sizing.size import Size, size_of

BUSY_DAY = parse_instant("2026-06-01")  #: a Monday and the first of a month: weekly and monthly schedules fire too


def size(options: argparse.Namespace) -> int:
    """Print the load, the settings and what they come to."""
    target = open_target(options)
    load = load_of(good_plans(target.verdicts), day=BUSY_DAY)
    if options.confs is not None:
        load = load.scaled(options.confs)
    if options.waiting is not None:
        a_run = load.waits / load.waiting if load.waiting else 1
        load = replace(load, waiting=options.waiting, waits=round(options.waiting * a_run))
    found = size_of(load, work_seconds=options.work_seconds)
    show(options, text=lambda: _text(found), value=lambda: asdict(found))
    target.report_problems()
    return FINDINGS if target.root.problems else GOOD


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000000")
    return int(text)


SIZE = Command(
    "size",
    "say how large an Airflow the confs need, and which settings it should have",
    (
        ROOT,
        option("--confs", type=_count, metavar="N", help="as if there were so many of the same kinds"),
        option(
            "--waiting",
            type=_count,
            metavar="N",
            help="so many runs wait at once; else one of each conf that reads a table",
        ),
        option(
            "--work-seconds", type=_count, default=300, metavar="S", help="how long a work task takes on average (300)"
        ),
        FORMAT,
    ),
    size,
)


def _text(found: Size) -> str:
    load = found.load
    head = (
        f"{counted(load.dags, 'DAG')}, {counted(load.runs_a_day, 'run')} on a busy day, {load.runs_in_busiest_hour} in its busiest hour; "
        f"{counted(load.waiting, 'run')} waiting at once for {counted(load.waits, 'table')}"
    )
    rows = [(each.name, str(each.value), each.why) for each in found.settings]
    return "\n".join(
        [
            head,
            *columns(rows, indent=2),
            f"scheduler so: {_in_words(found.scheduler)}",
            f"scheduler that looks at all runs that wait: {_in_words(found.without)}",
        ]
    )


def _in_words(found: Simulated) -> str:
    late = f"work begins {found.middle:.1f} s after its wait's end, {found.longest:.1f} s at most"
    return f"{found.cores:.2f} of a core, {late}{', replays starve' if found.replays_starve else ''}"
