"""``airflow chronon …``: the same commands as ``airflow-chronon``."""

from __future__ import annotations

import argparse
import sys

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, GroupCommand


def get_chronon_commands() -> list[CLICommand]:
    """One group; a provider that adds to Airflow's own groups would break them."""
    rest = Arg(("arguments",), nargs=argparse.REMAINDER, help="see: airflow-chronon COMMAND --help")
    commands = [
        ActionCommand(name=name, help=text, func=_run, args=(rest,))
        for name, text in (
            ("check", "Say of every conf whether it is good, else each broken rule"),
            ("explain", "Show the runs of confs: fires, partitions, waits"),
        )
    ]
    return [GroupCommand(name="chronon", help="Chronon confs on Airflow", subcommands=commands)]


def _run(arguments: argparse.Namespace) -> None:
    from airflow_chronon.cli.main import main

    sys.exit(main([arguments.subcommand, *arguments.arguments]))
