"""Who may ask the routes of the page what; with FAB's own auth manager in ``tests/integration/page`` (S10).

The auth manager here is a stand-in that knows two people; the dependencies that ask it are Airflow's own.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.api_fastapi.common.db.common import _get_session
from airflow.api_fastapi.core_api import security
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from jwt import InvalidTokenError

from airflow_chronon.web import routes

MINE, THEIRS = "group_by.mine__1", "group_by.theirs__1"
QUERY = {"from": 0, "to": 86_400, "start": 0}


class TwoPeople:
    """``ada`` may read everything, ``olga`` her own DAG."""

    async def get_user_from_token(self, token: str) -> Any:
        if token not in ("ada", "olga"):
            raise InvalidTokenError("nobody")
        return SimpleNamespace(name=token, get_name=lambda: token)

    def get_authorized_dag_ids(self, *, user: Any, method: str) -> set[str]:
        return {MINE, THEIRS} if user.name == "ada" else {MINE}

    def is_authorized_dag(self, *, method: str, details: Any, user: Any, **more: Any) -> bool:
        return user.name == "ada" or details.id == MINE


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> TestClient:
    people = TwoPeople()
    for module in (routes, security):
        monkeypatch.setattr(module, "get_auth_manager", lambda: people)
    monkeypatch.setattr(security.DagModel, "get_team_name", lambda dag_id: None)  # there is no database
    monkeypatch.setattr(routes, "read_snapshots", lambda session, allowed: [])
    rows = [{"dag_id": dag_id, "seen": None} for dag_id in (MINE, THEIRS)]
    monkeypatch.setattr(routes, "_ROWS", SimpleNamespace(read=lambda session, days, now: (now, rows)))
    app = routes.build_app()
    app.dependency_overrides[_get_session] = lambda: None
    return TestClient(app)


def paths(dag_id: str) -> list[str]:
    found = [each.path for each in routes.build_app().routes if isinstance(each, APIRoute)]
    assert len(found) == 3
    return [path.format(dag_id=dag_id) for path in found]


def ask(client: TestClient, path: str, person: str | None = None) -> Any:
    headers = {} if person is None else {"Authorization": f"Bearer {person}"}
    return client.get(path, params=QUERY, headers=headers)


@pytest.mark.parametrize("person", [None, "mallory"])
def test_every_route_needs_a_login(client: TestClient, person: str | None) -> None:
    for path in paths(MINE):
        answer = ask(client, path, person)
        assert answer.status_code in (401, 403) and MINE not in answer.text, (path, answer.text)
        assert person is not None or answer.status_code == 401


def test_the_dag_of_another_team_is_refused_and_the_list_leaves_it_out(client: TestClient) -> None:
    for path in paths(THEIRS)[1:]:
        assert ask(client, path, "olga").status_code == 403
        assert ask(client, path, "ada").status_code == 404  # no survey has seen it: she may know
    for path in paths(MINE)[1:]:
        assert ask(client, path, "olga").status_code == 404
    for person, seen in (("olga", [MINE]), ("ada", [MINE, THEIRS])):
        assert [row["dag_id"] for row in ask(client, "/confs.json", person).json()["confs"]] == seen
