"""Answers are bounded in pages, bytes and seconds, whatever a server sends (S8)."""

from __future__ import annotations

import gzip
import threading
from itertools import count
from typing import Any

import pytest

from airflow_chronon.airflow_api import bounded, client, transport
from airflow_chronon.airflow_api.answers import Answer
from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.login import Login
from airflow_chronon.airflow_api.transport import _place
from airflow_chronon.core.calendar.instants import parse_instant
from tests.support.misbehaving_server import Send, misbehaving_server
from tests.support.stub_server import StubServer, stub_server

DAGS = "/api/v2/dags"
DAG = {"dag_id": "x", "is_paused": False, "is_stale": True, "tags": []}
RUN = {"dag_id": "x", "dag_run_id": "r", "run_type": "manual", "state": "queued", "run_after": "2026-06-01T00:00:00Z"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def api(url: str) -> AirflowRest:
    return AirflowRest(Login(url, token="mine"))


def refused(server: AirflowRest, list_them: str = "dags") -> str:
    """The one sentence of a listing that is given up."""
    with pytest.raises(AirflowUnreachable) as caught:
        getattr(server, list_them)()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def drip(send: Send, over: threading.Event, *, first: bytes) -> None:
    send(first)
    while not over.wait(0.02):
        send(b" ")


class TestSeconds:
    @pytest.fixture(autouse=True)
    def _impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bounded, "ANSWER_SECONDS", 0.5)

    @pytest.mark.parametrize(
        "first",
        [
            pytest.param(HEAD + b"Content-Length: 100000\r\n\r\n", id="a body"),
            pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n186A0\r\n", id="a chunk"),
            pytest.param(HEAD + b"X-Long: ", id="a header"),
        ],
    )
    def test_an_answer_that_drips_is_given_up(self, first: bytes) -> None:
        with misbehaving_server(lambda send, over: drip(send, over, first=first)) as url:
            assert "does not end its answer within 0.5 seconds" in refused(api(url))

    def test_a_listing_that_takes_too_long_is_given_up(self, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "LISTING_SECONDS", -1)
        numbers = count()
        monkeypatch.setattr(stub, "next_reply", lambda path: (200, page(numbers, more=True)))
        assert "has given 100 items in -1 seconds, and has more (listing the runs of all DAGs)" in refused(
            api(stub.url), "runs"
        )


def page(numbers: Any, *, more: bool) -> dict[str, Any]:
    """A page of a hundred runs that nobody has seen before."""
    items = [{**RUN, "dag_run_id": f"r{next(numbers)}"} for _ in range(100)]
    return {"dag_runs": items, "next_cursor": items[-1]["dag_run_id"] if more else None}


class TestBytes:
    def test_more_than_the_bound_is_not_taken_into_memory(self) -> None:
        sent = []

        def flood(send: Send, over: threading.Event) -> None:
            send(HEAD + b"Content-Length: 314572800\r\n\r\n")
            for _ in range(300):
                send(b"x" * 2**20)
                sent.append(1)

        with misbehaving_server(flood) as url:
            assert "answers with more than 32 MB" in refused(api(url))
        assert len(sent) < 100

    def test_what_is_packed_counts_as_unpacked(self) -> None:
        packed = gzip.compress(b" " * 300 * 2**20, 9)
        head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
        with misbehaving_server(lambda send, over: send(head + packed)) as url:
            assert "answers with more than 32 MB" in refused(api(url))

    @pytest.mark.parametrize("encoding", [b"br", b"zstd", b"gzip, gzip"])
    def test_packed_otherwise_than_asked_is_refused(self, encoding: bytes) -> None:
        head = HEAD + b"Content-Encoding: " + encoding + b"\r\nContent-Length: 2\r\n\r\n{}"
        with misbehaving_server(lambda send, over: send(head)) as url:
            assert f"answers in the encoding '{encoding.decode()}', which was not asked for" in refused(api(url))

    def test_all_pages_together_are_bounded(self, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "LISTING_BYTES", 2**15)
        numbers = count()
        monkeypatch.setattr(stub, "next_reply", lambda path: (200, page(numbers, more=True)))
        assert "and has more (listing the runs of all DAGs)" in refused(api(stub.url), "runs")

    def test_a_reason_of_megabytes_is_cut(self, stub: StubServer) -> None:
        stub.reply(DAGS, (503, {"detail": "locked " * 2**20}))
        assert len(refused(api(stub.url))) < 800


