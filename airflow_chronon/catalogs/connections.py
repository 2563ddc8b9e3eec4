"""Airflow connections as catalogs use them: where a store is, and who asks. Whoever builds a catalog says how one is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from airflow_chronon.errors import CatalogError, Fault

#: From the id of a connection to the connection. Raises ``CatalogError`` where there is none, or it cannot be read.
Connect = Callable[[str], "StoreConnection"]


@dataclass(frozen=True)
class StoreConnection:
    """The fields of an Airflow connection. Nothing of it but the host shows in its text."""

    host: str = ""
    port: int | None = None
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    schema: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> dict[str, str]:
        """What no message may hold, by the name of its field."""
        found = {"password": self.password, "login": self.login}
        found |= {name: value for name, value in self.extra.items() if isinstance(value, str) and _is_secret(name)}
        return {name: value for name, value in found.items() if value}


def connections_of_environment(environ: Mapping[str, str]) -> Connect:
    """Connections as Airflow writes them into the environment, ``AIRFLOW_CONN_<ID>``: all that a shell has."""

    def connect(connection_id: str) -> StoreConnection:
        name = f"AIRFLOW_CONN_{connection_id.upper()}"
        text = environ.get(name, "").strip()
        if not text:
            problem = f"there is no connection {connection_id!r} in this shell"
            raise CatalogError(Fault("S4", "connection", problem, f"set {name}, as JSON or as a URI"))
        try:
            return _of_json(text) if text.startswith("{") else _of_uri(text)
        except ValueError:
            problem = f"the connection in {name} cannot be read"  # and is not quoted: it holds a password
            raise CatalogError(
                Fault("S4", "connection", problem, "write it as Airflow's JSON, or as a URI with percent-escapes")
            ) from None

    return connect


def no_such_connection(connection_id: str) -> CatalogError:
    """What is said where Airflow has no such connection."""
    remedy = f"make it in Airflow (Admin, Connections), or set AIRFLOW_CONN_{connection_id.upper()}"
    return CatalogError(Fault("S4", "connection", f"Airflow has no connection {connection_id!r}", remedy))


def _is_secret(name: str) -> bool:
    folded = name.casefold()
    return any(part in folded for part in ("secret", "token", "password", "key", "credential"))


def _of_json(text: str) -> StoreConnection:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("no object")
    extra = data.get("extra") or {}
    extra = json.loads(extra) if isinstance(extra, str) else extra
    if not isinstance(extra, dict):
        raise ValueError("no object")
    port = data.get("port")
    texts = {name: str(data.get(name) or "") for name in ("host", "login", "password", "schema")}
    return StoreConnection(**texts, port=int(port) if port else None, extra=extra)


def _of_uri(text: str) -> StoreConnection:
    scheme, colon, rest = text.partition("://")
    parts = urlsplit(scheme.replace("_", "-") + colon + rest)  # an underscore cannot stand in a scheme
    if not colon or not parts.scheme:
        raise ValueError("no scheme")
    extra: dict[str, Any] = dict(parse_qsl(parts.query))
    if "__extra__" in extra:
        extra |= json.loads(extra.pop("__extra__"))
    return StoreConnection(
        unquote(parts.hostname or ""),
        parts.port,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        unquote(parts.path.lstrip("/")),
        extra,
    )
