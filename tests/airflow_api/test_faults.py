"""What Airflow's API does when something is wrong is one sentence, and nothing is done twice."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import pytest

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.errors import (
    AirflowRefused,
    AirflowUnreachable,
    Conflict,
    LoginFailed,
    NoRights,
    NotThere,
)
from airflow_chronon.airflow_api.login import Login
from airflow_chronon.airflow_api.records import BackfillRequest, Reprocess
from tests.support.stub_server import StubServer

DAGS = "/api/v2/dags"
DAG = {"dag_id": "x", "is_paused": False, "is_stale": True, "tags": [{"name": "chronon"}], "bundle_name": "b"}
RUN = {"dag_id": "x", "dag_run_id": "r", "run_type": "manual", "state": "queued", "run_after": "2026-06-01T00:00:00Z"}


def api(stub: StubServer, **login: Any) -> AirflowRest:
    return AirflowRest(Login(stub.url, **(login or {"user": "admin", "password": "secret"})))


def page(*items: Any, key: str = "dags") -> tuple[int, Any]:
    return 200, {key: list(items), "total_entries": len(items)}


def test_the_password_buys_a_token_that_later_calls_carry(stub: StubServer) -> None:
    stub.reply(DAGS, page(DAG))
    server = api(stub)
    [dag] = server.dags(tags=["chronon"])
    assert (dag.dag_id, dag.is_stale, dag.bundle, dag.tags) == ("x", True, "b", frozenset({"chronon"}))
    server.dags()
    assert stub.seen[0][3] == {"username": "admin", "password": "secret"}
    assert [each[2] for each in stub.seen[1:]] == ["Bearer first"] * 2
    assert stub.asked("/auth/token") == 1


def test_a_token_of_ones_own_needs_no_login(stub: StubServer) -> None:
    stub.reply(DAGS, page())
    api(stub, token="mine").dags()
    assert [(each[1].partition("?")[0], each[2]) for each in stub.seen] == [(DAGS, "Bearer mine")]


def test_every_page_is_fetched(stub: StubServer) -> None:
    stub.reply(DAGS, page(*[{**DAG, "dag_id": f"d{n}"} for n in range(100)]), page({**DAG, "dag_id": "last"}))
    found = api(stub).dags()
    assert len(found) == 101
    assert [each[1].partition("offset=")[2].partition("&")[0] for each in stub.seen[1:]] == ["0", "100"]


@pytest.mark.parametrize("kind", ["dag_runs", "task_instances"])
def test_runs_and_tasks_that_end_between_two_pages_hide_no_other(
    stub: StubServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:  # C28
    active = [f"r{n:03}" for n in range(150)]

    def next_reply(path: str) -> tuple[int, Any]:
        """As Airflow's two ways of paging do; the first ten end after the first page."""
        asked = parse_qs(path.partition("?")[2], keep_blank_values=True)
        by_offset = active[int(asked["offset"][0]) :]
        rest = [each for each in active if each > asked["cursor"][0]] if "cursor" in asked else by_offset
        page, more = rest[:100], len(rest) > 100
        del active[:10]
        items = [{**RUN, "dag_run_id": each, "task_id": "t"} for each in page]
        return 200, {kind: items, "next_cursor": page[-1] if more and "cursor" in asked else None}

    server = api(stub, token="mine")
    monkeypatch.setattr(stub, "next_reply", next_reply)
    listed = server.runs("x", states=["running"]) if kind == "dag_runs" else server.tasks("x", states=["running"])
    assert [each.run_id for each in listed] == [f"r{n:03}" for n in range(150)]


def test_dags_and_tasks_are_found_by_a_part_of_the_dag_id(stub: StubServer) -> None:  # C28
    task = {"dag_id": "try--x.t_s", "dag_run_id": "r", "task_id": "backfill", "state": "running"}
    stub.reply(f"{DAGS}/~/dagRuns/~/taskInstances", page(task, key="task_instances"))
    stub.reply(DAGS, page(DAG))
    server = api(stub, token="mine")
    [found] = server.tasks(task_id="backfill", states=("running",), dags_like="t_s")
    assert (found.dag_id, found.run_id) == ("try--x.t_s", "r")
    server.dags(like="t_s")
    asked = [parse_qs(each[1].partition("?")[2]) for each in stub.seen]
    assert [each["dag_id_pattern"] for each in asked] == [["t_s"], ["t_s"]]
    assert (asked[0]["task_id"], asked[0]["state"]) == (["backfill"], ["running"])


