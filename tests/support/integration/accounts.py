"""The accounts of the simple auth manager of a running Airflow."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.integration.real_airflow import RealAirflow

USERS = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"


def connection_as(airflow: RealAirflow, user: str) -> str:
    """A connection by which this Airflow is asked as a user, as Airflow reads it from the environment."""
    fields = {"conn_type": "chronon_airflow", "host": airflow.server.url, "login": user}
    return json.dumps({**fields, "password": password_of(airflow, user)})


def password_of(airflow: RealAirflow, user: str) -> str:
    """The password that Airflow has made up for a user."""
    file = Path(airflow.server.environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    return str(json.loads(file.read_text())[user])
