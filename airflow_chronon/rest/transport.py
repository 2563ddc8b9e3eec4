"""One call to Airflow's API: logged in, tried again while the server stumbles, and every failure as one sentence.

Requests are built and sent by the ``ApiClient`` of ``apache-airflow-client`` (addresses, TLS, proxies, encoding). Its
generated methods are left aside: importing them takes three seconds, in every command and every task, and its response
models reject what a newer server adds.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from airflow_chronon.rest.errors import (
    AirflowError,
    AirflowRefused,
    AirflowUnreachable,
    Conflict,
    LoginFailed,
    NoRights,
    NotThere,
)
from airflow_chronon.rest.login import Login

Json = dict[str, Any]

TRIES = 6  #: of a call that the server fails with 5xx: SQLite may be locked for a moment
TIMEOUT = 60.0  #: seconds for one answer
_JSON = {"Content-Type": "application/json"}
_REFUSALS: dict[int, type[AirflowRefused]] = {401: LoginFailed, 403: NoRights, 404: NotThere, 409: Conflict}
_REMEDIES = {
    401: "check login, password or token of the connection",
    403: "give its user the rights, or use another user",
}


class Transport:
    """Calls of one Airflow. Threads may share it."""

    def __init__(self, login: Login, *, pause: Callable[[float], None] = time.sleep) -> None:
        from airflow_client.client import ApiClient, Configuration

        self._login, self._pause = login, pause
        self._lock = threading.Lock()
        configuration = Configuration(host=login.url, access_token=login.token, retries=0)
        if (urlsplit(login.url).hostname or "") in ("127.0.0.1", "localhost", "::1"):
            configuration.proxy = None  # a proxy of the environment knows nothing of this machine's own ports
        self.client = ApiClient(configuration)
        self.calls = 0  #: answered requests, for whoever counts them

    def call(
        self,
        what: str,
        method: str,
        path: str,
        *,
        at: Mapping[str, object] | None = None,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Json:
        """The JSON of an answer; empty for an empty one.

        ``what`` says in errors what was asked, ``at`` fills the ``{names}`` of the path. In a query lists repeat their
        name, and None is left out. 5xx is asked again, a 401 logs in once more.
        Raises :class:`AirflowError`.
        """
        if self.client.configuration.access_token is None:
            self._log_in()

        def ask() -> Any:
            request = self.client.param_serialize(
                method,
                f"/api/v2/{path}",
                path_params=dict(at or {}),
                query_params=_pairs(query or {}),
                header_params={"Accept": "application/json", **({} if body is None else _JSON)},
                body=None if body is None else dict(body),
                auth_settings=["HTTPBearer"],
            )
            return self.client.call_api(*request, _request_timeout=TIMEOUT).response

        status, text = self._tried(ask)
        if status == 401 and self._login.token is None:  # the token has expired
            self._log_in()
            status, text = self._tried(ask)
        if status >= 300:
            raise self._refusal(what, status, text)
        return self._json(text)

    def _tried(self, ask: Callable[[], Any]) -> tuple[int, str]:
        import urllib3
        from airflow_client.client.exceptions import ApiException

        for attempt in range(1, TRIES + 1):
            problem = None
            try:
                answer = ask()
                text = answer.data.decode("utf-8", "replace")
                self.calls += 1
                if answer.status < 500:
                    return answer.status, text
                problem = f"answers {answer.status}: {_detail(text)}"
            except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
                cause = getattr(error, "reason", None) or error
                problem = f"does not answer ({type(cause).__name__})"
            if attempt < TRIES:
                self._pause(0.2 * attempt)
        raise AirflowUnreachable(self._login.url, str(problem))

    def _log_in(self) -> None:
        with self._lock:
            url = f"{self._login.url}/auth/token"
            body = {"username": self._login.user, "password": self._login.password}
            headers = {"Accept": "application/json", **_JSON}
            send = self.client.call_api
            status, text = self._tried(lambda: send("POST", url, headers, body, _request_timeout=TIMEOUT).response)
            if status >= 300:
                raise self._refusal(f"logging in as {self._login.user!r} at {self._login.url}", status, text)
            token = self._json(text).get("access_token")
            if not isinstance(token, str):
                raise AirflowUnreachable(self._login.url, "gives no token", "is it an Airflow 3 api-server?")
            self.client.configuration.access_token = token

    def _json(self, text: str) -> Json:
        if not text.strip():
            return {}
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        if found is None and text.strip() != "null":
            raise AirflowUnreachable(
                self._login.url, "answers something else than JSON", "is it an Airflow 3 api-server?"
            )
        return {"value": found}

    def _refusal(self, what: str, status: int, text: str) -> AirflowError:
        if status >= 500:
            return AirflowUnreachable(self._login.url, f"answers {status}: {_detail(text)}")
        kind = _REFUSALS.get(status, AirflowRefused)
        return kind(what, status=status, detail=_detail(text), remedy=_REMEDIES.get(status, ""))


def _pairs(query: Mapping[str, object]) -> list[tuple[str, object]]:
    """Names and values, lists spelled out."""
    pairs: list[tuple[str, object]] = []
    for name, value in query.items():
        for each in value if isinstance(value, list | tuple) else (value,):
            if each is not None:
                pairs.append((name, each))
    return pairs


def _detail(text: str) -> str:
    """The server's own sentence, on one line."""
    try:
        found = json.loads(text)
    except ValueError:
        found = text.strip().split("\n")[0][:200] or "no reason given"
    if isinstance(found, dict):
        found = found.get("detail", found)
    if isinstance(found, list):
        found = "; ".join(str(each.get("msg", each)) if isinstance(each, dict) else str(each) for each in found)
    if isinstance(found, dict):
        found = found.get("reason") or found.get("message") or json.dumps(found)
    return " ".join(str(found).split()).rstrip(".")
