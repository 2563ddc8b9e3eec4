"""The Airflow connections that catalogs name, as Airflow's own processes find them."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_chronon.catalogs.connections import Connect, StoreConnection, no_such_connection


def connect(connection_id: str) -> StoreConnection:
    """A connection, wherever Airflow keeps it; for tasks. Raises ``CatalogError`` where there is none."""
    try:
        return _read(BaseHook.get_connection(connection_id))
    except AirflowNotFoundException:
        raise no_such_connection(connection_id) from None


async def ask_connection(connection_id: str) -> Connect:
    """What finds a connection that was asked for in a triggerer: there only its event loop may ask.

    Where there is none, it is the catalog that says so, when it is used.
    """
    try:
        found = _read(await BaseHook.aget_connection(connection_id))
    except AirflowNotFoundException:

        def missing(_: str) -> StoreConnection:
            raise no_such_connection(connection_id)

        return missing
    return lambda _: found


def _read(connection: Any) -> StoreConnection:
    return StoreConnection(
        connection.host or "",
        connection.port,
        connection.login or "",
        connection.password or "",
        connection.schema or "",
        connection.extra_dejson,
    )