def test_a_server_that_stumbles_is_asked_again_and_nobody_notices(stub: StubServer) -> None:  # SQLite is locked
    stub.reply(DAGS, (500, "Internal Server Error"), (503, {"detail": "database is locked"}), page(DAG))
    assert len(api(stub).dags()) == 1
    assert stub.asked(DAGS) == 3


def test_a_server_that_goes_on_failing_is_one_sentence_with_its_reason(stub: StubServer) -> None:
    stub.reply(DAGS, (503, {"detail": {"reason": "database is locked"}}))
    with pytest.raises(
        AirflowUnreachable, match=r"^Airflow at http://127\.0\.0\.1:\d+ answers 503: database is locked"
    ):
        api(stub).dags()


def test_a_trigger_whose_answer_was_lost_is_tried_again_under_the_same_name_and_makes_one_run(
    stub: StubServer,
) -> None:
    stub.reply(f"{DAGS}/x/dagRuns", (500, "oops"), (409, {"detail": "it exists"}))
    server = api(stub)
    with pytest.raises(NotThere):  # the stub knows no run; what matters is which one was looked for
        server.trigger("x", partition_key="2026-06-01")
    first, second = [each[3]["dag_run_id"] for each in stub.seen if each[1] == f"{DAGS}/x/dagRuns"]
    assert first == second
    assert first.startswith("manual__2026-06-01__")
    assert stub.seen[-1][1] == f"{DAGS}/x/dagRuns/{first}"


def test_an_expired_token_is_renewed_once(stub: StubServer) -> None:
    stub.reply("/auth/token", (201, {"access_token": "first"}), (201, {"access_token": "second"}))
    stub.reply(DAGS, (401, {"detail": "Token expired"}), page(DAG))
    assert len(api(stub).dags()) == 1
    assert [each[2] for each in stub.seen if each[1].startswith(DAGS)] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("status", "detail", "kind", "said"),
    [
        (401, {"detail": "Invalid credentials"}, LoginFailed, "logging in as 'admin'.*Invalid credentials.*password"),
        (403, {"detail": "Forbidden"}, NoRights, "the user 'admin' lacks the right to log in: Forbidden"),
    ],
)
def test_a_login_that_fails_names_the_user_and_never_the_password(
    stub: StubServer, status: int, detail: Any, kind: type[AirflowRefused], said: str
) -> None:
    stub.reply("/auth/token", (status, detail))
    with pytest.raises(kind, match=f"(?s){said}") as caught:
        api(stub).dags()
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, NoRights), (404, NotThere), (409, Conflict), (400, AirflowRefused), (422, AirflowRefused)],
)
def test_a_refusal_has_its_kind_its_status_and_the_servers_own_sentence(
    stub: StubServer, status: int, kind: type[AirflowRefused]
) -> None:
    detail = [{"msg": "it may not be", "loc": ["body"]}] if status == 422 else "it may not be"
    stub.reply(f"{DAGS}/x", (status, {"detail": detail}))
    with pytest.raises(kind) as caught:
        api(stub).delete_dag("x")
    assert caught.value.status == status
    assert str(caught.value).startswith("deleting x: ") and f"it may not be ({status})" in str(caught.value)


def test_an_unknown_dag_is_none_and_no_error(stub: StubServer) -> None:
    assert api(stub).dag("nope") is None


def test_something_else_than_airflow_is_distinguished(stub: StubServer) -> None:
    stub.reply(DAGS, (200, "<html>welcome</html>"))
    with pytest.raises(AirflowUnreachable, match="something else than JSON"):
        api(stub).dags()


def test_nothing_that_listens_is_one_sentence(stub: StubServer) -> None:
    with pytest.raises(
        AirflowUnreachable, match=r"^Airflow at http://127\.0\.0\.1:9 does not answer.*address right\?$"
    ):
        AirflowRest(Login("http://127.0.0.1:9", "admin", "secret")).dags()


