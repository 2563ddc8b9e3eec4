"""``airflow chronon …``: the same commands as ``airflow-chronon``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, GroupCommand

from airflow_chronon.airflow_api.login import EDITORS, Login
from airflow_chronon.cli.main import COMMANDS, run_command
from airflow_chronon.cli.options import Command
from airflow_chronon.cli.output import USAGE, tell
from airflow_chronon.deployment import variable
from airflow_chronon.errors import ChrononError


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
        from airflow_chronon.airflow.config import api_address  # every airflow command imports this module

        given = {"command": command, "ask_airflow": _find_connection, "api_address": api_address()}
        try:
            given |= _with_deployment(vars(options))
        except ChrononError as error:
            tell(error)
            sys.exit(USAGE)
        sys.exit(run_command(argparse.Namespace(**given)))

    return run


def _with_deployment(options: dict[str, Any]) -> dict[str, Any]:
    """The options with the deployment that Airflow's configuration and the DAG bundle say, where the command is about one.

    What the commands take from the environment is put there, where it names none: they read no airflow.cfg.
    """
    if "root" not in options:
        return options
    from airflow_chronon.airflow.config import deployment_of_bundle

    # as Airflow's own commands do that need a connection: a bundle finds those of Airflow's database no other way
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    found = deployment_of_bundle(options.get("bundle"), conf_root=options["root"])
    for name, value in (("branch", found.branch), ("state_root", found.state_root), ("conf_root", found.conf_root)):
        if value:
            os.environ.setdefault(variable(name), str(value))
    return options | ({"bundle": found.bundle} if "bundle" in options else {})


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
