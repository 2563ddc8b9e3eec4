"""``airflow-chronon``: the entry point and the commands that look at confs only.

Results go to stdout, problems to stderr; exit codes are 0 good, 1 findings, 2 usage.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from airflow_chronon import __version__
from airflow_chronon.cli.commands.backfill import BACKFILL
from airflow_chronon.cli.commands.import_schedule import IMPORT_SCHEDULE
from airflow_chronon.cli.commands.partitions import PARTITIONS
from airflow_chronon.cli.commands.plan import BASE, PLAN, RECONCILE, show_differences
from airflow_chronon.cli.commands.run import RUN
from airflow_chronon.cli.options import BETWEEN, CONFS, FORMAT, NEW, RECOVERY, ROOT, Command
from airflow_chronon.cli.root import FINDINGS, GOOD, USAGE, open_root, print_json, report_problems
from airflow_chronon.cli.text import Explained, check_text, explain_text
from airflow_chronon.conf_root.selection import select
from airflow_chronon.core.calendar.instants import parse_instant
from airflow_chronon.core.confs.resolve import ConfPlan, OtherEnvironment, RejectedConf
from airflow_chronon.core.describe.json import verdict_json
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.jobs.verdicts import Verdict
from airflow_chronon.core.partitions.limits import limited
from airflow_chronon.core.schedules.base import AnySchedule
from airflow_chronon.errors import ChrononError

FAR = parse_instant("2199-12-31")  #: where looking for the next run ends


def check(options: argparse.Namespace) -> int:
    """``check``: every conf is ok, or each broken rule with its remedy."""
    root = open_root(options.root)
    verdicts = root.judge()
    if options.format == "json":
        print_json({key: verdict_json(verdict) for key, verdict in verdicts.items()})
    else:
        print(check_text(root, verdicts))
    report_problems(root)
    for odd in root.idle_overrides():
        print(f"warning: {odd}", file=sys.stderr)
    bad = any(isinstance(verdict, RejectedConf) for verdict in verdicts.values())
    if options.base is not None:
        with contextlib.redirect_stdout(sys.stderr):  # stdout holds the verdicts
            bad |= show_differences(root, options.base, as_json=False) == FINDINGS
    return FINDINGS if bad or root.problems else GOOD


def explain(options: argparse.Namespace) -> int:
    """``explain``: the runs whose first fire lies in a window, or those that an outage leaves to create."""
    given = {name for name in ("start", "end", "after", "now") if getattr(options, name) is not None}
    between = given == {"start", "end"}
    if not between and given != {"after", "now"}:
        print("explain: give --from and --to, or --after and --now", file=sys.stderr)
        return USAGE
    if between and options.end <= options.start:
        print("explain: --to must be after --from", file=sys.stderr)
        return USAGE
    root = open_root(options.root)
    judged = root.judge()
    verdicts = select(judged, options.conf if judged or not root.problems else (), root.path)
    shown = {key: _explained(key, verdict, options) for key, verdict in verdicts.items()}
    if options.format == "json":
        print_json({key: verdict_json(each.verdict, each.runs) for key, each in shown.items()})
    else:
        print(explain_text(shown))
    report_problems(root)
    asked_for_bad = options.conf and any(isinstance(verdict, RejectedConf) for verdict in verdicts.values())
    return FINDINGS if root.problems or asked_for_bad else GOOD


COMMANDS = (
    Command(
        "check",
        "say of every conf whether it is good, else each broken rule with its remedy",
        (ROOT, BASE, FORMAT),
        check,
    ),
    Command(
        "explain",
        "show the runs of confs: fires, partitions, waits",
        (CONFS, ROOT, *BETWEEN, *RECOVERY, FORMAT),
        explain,
    ),
    PARTITIONS,
    BACKFILL,
    PLAN,
    RECONCILE,
    RUN,
    IMPORT_SCHEDULE,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return run_command(parser().parse_args(argv))


def run_command(options: argparse.Namespace) -> int:
    """Run the command of parsed options; a user's mistake is one sentence on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter must not end the command
    try:
        command: Command = options.command
        return command.run(options)
    except ChrononError as error:
        print(error, file=sys.stderr)
        return USAGE
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD


def run() -> NoReturn:
    """The console script."""
    sys.exit(main())


def parser() -> argparse.ArgumentParser:
    """The parser of every command."""
    top = argparse.ArgumentParser(prog="airflow-chronon", description="Chronon confs on Airflow.")
    top.add_argument("--version", action="version", version=f"airflow-chronon {__version__}")
    below = top.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        one = below.add_parser(command.name, help=command.help, description=command.help)
        for each in command.options:
            one.add_argument(*each.flags, **each.keywords)
        one.set_defaults(command=command)
    return top


def _explained(key: str, verdict: Verdict, options: argparse.Namespace) -> Explained:
    """The runs that were asked for, and the first one after them."""
    if isinstance(verdict, RejectedConf | OtherEnvironment):
        return Explained(verdict, None)
    schedule: AnySchedule | None = verdict.schedule if isinstance(verdict, JobPlan) else verdict.runs
    if schedule is None:
        return Explained(verdict, ())
    if options.start is not None:
        runs = limited(schedule.runs_between(options.start, options.end), what="runs", conf=key)
        return Explained(verdict, runs, None if runs else next(schedule.runs_between(options.end, FAR), None))
    last_end = None if options.after == NEW else options.after
    if isinstance(verdict, ConfPlan) and last_end is not None:  # LAST is a fire, a conf's runs follow their ends
        last = verdict.runs.last_run(last_end)
        last_end = last.end if last else None
    runs = limited(schedule.missed(last_end, options.now), what="runs", conf=key)
    return Explained(verdict, runs, None if runs else schedule.next_run(last_end, options.now))


if __name__ == "__main__":
    run()
