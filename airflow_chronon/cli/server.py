"""Finding the Airflow that a command talks to."""

from __future__ import annotations

import os

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.login import ENVIRONMENT_VARIABLE, find_login, not_configured
from airflow_chronon.cli.options import option

AIRFLOW = option(
    "--airflow",
    metavar="URL",
    help=f"Airflow's address, such as http://user:password@host:8080; else the connection in {ENVIRONMENT_VARIABLE}",
)


def find_server(address: str | None) -> AirflowRest | None:
    """The Airflow that was named; None when none was."""
    login = find_login(os.environ, address=address)
    return None if login is None else AirflowRest(login)


def need_server(address: str | None) -> AirflowRest:
    """The Airflow that was named. Raises ``NotConfigured`` when none was."""
    server = find_server(address)
    if server is None:
        raise not_configured()
    return server
