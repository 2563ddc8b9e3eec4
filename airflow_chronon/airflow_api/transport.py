"""One call to Airflow's API: logged in, tried again while the server stumbles, and every failure as one sentence.

It speaks HTTP itself, through httpx as Airflow's own tasks do. Airflow's generated client costs three seconds of
processor time to import, in every command and every work task, and its models reject what a newer server adds.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow_chronon.airflow_api.errors import (
    AirflowError,
    AirflowRefused,
    AirflowUnreachable,
    Conflict,
    LoginFailed,
    NoRights,
    NotThere,
)
from airflow_chronon.airflow_api.login import Login

if TYPE_CHECKING:
    import httpx

Json = dict[str, Any]

TRIES = 6  #: of a call that the server fails with 5xx: SQLite may be locked for a moment
TIMEOUT = 60.0  #: seconds for one answer
_REFUSALS: dict[int, type[AirflowRefused]] = {401: LoginFailed, 403: NoRights, 404: NotThere, 409: Conflict}
_REMEDIES = {
    401: "check login, password or token of the connection",
    403: "give its user the rights, or use another user",
}


class Transport:
    """Calls of one Airflow. Threads may share it."""

    def __init__(self, login: Login, *, pause: Callable[[float], None] = time.sleep) -> None:
        import httpx

        self._login, self._pause = login, pause
        self._lock = threading.Lock()
        self._token = login.token
        # a proxy of the environment knows nothing of this machine's own ports
        is_local = (urlsplit(login.url).hostname or "") in ("127.0.0.1", "localhost", "::1")
        self._http = httpx.Client(timeout=TIMEOUT, trust_env=not is_local)
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
        if self._token is None:
            self._log_in()
        url = f"{self._login.url}/api/v2/" + path.format(
            **{name: quote(str(value), safe="~") for name, value in (at or {}).items()}
        )

        def ask() -> httpx.Response:
            headers = {"Authorization": f"Bearer {self._token}"}
            return self._http.request(method, url, params=_pairs(query or {}), json=body, headers=headers)

        status, text = self._tried(ask)
        if status == 401 and self._login.token is None:  # the token has expired
            self._log_in()
            status, text = self._tried(ask)
        if status >= 300:
            raise self._refusal(what, status, text)
        return self._json(text)

    def _tried(self, ask: Callable[[], httpx.Response]) -> tuple[int, str]:
        import httpx

        problem = ""
        for attempt in range(1, TRIES + 1):
            try:
                answer = ask()
                self.calls += 1
                if answer.status_code < 500:
                    return answer.status_code, answer.text
                problem = f"answers {answer.status_code}: {_detail(answer.text)}"
            except httpx.TimeoutException:
                problem = f"does not answer within {TIMEOUT:g} seconds"
                if attempt > 1:
                    break  # it hangs; a third time would take another minute
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                problem = f"does not answer ({error or type(error).__name__})"
            if attempt < TRIES:
                self._pause(0.2 * attempt)
        raise AirflowUnreachable(self._login.url, problem)

    def _log_in(self) -> None:
        with self._lock:
            url = f"{self._login.url}/auth/token"
            body = {"username": self._login.user, "password": self._login.password}
            status, text = self._tried(lambda: self._http.post(url, json=body))
            if status >= 300:
                raise self._refusal(f"logging in as {self._login.user!r} at {self._login.url}", status, text)
            token = self._json(text).get("access_token")
            if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
                raise AirflowUnreachable(self._login.url, "gives no token", "is it an Airflow 3 api-server?")
            self._token = token

    def _json(self, text: str) -> Json:
        if not text.strip():
            return {}
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        if found is None and text.strip() != "null":
            raise AirflowUnreachable(
                self._login.url, "answers something else than JSON", "is it an Airflow 3 api-server?"
            )
        return {"value": found}

    def _refusal(self, what: str, status: int, text: str) -> AirflowError:
        kind = _REFUSALS.get(status, AirflowRefused)
        return kind(what, status=status, detail=_detail(text), remedy=_REMEDIES.get(status, ""))


def _pairs(query: Mapping[str, object]) -> list[tuple[str, str | int | float | bool | None]]:
    """Names and values as text, lists spelled out."""
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in query.items():
        for each in value if isinstance(value, list | tuple) else (value,):
            if each is not None:
                pairs.append((name, _text(each)))
    return pairs


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


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
