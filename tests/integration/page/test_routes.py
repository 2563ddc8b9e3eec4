"""Who may ask the routes of the page what: nobody without a login, and each their own DAGs, by the FAB auth manager (S10)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from airflow_api import ApiError
from fastapi.routing import APIRoute
from starlette.routing import Mount

from airflow_chronon.web.routes import build_app
from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import AirflowClient
from tests.support.integration.fab_server import FabServer, run_fab_server
from tests.support.integration.page_fill import FOREIGN, ORDERS, RANK, REACH
from tests.support.integration.page_server import PageAirflow

pytestmark = pytest.mark.soak

OF_CHECKOUT = [("can_read", f"DAG:{ORDERS}"), ("can_read", "DAG Runs"), ("can_read", "Website")]
VALUES = {"dag_id": ORDERS}
QUERY = {"from": 0, "to": 86_400, "start": 0, "days": 3}
STATIC = ROOT / "airflow_chronon" / "web" / "static"


@pytest.fixture(scope="module")
def fab(airflow: PageAirflow) -> Iterator[FabServer]:
    people = {"olga": "of checkout", "pat": "Public", "vic": "Viewer", "ada": "Admin"}
    with run_fab_server(airflow, roles={"of checkout": OF_CHECKOUT}, people=people) as fab:
        yield fab


def routes() -> list[APIRoute]:
    return [route for route in build_app().routes if isinstance(route, APIRoute)]


def ask(fab: FabServer, path: str, *, person: str | None) -> httpx.Response:
    headers = {}
    if person is not None:
        login = {"username": person, "password": fab.passwords[person]}
        answer = httpx.post(f"{fab.url}/auth/token", json=login, timeout=120, trust_env=False)
        headers["Authorization"] = f"Bearer {answer.raise_for_status().json()['access_token']}"
    return httpx.get(f"{fab.url}/chronon{path}", params=QUERY, headers=headers, timeout=120, trust_env=False)


def test_no_route_changes_anything_and_all_are_known() -> None:
    app = build_app()
    others = [route for route in app.routes if not isinstance(route, APIRoute)]
    assert [route.path for route in others if isinstance(route, Mount)] == ["/static"]
    assert len(others) == 1
    assert {route.path for route in routes()} == {
        "/confs.json",
        "/dags/{dag_id}/partitions.json",
        "/dags/{dag_id}/partition.json",
    }
    assert all(route.methods == {"GET"} for route in routes())


def test_every_route_needs_a_login(fab: FabServer) -> None:
    for route in routes():
        answer = ask(fab, route.path.format(**VALUES), person=None)
        assert (answer.status_code, route.path) == (401, route.path)
        assert "checkout" not in answer.text


@pytest.mark.parametrize(
    ("person", "seen"),
    [("olga", [ORDERS]), ("pat", []), ("vic", [ORDERS, REACH, RANK]), ("ada", [ORDERS, REACH, RANK])],
)
def test_the_list_holds_what_a_person_may_read(fab: FabServer, person: str, seen: list[str]) -> None:
    answer = ask(fab, "/confs.json", person=person)
    assert answer.status_code == 200, answer.text
    assert [row["dag_id"] for row in answer.json()["confs"]] == seen


@pytest.mark.parametrize("route", ["partitions", "partition"])
def test_the_dag_of_another_team_is_refused(fab: FabServer, route: str) -> None:
    assert ask(fab, f"/dags/{REACH}/{route}.json", person="olga").status_code == 403
    own = ask(fab, f"/dags/{ORDERS}/{route}.json", person="olga")
    assert own.status_code == 200, own.text
    assert REACH not in own.text and "growth" not in own.text  # which reads it
    assert ask(fab, f"/dags/{ORDERS}/{route}.json", person="pat").status_code == 403
    assert ask(fab, f"/dags/{FOREIGN}/{route}.json", person="vic").status_code == 404


def test_the_page_itself_needs_the_right_to_see_plugins(fab: FabServer) -> None:
    def sees(person: str) -> bool:
        with AirflowClient(url=fab.url, user=person, password=fab.passwords[person]) as client:
            return "chronon" in str(client.request("GET", "/plugins"))

    assert sees("ada")
    for person in ("olga", "vic"):
        with pytest.raises(ApiError) as refused:
            sees(person)
        assert refused.value.status == 403


def test_what_is_open_is_the_modules_and_holds_nothing_secret(fab: FabServer) -> None:
    modules = {file.name: file for file in STATIC.iterdir()}
    assert {name.rpartition(".")[2] for name in modules} == {"js", "svg"}
    for name, file in modules.items():
        answer = httpx.get(f"{fab.url}/chronon/static/{name}", timeout=120, trust_env=False)
        assert (answer.status_code, answer.content) == (200, file.read_bytes())
        assert "javascript" in answer.headers["content-type"] or name.endswith("svg")
        assert not re.search(r"password|token|secret|https?://(?!www\.w3\.org)", file.read_text(), re.IGNORECASE), name
    assert httpx.get(f"{fab.url}/chronon/static/../routes.py", timeout=120, trust_env=False).status_code == 404
