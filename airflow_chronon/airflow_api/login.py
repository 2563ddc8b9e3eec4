"""Where Airflow's API is and who asks: from an Airflow connection, the environment or the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from airflow_chronon.airflow_api.errors import NotConfigured
from airflow_chronon.errors import Fault, shown_address

CONNECTION_TYPE = "chronon_airflow"  #: as Airflow's forms and connection URIs call it
CONNECTION_ID = "chronon_airflow"  #: the connection of tasks, which read
RECONCILER_ID = "chronon_reconciler"  #: that of the reconciler and the command line, which edit
EDITORS = (RECONCILER_ID, CONNECTION_ID)  #: the first that is there serves whoever edits: one for all is enough (S10)
ENVIRONMENT_VARIABLE = f"AIRFLOW_CONN_{CONNECTION_ID.upper()}"

_SCHEMES = ("http", "https")


@dataclass(frozen=True)
class Login:
    """An address and either a user with a password, or a token. Nothing of it shows in its text."""

    url: str  #: such as ``http://127.0.0.1:8080``, a path included when Airflow is mounted below one
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    connection_id: str = field(default="", compare=False)  #: of the Airflow connection that it is taken from, if any

    @property
    def who(self) -> str:
        """Who asks, for messages: the user, and the connection that names them."""
        user = f"the user {self.user!r}" if self.user and not self.token else "the owner of the token"
        return f"{user} of the connection {self.connection_id}" if self.connection_id else user

    def __post_init__(self) -> None:
        parts = _parts(self.url)
        if "@" in self.url:
            raise _misconfigured("its address holds a user or a password", "give them apart from it")
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise _misconfigured(
                f"{self.url!r} is not the address of Airflow's API", "write it like http://127.0.0.1:8080"
            )
        if not self.token and not (self.user and self.password):
            raise _misconfigured(
                f"there is neither a token nor a user with a password for {self.url}", "give one of them"
            )
        if self.token and not (self.token.isascii() and self.token.isprintable()):
            raise _misconfigured("its token holds characters that no header can carry", "copy it again")


def login_of_parts(
    *,
    host: str | None,
    port: int | None = None,
    user: str | None = None,
    password: str | None = None,
    path: str | None = None,
    extra: Mapping[str, object] | None = None,
) -> Login:
    """The login that the fields of an Airflow connection describe.

    ``host`` may be a whole address; ``extra`` may hold ``token`` and ``scheme`` (``http`` unless it says ``https``).
    """
    more = extra or {}
    address = (host or "").strip()
    if not address:
        raise _misconfigured("its connection does not name a host", "give the host of Airflow's api-server")
    if "://" not in address:
        address = f"{more.get('scheme') or 'http'}://{address}"
    parts = _parts(address)
    place = parts.netloc.rpartition("@")[2]  # user and password have fields of their own, and stand in no message
    netloc = place if port is None or parts.port is not None else f"{place}:{port}"
    below = "/".join(each.strip("/") for each in (parts.path, path or "") if each.strip("/"))
    token = more.get("token")
    url = f"{parts.scheme}://{netloc}" + (f"/{below}" if below else "")
    user, password = user or unquote(parts.username or ""), password or unquote(parts.password or "")
    return Login(url, user or None, password or None, str(token).strip() if token else None)


def login_of_text(text: str) -> Login:
    """Read a connection as Airflow writes them into the environment: a URI, or JSON. Also ``http://user:password@host``."""
    text = text.strip()
    if text.startswith("{"):
        return _of_json(text)
    scheme, colon, rest = text.partition("://")
    parts = _parts(scheme.replace("_", "-") + colon + rest)  # an underscore cannot stand in a scheme
    kind = parts.scheme.replace("-", "_")
    if kind not in (CONNECTION_TYPE, *_SCHEMES):
        remedy = f"write it like {CONNECTION_TYPE.replace('_', '-')}://user:password@host:8080"
        if not colon or not parts.scheme:  # what stands there may be a password
            raise _misconfigured("the connection has no scheme", remedy)
        raise _misconfigured(f"a connection of the type {scheme!r} is not one to Airflow's API", remedy)
    extra: dict[str, object] = dict(parse_qsl(parts.query))
    if "__extra__" in extra:
        extra |= _mapping(str(extra["__extra__"]))
    if kind in _SCHEMES:
        extra["scheme"] = kind
    return login_of_parts(
        host=unquote(parts.hostname or ""),
        port=parts.port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        path=parts.path,
        extra=extra,
    )


