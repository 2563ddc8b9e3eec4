"""``airflow chronon …``: the same commands as ``airflow-chronon``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from itertools import product

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, GroupCommand

from airflow_chronon.airflow_api.login import EDITORS, Login
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
        given = {**vars(options), "command": command, "ask_airflow": _find_connection}
        sys.exit(run_command(argparse.Namespace(**given)))

    return run


def _export_settings() -> None:
    """Airflow's own settings, where the environment names none: the commands read no airflow.cfg."""
    from airflow_chronon.airflow.config import deployment_of  # every airflow command imports this module

    found = deployment_of(near=None)
    for name, value in (("branch", found.branch), ("state_root", found.state_root), ("conf_root", found.conf_root)):
        if value:
            os.environ.setdefault(variable(name), str(value))


def _find_connection() -> Login | None:
    """What Airflow's connection of an editor says, wherever Airflow keeps it: hooks find those of its database only within a task.

    Airflow's own search writes a warning of the connection's type to stdout, where JSON may be expected.
    """
    from airflow.configuration import ensure_secrets_loaded

    from airflow_chronon.airflow.hooks import login_of_connection

    for connection_id, backend in product(EDITORS, ensure_secrets_loaded()):
        found = None
        with contextlib.suppress(Exception):  # as Airflow does: one that does not answer must not hide the next
            found = backend.get_connection(conn_id=connection_id)
        if found is not None:
            return login_of_connection(found)
    return None
