"""Finding the Airflow that a command talks to."""

from __future__ import annotations

import argparse
import os

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.login import (
    CONNECTION_ID,
    ENVIRONMENT_VARIABLE,
    find_login,
    no_connection,
    not_configured,
)
from airflow_chronon.cli.options import option

AIRFLOW = option(
    "--airflow",
    metavar="URL",
    help=f"Airflow's address, such as http://user:password@host:8080; else the connection in {ENVIRONMENT_VARIABLE}, or in"
    f" airflow chronon Airflow's own connection {CONNECTION_ID}",
)


def find_server(options: argparse.Namespace) -> AirflowRest | None:
    """The Airflow that was named; None when none was."""
    login = find_login(os.environ, address=options.airflow, or_ask=options.ask_airflow)
    return None if login is None else AirflowRest(login)


def need_server(options: argparse.Namespace) -> AirflowRest:
    """The Airflow that was named. Raises ``NotConfigured`` when none was."""
    server = find_server(options)
    if server is not None:
        return server
    if options.ask_airflow is None:
        raise not_configured(instead=f"airflow chronon {options.command.name}")
    raise no_connection(options.api_address)
