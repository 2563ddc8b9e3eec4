# PYTHON_ARGCOMPLETE_OK
"""``airflow-chronon``: the entry point.

Results go to stdout, problems to stderr; exit codes are 0 good, 1 findings, 2 usage.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

import argcomplete

from airflow_chronon import __version__
from airflow_chronon.cli.commands.backfill import BACKFILL
from airflow_chronon.cli.commands.catalog import CATALOG
from airflow_chronon.cli.commands.check import CHECK
from airflow_chronon.cli.commands.explain import EXPLAIN
from airflow_chronon.cli.commands.import_airflow_dags import IMPORT
from airflow_chronon.cli.commands.import_schedule import IMPORT_SCHEDULE
from airflow_chronon.cli.commands.init import INIT
from airflow_chronon.cli.commands.land import LAND
from airflow_chronon.cli.commands.partitions import PARTITIONS
from airflow_chronon.cli.commands.plan import PLAN, RECONCILE
from airflow_chronon.cli.commands.run import RUN
from airflow_chronon.cli.commands.schema import SCHEMA
from airflow_chronon.cli.commands.size import SIZE
from airflow_chronon.cli.commands.why import WHY
from airflow_chronon.cli.options import Command
from airflow_chronon.cli.output import GOOD, USAGE, tell
from airflow_chronon.errors import ChrononError, Fault

COMMANDS = (
    INIT,
    CHECK,
    EXPLAIN,
    PARTITIONS,
    WHY,
    CATALOG,
    BACKFILL,
    LAND,
    PLAN,
    RECONCILE,
    RUN,
    IMPORT,
    IMPORT_SCHEDULE,
    SCHEMA,
    SIZE,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    top, arguments = parser(), sys.argv[1:] if argv is None else list(argv)
    argcomplete.autocomplete(top)
    if (name := next((each for each in arguments if not each.startswith("-")), None)) is not None:
        known = [command.name for command in COMMANDS]
        if name not in known:
            top.print_usage(sys.stderr)
            tell(_unknown(name, known))
            return USAGE
    return run_command(top.parse_args(arguments))


def run_command(options: argparse.Namespace) -> int:
    """Run the command of parsed options; a user's mistake is one sentence on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter must not end the command
    try:
        command: Command = options.command
        return command.run(options)
    except ChrononError as error:
        tell(error)
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
            made = one.add_argument(*each.flags, **each.keywords)
            made.completer = each.completer  # type: ignore[attr-defined]  # argcomplete looks there
        one.set_defaults(command=command, ask_airflow=None, api_address=None)
    return top


def _unknown(name: str, known: Sequence[str]) -> Fault:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]}?" if near else "they are listed by airflow-chronon --help"
    return Fault("input", "", f"there is no command {name!r}", remedy)


if __name__ == "__main__":
    run()
