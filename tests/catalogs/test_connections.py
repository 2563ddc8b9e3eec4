"""Connections as a shell has them (S4)."""

from __future__ import annotations

import pytest

from airflow_chronon.catalogs.connections import StoreConnection, connections_of_environment
from airflow_chronon.errors import CatalogError


def found(text: str) -> StoreConnection:
    return connections_of_environment({"AIRFLOW_CONN_MY_LAKE": text})("my_lake")


def test_json_and_uri_mean_the_same() -> None:
    json = '{"conn_type": "iceberg", "host": "h", "port": 80, "login": "me", "password": "p/w", "schema": "s",'
    json += ' "extra": {"type": "rest"}}'
    assert (
        found(json)
        == found("iceberg://me:p%2Fw@h:80/s?type=rest")
        == found(json.replace('{"type": "rest"}', '"{\\"type\\": \\"rest\\"}"'))
    )
    assert found("google_cloud_platform://h?__extra__=%7B%22a%22%3A+1%7D").extra == {"a": 1}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"extra": 5}', '{"port": "x"}', "no scheme: hush", "iceberg://h:hush", '{"extra": "hush"}']
)
def test_what_cannot_be_read_is_said_and_not_quoted(text: str) -> None:
    with pytest.raises(CatalogError, match="the connection in AIRFLOW_CONN_MY_LAKE cannot be read") as error:
        found(text)
    assert "hush" not in str(error.value)


def test_nothing_secret_shows() -> None:
    connection = found("iceberg://me:hush@h?token=hush2&type=rest")
    assert "hush" not in repr(connection)
    assert connection.secrets == {"password": "hush", "login": "me", "token": "hush2"}