def find_login(
    environ: Mapping[str, str], *, address: str | None = None, or_ask: Callable[[], Login | None] | None = None
) -> Login | None:
    """The login of the command line: ``address`` (it may hold user and password), else the connection that is known.

    That is the environment's first of :data:`EDITORS`, else what ``or_ask`` finds, which is called only then. An address
    without a user takes user, password and token from it. None when neither is there.
    """
    if address and _parts(address).username:
        return login_of_text(address)
    known = _login_of_environment(environ) or (or_ask() if or_ask is not None else None)
    if not address:
        return known
    return login_of_text(address) if known is None else replace(known, url=address.rstrip("/"))


def _login_of_environment(environ: Mapping[str, str]) -> Login | None:
    for connection_id in EDITORS:
        if text := environ.get(f"AIRFLOW_CONN_{connection_id.upper()}"):
            return replace(login_of_text(text), connection_id=connection_id)
    return None


def not_configured(*, or_give: str = "--airflow http://user:password@host:8080", instead: str = "") -> NotConfigured:
    """What is said where nothing can be done without Airflow, and no configuration of Airflow's is read.

    ``or_give`` is how the caller may name one; ``instead`` is the command that reads Airflow's own connection.
    """
    use = f"run {instead}, which reads Airflow's connection {CONNECTION_ID}, or " if instead else ""
    remedy = f"{use}set {ENVIRONMENT_VARIABLE}=chronon-airflow://user:password@host:8080, or give {or_give}"
    return NotConfigured(Fault("connection", "", "nobody said where Airflow is", remedy))


def no_connection(address: str) -> NotConfigured:
    """What is said where Airflow was asked for its connection, and has none; the remedy is the command that makes it.

    ``address`` is where Airflow's configuration has its API.
    """
    command = (
        f"airflow connections add {CONNECTION_ID} --conn-type {CONNECTION_TYPE} --conn-host {shown_address(address)}"
        " --conn-login USER --conn-password PASSWORD"
    )
    remedy = f"make it, with the address of Airflow's api-server and a user that may edit DAGs: {command}"
    return NotConfigured(Fault("connection", "", f"Airflow has no connection {CONNECTION_ID}", remedy))


def _of_json(text: str) -> Login:
    fields = _mapping(text)
    kind = str(fields.get("conn_type") or CONNECTION_TYPE).replace("-", "_")
    if kind not in (CONNECTION_TYPE, *_SCHEMES):
        raise _misconfigured(f"a connection of the type {kind!r} is not one to Airflow's API", f"use {CONNECTION_TYPE}")
    extra = fields.get("extra") or {}
    more = _mapping(extra) if isinstance(extra, str) else dict(extra) if isinstance(extra, Mapping) else {}
    if kind in _SCHEMES:
        more.setdefault("scheme", kind)
    port = fields.get("port")
    if port and not (str(port).isascii() and str(port).isdigit()):
        raise _misconfigured("its port is not a number", "write it like 8080")
    return login_of_parts(
        host=str(fields.get("host") or ""),
        port=int(str(port)) if port else None,
        user=str(fields.get("login") or ""),
        password=str(fields.get("password") or ""),
        path=str(fields.get("schema") or ""),
        extra=more,
    )


def _mapping(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _misconfigured(
            "the connection is not a JSON object", "write it as a URI, or as Airflow's JSON of a connection"
        )
    return found


def _parts(address: str) -> SplitResult:
    """The parts of an address, its port a number or none.

    A password that is not percent-encoded ends where it holds a ``/``, a ``?`` or a ``#``: its rest would be taken for host
    and path, be called and be shown. Nor does the error quote anything: any part may be of a password.
    """
    remedy = "write it like http://user:password@127.0.0.1:8080, with %2F for / in a password, %40 for @ and %3A for :"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        problem = "its address cannot be read: its port is not a number, or its password is not percent-encoded"
        raise _misconfigured(problem, remedy) from None
    if "@" in parts.path + parts.query + parts.fragment:
        raise _misconfigured("its address has an @ behind the host: its password is not percent-encoded", remedy)
    return parts


def _misconfigured(problem: str, remedy: str) -> NotConfigured:
    return NotConfigured(Fault("connection", CONNECTION_ID, problem, remedy))
