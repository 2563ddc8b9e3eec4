"""Connections to Airflow's API, however they are written."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from airflow_chronon.airflow_api.errors import NotConfigured
from airflow_chronon.airflow_api.login import ENVIRONMENT_VARIABLE, Login, find_login, login_of_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("chronon-airflow://admin:s%40cret@127.0.0.1:8080", Login("http://127.0.0.1:8080", "admin", "s@cret")),
        ("chronon_airflow://a:b@airflow.example/team/?scheme=https", Login("https://airflow.example/team", "a", "b")),
        ("chronon-airflow://airflow.example:80/?token=t0k", Login("http://airflow.example:80", token="t0k")),
        ("https://a:b@airflow.example", Login("https://airflow.example", "a", "b")),
        (
            '{"conn_type": "chronon_airflow", "host": "h", "port": 8080, "login": "a", "password": "b"}',
            Login("http://h:8080", "a", "b"),
        ),
        (
            '{"host": "https://h.example/below", "extra": "{\\"token\\": \\"t\\"}"}',
            Login("https://h.example/below", token="t"),
        ),
        ('{"host": "http://a:b@h.example:1", "port": 2}', Login("http://h.example:1", "a", "b")),
        ('{"host": "h", "extra": {"token": "from a file\\n"}}', Login("http://h", token="from a file")),
    ],
)
def test_a_connection_is_read_as_airflow_writes_it(text: str, expected: Login) -> None:
    assert login_of_text(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgres://a:b@h", "the type 'postgres'"),
        ("chronon-airflow://", "does not name a host"),
        ("chronon-airflow://admin@h", "neither a token nor a user with a password"),
        ("chronon-airflow://a:b@h:port", "port"),
        ("{not json", "not a JSON object"),
    ],
)
def test_a_connection_that_says_too_little_is_one_sentence_without_its_password(text: str, said: str) -> None:
    with pytest.raises(NotConfigured, match=said) as caught:
        login_of_text(text)
    assert ":b@" not in str(caught.value)


def test_the_address_of_the_command_line_wins_and_takes_the_environments_password() -> None:
    environ = {ENVIRONMENT_VARIABLE: "chronon-airflow://a:b@one:1"}
    assert find_login(environ) == Login("http://one:1", "a", "b")
    assert find_login(environ, address="http://two:2") == Login("http://two:2", "a", "b")
    assert find_login(environ, address="http://c:d@two:2") == Login("http://two:2", "c", "d")
    assert find_login({}) is None


def test_who_edits_has_a_login_of_its_own_where_there_is_one() -> None:  # S10
    environ = {
        ENVIRONMENT_VARIABLE: "chronon-airflow://reader:b@one:1",
        "AIRFLOW_CONN_CHRONON_RECONCILER": "chronon-airflow://editor:d@one:1",
    }
    assert find_login(environ) == Login("http://one:1", "editor", "d")


def test_a_login_does_not_show_its_password() -> None:
    assert "secret" not in repr(Login("http://h", "admin", "secret", "secret-token"))


#: Where these signs are not encoded a password ends before it does: host and path would be pieces of it.
NOT_ENCODED = (
    "p/SECRET",
    "1/SECRET",
    "p?SECRET",
    "1?SECRET",
    "1#SECRET",
    "p/SECRET@w",
    "1/SECRET/2",
    "p@w/SECRET",
    "[SECRET",
)


@pytest.mark.parametrize(
    "text",
    [
        "a:SECRET@h:8080",
        "http://a:SECRET@[abc",
        "chronon-airflow://a:SECRET@h:port",
        '{"host": "http://a:SECRET@[abc"}',
        '{"host": "h", "port": "²", "login": "a", "password": "SECRET"}',
        '{"host": "h", "extra": {"token": "SECRET\\u2603"}}',
        *(f"http://a:{password}@h:8080" for password in NOT_ENCODED),
        *(f"chronon-airflow://a:{password}@h" for password in NOT_ENCODED),
        *(f'{{"host": "http://a:{password}@h"}}' for password in NOT_ENCODED),
        "http://SECRET\u2100@h",  # its error quotes the address
        "a:SECRET://x@h",
    ],
)
def test_no_message_shows_a_password(text: str) -> None:
    for attempt in (lambda: login_of_text(text), lambda: find_login({}, address=text)):
        with pytest.raises(NotConfigured) as refused:
            attempt()
        assert "SECRET" not in str(refused.value) and refused.value.fault.remedy


@pytest.mark.parametrize("password", ["p/w", "p@w", "p:w", "p%w", "p?w#x", "p%2Fw", "\u00e9 [x]"])
def test_a_password_of_any_signs_is_taken_once_it_is_encoded_and_never_shown(password: str) -> None:  # S4
    text = f"http://a:{quote(password, safe='')}@h:8080"
    for login in (login_of_text(text), find_login({}, address=text)):
        assert login is not None and (login.url, login.password) == ("http://h:8080", password)
        assert password not in repr(login) and quote(password, safe="") not in repr(login)


def test_an_address_with_a_password_in_it_is_no_login_of_its_own() -> None:  # S4
    with pytest.raises(NotConfigured) as refused:
        Login("http://a:SECRET@h", "a", "SECRET")
    assert "SECRET" not in str(refused.value)
