"""``airflow-chronon``: the entry point and the commands that need no Airflow.

JSON goes to stdout, everything else to stderr; exit codes are 0 good, 1 findings, 2 usage.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from airflow_chronon import __version__
from airflow_chronon.cli.select import select
from airflow_chronon.cli.text import check_text, explain_text
from airflow_chronon.conf_root import ConfRoot, read_conf_root
from airflow_chronon.core.instants import Instant, parse_instant
from airflow_chronon.core.report import verdict_json
from airflow_chronon.core.resolve import ConfPlan, RejectedConf, Verdict
from airflow_chronon.core.runs import Run
from airflow_chronon.errors import ChrononError

GOOD, FINDINGS, USAGE = 0, 1, 2
DEFAULT_ROOT = "dags/chronon"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter must not end the command
    try:
        return int(arguments.run(arguments))
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
    """Every command and its options; also what the provider adds as ``airflow chronon``."""
    top = argparse.ArgumentParser(prog="airflow-chronon", description="Chronon confs on Airflow.")
    top.add_argument("--version", action="version", version=f"airflow-chronon {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    check = commands.add_parser("check", help="say of every conf whether it is good, else each broken rule with its remedy")
    add_check_arguments(check)
    explain = commands.add_parser("explain", help="show the runs of confs: fires, partitions, waits")
    add_explain_arguments(explain)
    return top


def add_check_arguments(command: argparse.ArgumentParser) -> None:
    _add_common(command)
    command.set_defaults(run=check)


def add_explain_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("conf", nargs="*", metavar="CONF", help="a DAG id, type/name, a name or a file; default: all")
    _add_common(command)
    command.add_argument("--from", dest="start", type=_instant, metavar="T", help="first fire, inclusive, UTC")
    command.add_argument("--to", dest="end", type=_instant, metavar="T", help="last fire, exclusive, UTC")
    command.add_argument("--after", type=_last_fire, metavar="LAST", help="the last run's fire, or none: the schedule is new")
    command.add_argument("--now", type=_instant, metavar="NOW", help="with --after: show what is created at NOW")
    command.set_defaults(run=explain)


def check(arguments: argparse.Namespace) -> int:
    """``airflow-chronon check``"""
    root = _root(arguments.root)
    verdicts = root.judge()
    if arguments.format == "json":
        _print_json({key: verdict_json(verdict) for key, verdict in verdicts.items()})
    else:
        print(check_text(root, verdicts))
    _report_problems(root)
    bad = any(isinstance(verdict, RejectedConf) for verdict in verdicts.values())
    return FINDINGS if bad or root.problems else GOOD


def explain(arguments: argparse.Namespace) -> int:
    """``airflow-chronon explain``"""
    between = arguments.start is not None and arguments.end is not None
    recovery = arguments.after is not None and arguments.now is not None
    if between == recovery:
        print("explain: give --from and --to, or --after and --now", file=sys.stderr)
        return USAGE
    if between and arguments.end <= arguments.start:
        print("explain: --to must be after --from", file=sys.stderr)
        return USAGE
    root = _root(arguments.root)
    judged = root.judge()
    verdicts = select(judged, arguments.conf if judged or not root.problems else (), root.path)
    shown: dict[str, tuple[Verdict, tuple[Run, ...] | None]] = {}
    for key, verdict in verdicts.items():
        shown[key] = (verdict, tuple(_runs(verdict, arguments)) if isinstance(verdict, ConfPlan) else None)
    if arguments.format == "json":
        _print_json({key: verdict_json(verdict, runs) for key, (verdict, runs) in shown.items()})
    else:
        print(explain_text(shown))
    _report_problems(root)
    asked_for_bad = arguments.conf and any(isinstance(verdict, RejectedConf) for verdict in verdicts.values())
    return FINDINGS if root.problems or asked_for_bad else GOOD


def _runs(plan: ConfPlan, arguments: argparse.Namespace) -> Iterator[Run]:
    if arguments.start is not None:
        return plan.runs.runs_between(arguments.start, arguments.end)
    last = plan.runs.last_run(arguments.after) if arguments.after is not _NEW else None
    return plan.runs.missed(last.end if last else None, arguments.now)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--root", default=DEFAULT_ROOT, metavar="R", help=f"a conf root or one compiled tree ({DEFAULT_ROOT})")
    command.add_argument("--format", choices=("text", "json"), default="text")


def _root(path: str) -> ConfRoot:
    return read_conf_root(Path(path), environ=os.environ, branch=os.environ.get("AIRFLOW__CHRONON__BRANCH"))


def _report_problems(root: ConfRoot) -> None:
    for problem in root.problems:
        print(problem, file=sys.stderr)


_NEW = -1


def _last_fire(text: str) -> Instant:
    return _NEW if text == "none" else _instant(text)


def _instant(text: str) -> Instant:
    if text == "now":
        return int(time.time())
    try:
        return parse_instant(text)
    except ValueError:
        problem = f"{text!r} is no instant of the years 1970 to 2199: write it like 2026-06-01 or 2026-06-01T04:15Z"
        raise argparse.ArgumentTypeError(problem) from None


def _print_json(value: dict[str, Any]) -> None:
    json.dump(value, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    run()
