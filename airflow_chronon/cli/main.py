"""``airflow-chronon``: the entry point.

Results go to stdout, problems to stderr; exit codes are 0 good, 1 findings, 2 usage.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from airflow_chronon import __version__
from airflow_chronon.cli.commands.backfill import BACKFILL
from airflow_chronon.cli.commands.check import CHECK
from airflow_chronon.cli.commands.explain import EXPLAIN
from airflow_chronon.cli.commands.import_schedule import IMPORT_SCHEDULE
from airflow_chronon.cli.commands.partitions import PARTITIONS
from airflow_chronon.cli.commands.plan import PLAN, RECONCILE
from airflow_chronon.cli.commands.run import RUN
from airflow_chronon.cli.commands.schema import SCHEMA
from airflow_chronon.cli.options import Command
from airflow_chronon.cli.output import GOOD, USAGE
from airflow_chronon.errors import ChrononError

COMMANDS = (CHECK, EXPLAIN, PARTITIONS, BACKFILL, PLAN, RECONCILE, RUN, IMPORT_SCHEDULE, SCHEMA)


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


if __name__ == "__main__":
    run()