class TestPages:
    def test_a_list_without_end_is_given_up(self, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "MOST_PAGES", 5)
        numbers = count()
        monkeypatch.setattr(stub, "next_reply", lambda path: (200, page(numbers, more=True)))
        assert "has given 500 items on 5 pages, and has more" in refused(api(stub.url), "runs")
        assert len(stub.seen) == 5

    def test_the_same_page_again_and_again_is_given_up_at_once(self, stub: StubServer) -> None:
        stub.reply(DAGS, (200, {"dags": [DAG] * 100, "total_entries": 10**9}))
        assert "says that there is more after 200 items, and gives no other" in refused(api(stub.url))
        assert stub.asked(DAGS) == 2

    def test_an_empty_page_with_more_behind_it_is_given_up_at_once(self, stub: StubServer) -> None:
        stub.reply("/api/v2/dags/~/dagRuns", (200, {"dag_runs": [], "next_cursor": "on"}))
        assert "says that there is more after 0 items" in refused(api(stub.url), "runs")


class TestBackOff:
    @pytest.fixture
    def pauses(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        found: list[float] = []
        monkeypatch.setattr(transport.Transport.__init__, "__kwdefaults__", {"pause": found.append})
        return found

    @pytest.mark.parametrize("status", [429, 503])
    def test_a_server_that_puts_off_is_asked_again_later_and_later(
        self, stub: StubServer, pauses: list[float], status: int
    ) -> None:
        answer = (200, {"dags": [DAG], "total_entries": 1})
        stub.reply(DAGS, *[(status, {"detail": "later"})] * 3, answer)
        assert len(api(stub.url).dags()) == 1
        assert pauses == [0.2, 0.4, 0.8]

    def test_one_that_goes_on_is_one_sentence(self, stub: StubServer, pauses: list[float]) -> None:
        stub.reply(DAGS, (429, {"detail": "too many requests"}))
        assert "answers 429: too many requests" in refused(api(stub.url))
        assert len(pauses) == transport.TRIES - 1

    @pytest.mark.parametrize(
        ("said", "longest"),
        [
            ("7", 7.0),
            ("0", 0.2),
            ("86400", 30.0),
            ("Wed, 21 Oct 2099 07:28:00 GMT", 30.0),
            ("Wed, 21 Oct 2015 07:28:00 GMT", 0.2),
            ("-5", 0.2),
            ("9" * 5000, 30.0),
            ("soon", 0.2),
        ],
    )
    def test_it_may_say_when_within_a_bound(
        self, stub: StubServer, pauses: list[float], said: str, longest: float
    ) -> None:
        stub.headers = {"Retry-After": said}
        stub.reply(DAGS, (429, {"detail": "later"}), (200, {"dags": [], "total_entries": 0}))
        api(stub.url).dags()
        assert pauses == [longest]


@pytest.mark.parametrize("path", [DAGS, "/auth/token"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_named_and_carries_no_credentials_elsewhere(stub: StubServer, path: str, status: int) -> None:
    with stub_server() as elsewhere:
        stub.reply(DAGS, (200, {"dags": [], "total_entries": 0}))
        stub.headers = {"Location": f"{elsewhere.url.replace('//', '//u:SECRET@')}/api?token=SECRET"}
        stub.reply(path, (status, ""))
        login = Login(stub.url, "admin", "secret") if path == "/auth/token" else Login(stub.url, token="mine")
        said = refused(AirflowRest(login))
        assert f"answers {status}: it leads on to {elsewhere.url}/api (" in said
        assert "SECRET" not in said and elsewhere.seen == []


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-06-01T02:00:00+02:00", "2026-06-01T00:00:00Z"),
        ("2026-06-01T00:00:00", "2026-06-01T00:00:00Z"),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("2026-06-30T23:59:60Z", None),
    ],
)
def test_times_are_utc_within_the_years_that_there_are(text: str, instant: str | None) -> None:
    answer = Answer({"at": text}, url="http://u", what="a run")
    if instant is None:
        for read in (answer.instant, answer.seconds_or_none):
            with pytest.raises(AirflowUnreachable, match="without a time under 'at'"):
                read("at")
        return
    assert answer.instant("at") == answer.seconds_or_none("at") == parse_instant(instant)


def test_a_redirect_shows_no_password_whatever_is_in_it() -> None:  # S4
    assert "hush" not in _place("http://me:hu/sh-hush@elsewhere/x") and "elsewhere" in _place(
        "http://me:a/b@elsewhere/x"
    )