def test_an_answer_that_a_newer_server_widened_is_still_read(stub: StubServer) -> None:
    stub.reply(f"{DAGS}/x/dagRuns/r", (200, {**RUN, "run_type": "a_new_kind", "state": "a_new_state", "more": 1}))
    run = api(stub).run("x", "r")
    assert (run.run_type, run.state, run.raw["more"]) == ("a_new_kind", "a_new_state", 1)


def test_a_backfill_says_dates_and_behaviour_as_airflow_wants_them(stub: StubServer) -> None:
    answer = {
        "id": 7,
        "dag_id": "x",
        "from_date": "2026-06-01T00:00:00Z",
        "to_date": "2026-06-02T00:00:00Z",
        "is_paused": False,
    }
    stub.reply("/api/v2/backfills", (200, answer))
    record = api(stub).create_backfill(
        BackfillRequest("x", 1780272000, 1780358400, Reprocess.FAILED, 3, backwards=True)
    )
    assert (record.id, record.first, record.completed) == (7, 1780272000, None)
    body = stub.seen[-1][3]
    assert body["from_date"].startswith("2026-06-01T00:00:00")
    assert body["to_date"].startswith("2026-06-02T00:00:00")
    assert (body["reprocess_behavior"], body["max_active_runs"], body["run_backwards"]) == ("failed", 3, True)


@pytest.mark.parametrize("answer", [201, 409])
def test_a_file_is_parsed_by_the_token_of_one_of_its_dags(stub: StubServer, answer: int) -> None:
    """Airflow answers 409 where it was asked already and has not come to it."""
    stub.reply("/api/v2/dags/x", (200, {**DAG, "file_token": "abc.d-e"}))
    stub.reply("/api/v2/parseDagFile/abc.d-e", (answer, {"detail": "Unique constraint violation"}))
    api(stub).parse_soon("x")
    assert stub.seen[-1][:2] == ("PUT", "/api/v2/parseDagFile/abc.d-e")


def test_settings_that_the_server_does_not_show_are_none(stub: StubServer) -> None:
    assert api(stub).config_value("scheduler", "max_dagruns_per_loop_to_schedule") is None
    path = "/api/v2/config/section/scheduler/option/max_dagruns_per_loop_to_schedule"
    stub.reply(path, (200, {"sections": [{"name": "scheduler", "options": [{"key": "x", "value": "500"}]}]}))
    assert api(stub).config_value("scheduler", "max_dagruns_per_loop_to_schedule") == "500"


@pytest.mark.parametrize(
    "answer", [{}, None, [1, 2], {"dags": None}, {"dags": [5]}, {"dags": [{"dag_id": 5}]}, "[" * 5000]
)
def test_an_answer_of_another_shape_is_one_sentence(stub: StubServer, answer: Any) -> None:
    stub.reply(DAGS, (200, answer))
    with pytest.raises(AirflowUnreachable, match="Is it an Airflow 3"):
        api(stub).dags()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"dags": 5}, "without a list under 'dags'"),
        ({"dags": [{**DAG, "dag_id": 5}]}, "without a text under 'dag_id'"),
        ({"dags": [{"dag_id": "x"}]}, "without 'is_paused'"),
    ],
)
def test_what_is_missing_from_an_answer_is_named(stub: StubServer, answer: Any, said: str) -> None:
    stub.reply(DAGS, (200, answer))
    with pytest.raises(AirflowUnreachable, match=f"answers {said} .listing the DAGs."):
        api(stub).dags()


def test_a_time_that_cannot_be_read_is_named(stub: StubServer) -> None:
    stub.reply("/api/v2/dags/x/dagRuns/r", (200, {**RUN, "run_after": "soon"}))
    with pytest.raises(AirflowUnreachable, match="answers without a time under 'run_after'"):
        api(stub).run("x", "r")


def test_a_mistake_of_our_own_is_not_blamed_on_the_server(stub: StubServer) -> None:
    with pytest.raises(AttributeError):
        api(stub).create_backfill(None)  # type: ignore[arg-type]


def test_a_token_that_no_header_can_carry_is_no_token(stub: StubServer) -> None:
    stub.reply("/auth/token", (201, {"access_token": "SECRET\u2603"}))
    with pytest.raises(AirflowUnreachable, match="gives no token") as refused:
        api(stub).dags()
    assert "SECRET" not in str(refused.value)
