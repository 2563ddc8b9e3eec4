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

from airflow_chronon.airflow_api.bounded import READ_TIMEOUT, BoundedAnswer, OutOfBounds, ask
from airflow_chronon.airflow_api.errors import (
    AirflowError,
    AirflowRefused,
    AirflowUnreachable,
    Conflict,
    LoginFailed,
    NoRights,
    NotThere,
)
from airflow_chronon.airflow_api.login import CONNECTION_ID, RECONCILER_ID, Login
from airflow_chronon.airflow_api.rights import right_of
from airflow_chronon.errors import shown_address

if TYPE_CHECKING:
    import httpx

Json = dict[str, Any]

TRIES = 6  #: of a call that the server fails with 5xx, as when SQLite is locked for a moment, or puts off with 429
LONGEST_PAUSE = 30.0  #: seconds between two tries, whatever the server wishes
_FORBIDDEN, _TOO_MANY_REQUESTS = 403, 429
_LONGEST_DETAIL = 500  #: characters of the server's own sentence
_REFUSALS: dict[int, type[AirflowRefused]] = {401: LoginFailed, 404: NotThere, 409: Conflict}
_REMEDIES = {401: "check login, password or token of the connection"}


class Transport:
    """Calls of one Airflow. Threads may share it."""

    def __init__(self, login: Login, *, pause: Callable[[float], None] = time.sleep) -> None:
        import httpx

        self._login, self._pause = login, pause
        self._lock = threading.Lock()
        self._token = login.token
        # a proxy of the environment knows nothing of this machine's own ports
        is_local = (urlsplit(login.url).hostname or "") in ("127.0.0.1", "localhost", "::1")
        # a redirect is not followed: it may lead anywhere, and the credentials would go there too
        self._http = httpx.Client(
            timeout=READ_TIMEOUT, trust_env=not is_local, follow_redirects=False, headers={"Accept-Encoding": "gzip"}
        )
        self.calls = 0  #: answered requests, for whoever counts them
        self.received = 0  #: characters of all answers, likewise

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
        name, and None is left out. 5xx and 429 are asked again, later and later; a 401 logs in once more.
        Raises :class:`AirflowError`.
        """
        if self._token is None:
            self._log_in()
        url = f"{self._login.url}/api/v2/" + path.format(
            **{name: quote(str(value), safe="~") for name, value in (at or {}).items()}
        )

        def request() -> httpx.Request:
            headers = {"Authorization": f"Bearer {self._token}"}
            return self._http.build_request(method, url, params=_pairs(query or {}), json=body, headers=headers)

        answer = self._tried(request)
        if answer.status == 401 and self._login.token is None:  # the token has expired
            self._log_in()
            answer = self._tried(request)
        if answer.status == _FORBIDDEN:
            raise self._no_rights(what, right_of(method, path), answer)
        if answer.status >= 300:
            raise self._refusal(what, answer)
        return self._json(answer.text)

    def _tried(self, request: Callable[[], httpx.Request]) -> BoundedAnswer:
        import httpx

        problem = ""
        for attempt in range(1, TRIES + 1):
            pause = 0.2 * 2 ** (attempt - 1)
            try:
                answer = ask(self._http, request())
                self.calls += 1
                self.received += len(answer.text)
                if answer.status < 500 and answer.status != _TOO_MANY_REQUESTS:
                    return answer
                problem = f"answers {answer.status}: {_detail(answer.text)}"
                pause = max(pause, answer.retry_after(now=time.time()) or 0)
            except httpx.TimeoutException:
                problem = f"does not answer within {READ_TIMEOUT:g} seconds"
                if attempt > 1:
                    break  # it hangs; a third time would take another minute
            except OutOfBounds as error:  # the next answer would take as much again
                raise AirflowUnreachable(self._login.url, str(error), "is it an Airflow 3 api-server?") from None
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                problem = f"does not answer ({error or type(error).__name__})"
            if attempt < TRIES:
                self._pause(min(pause, LONGEST_PAUSE))
        raise AirflowUnreachable(self._login.url, problem)

    def _log_in(self) -> None:
        with self._lock:
            url = f"{self._login.url}/auth/token"
            body = {"username": self._login.user, "password": self._login.password}
            answer = self._tried(lambda: self._http.build_request("POST", url, json=body))
            what = f"logging in as {self._login.user!r} at {self._login.url}"
            if answer.status == _FORBIDDEN:
                raise self._no_rights(what, "log in", answer)
            if answer.status >= 300:
                raise self._refusal(what, answer)
            token = self._json(answer.text).get("access_token")
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

    def _refusal(self, what: str, answer: BoundedAnswer) -> AirflowError:
        status = answer.status
        if status < 400:
            problem = f"answers {status}: it leads on to {_place(answer.headers.get('location', ''))} ({what})"
            return AirflowUnreachable(self._login.url, problem, "give the address that it leads to, if you trust it")
        kind = _REFUSALS.get(status, AirflowRefused)
        return kind(what, status=status, detail=_detail(answer.text), remedy=_REMEDIES.get(status, ""))

    def _no_rights(self, what: str, right: str, answer: BoundedAnswer) -> NoRights:
        who, remedy = self._login.who, "give it to this user, or use another one"
        if self._login.connection_id == CONNECTION_ID and not right.startswith("read "):
            remedy = f"make a connection {RECONCILER_ID} with a user that has it, or give it to this one"
        return NoRights(what, status=answer.status, detail=_detail(answer.text), remedy=remedy, right=right, who=who)


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


def _place(location: str) -> str:
    """Where a redirect leads, without a user, a password or a query."""
    try:
        parts = urlsplit(shown_address(location))
    except ValueError:
        return "another place"
    place = f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.netloc else ""
    return place[:200] if place.isprintable() and place else "another place"


def _detail(text: str) -> str:
    """The server's own sentence, on one line."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text[:_LONGEST_DETAIL].strip().split("\n")[0][:200] or "no reason given"
    if isinstance(found, dict):
        found = found.get("detail", found)
    if isinstance(found, list):
        found = "; ".join(str(each.get("msg", each)) if isinstance(each, dict) else str(each) for each in found)
    if isinstance(found, dict):
        found = found.get("reason") or found.get("message") or json.dumps(found)
    return " ".join(str(found)[: 2 * _LONGEST_DETAIL].split()).rstrip(".")[:_LONGEST_DETAIL]
