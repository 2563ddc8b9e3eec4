"""The connection to Airflow's own REST API: what tasks and the reconciler ask Airflow through."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.login import CONNECTION_ID, CONNECTION_TYPE, Login, login_of_parts
from airflow_chronon.errors import ChrononError


class ChrononAirflowHook(BaseHook):
    """Airflow's API by a connection: host (and port), login and password; or a token in ``extra``."""

    conn_name_attr = "chronon_conn_id"
    default_conn_name = CONNECTION_ID
    conn_type = CONNECTION_TYPE
    hook_name = "Airflow API (Chronon)"

    def __init__(self, chronon_conn_id: str = CONNECTION_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.chronon_conn_id = chronon_conn_id

    def get_conn(self) -> AirflowRest:
        """The API. Raises ``ChrononError`` for a connection that says too little."""
        return AirflowRest(login_of_connection(self.get_connection(self.chronon_conn_id)))

    def test_connection(self) -> tuple[bool, str]:
        """What Airflow's button shows: whether it answers and lets this user in."""
        try:
            self.get_conn().dags(tags=(CONNECTION_TYPE,))  # no DAG has it: nothing is listed, yet the user is checked
        except ChrononError as error:
            return False, str(error)
        return True, "Airflow answers"


def find_airflow(*connection_ids: str) -> AirflowRest | None:
    """Airflow's API for a task or a trigger, by the first of these connections that is there; None without any."""
    login = find_connection(*connection_ids)
    return None if login is None else AirflowRest(login)


def find_connection(*connection_ids: str) -> Login | None:
    """The login of the first of these connections that is there, by default that of tasks; None without any.

    Raises ``ChrononError`` for one that says too little.
    """
    for connection_id in connection_ids or (CONNECTION_ID,):
        with contextlib.suppress(AirflowNotFoundException):
            return login_of_connection(BaseHook.get_connection(connection_id))
    return None


def login_of_connection(connection: Any) -> Login:
    """The login that an Airflow connection holds."""
    found = login_of_parts(
        host=connection.host,
        port=connection.port,
        user=connection.login,
        password=connection.password,
        path=connection.schema,
        extra=connection.extra_dejson,
    )
    return replace(found, connection_id=connection.conn_id or "")
