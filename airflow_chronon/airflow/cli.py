"""``airflow chronon …``: the same commands as ``airflow-chronon``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, GroupCommand
from airflow.configuration import conf

from airflow_chronon.cli.main import COMMANDS, run_command
from airflow_chronon.cli.options import Command
from airflow_chronon.deployment import variable


def get_chronon_commands() -> list[CLICommand]:
    """One group of its own: a provider that adds to Airflow's own groups breaks every airflow command."""
    subcommands = [
        ActionCommand(
            name=command.name,
            help=command.help,
            func=_runner(command),
            args=tuple(Arg(option.flags, **option.keywords) for option in command.options),  # type: ignore[no-untyped-call]
        )
        for command in COMMANDS
    ]
    return [GroupCommand(name="chronon", help="Chronon confs on Airflow", subcommands=subcommands)]


def _runner(command: Command) -> Callable[[argparse.Namespace], None]:
    def run(options: argparse.Namespace) -> None:
        _export_settings()
        sys.exit(run_command(argparse.Namespace(**{**vars(options), "command": command})))

    return run


def _export_settings() -> None:
    """Airflow's own settings, where the environment names none: the commands read no airflow.cfg."""
    for name in ("branch", "state_root"):
        value = conf.get("chronon", name, fallback="")
        if value:
            os.environ.setdefault(variable(name), value)
