"""What a user lacks is one sentence: the right, the user, the connection that names the user, and what to do (S10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.errors import NoRights
from airflow_chronon.airflow_api.login import find_login
from airflow_chronon.airflow_api.records import BackfillRequest, Reprocess
from tests.support.stub_server import StubServer

READER = "AIRFLOW_CONN_CHRONON_AIRFLOW"
EDITOR = "AIRFLOW_CONN_CHRONON_RECONCILER"
BACKFILL = BackfillRequest("x", 1780272000, 1780358400, Reprocess.NONE, 1)


def refusal(stub: StubServer, call: Callable[[AirflowRest], object], *, path: str, connection: str = EDITOR) -> str:
    """What is said when Airflow answers 403 to one call of the user ``reader`` of a connection."""
    stub.reply(f"/api/v2/{path}", (403, {"detail": "Forbidden"}))
    login = find_login({connection: f"chronon-airflow://reader:secret@{stub.url.removeprefix('http://')}"})
    assert login is not None
    with pytest.raises(NoRights) as refused:
        call(AirflowRest(login))
    assert "\n" not in str(refused.value) and "secret" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("call", "path", "right"),
    [
        (lambda server: server.dags(), "dags", "read DAGs"),
        (lambda server: server.set_paused("x", paused=False), "dags/x", "edit DAGs"),
        (lambda server: server.delete_dag("x"), "dags/x", "delete DAGs"),
        (lambda server: server.parse_soon("x"), "dags/x", "read DAGs"),
        (lambda server: server.runs("x"), "dags/x/dagRuns", "read DAG runs"),
        (lambda server: server.trigger("x"), "dags/x/dagRuns", "create DAG runs"),
        (lambda server: server.patch_run("x", "r", state="failed"), "dags/x/dagRuns/r", "edit DAG runs"),
        (lambda server: server.tasks("x", "r"), "dags/x/dagRuns/r/taskInstances", "read task instances"),
        (lambda server: server.create_backfill(BACKFILL), "backfills", "create DAG runs"),
        (lambda server: server.plan_backfill(BACKFILL), "backfills/dry_run", "create DAG runs"),
        (lambda server: server.import_errors(), "importErrors", "read import errors"),
        (lambda server: server.asset_states("chronon://a/b"), "assets", "read assets"),
    ],
)
def test_the_right_that_lacks_is_named_with_the_user_and_the_connection(
    stub: StubServer, call: Callable[[AirflowRest], object], path: str, right: str
) -> None:  # S10
    said = refusal(stub, call, path=path)
    assert f"the user 'reader' of the connection chronon_reconciler lacks the right to {right}" in said
    assert "Forbidden (403)" in said and "Give it to this user, or use another one." in said


def test_an_edit_by_the_connection_of_tasks_names_the_one_that_should_edit(stub: StubServer) -> None:  # S10
    said = refusal(stub, lambda server: server.delete_dag("x"), path="dags/x", connection=READER)
    assert "the user 'reader' of the connection chronon_airflow lacks the right to delete DAGs" in said
    assert "Make a connection chronon_reconciler with a user that has it" in said
    said = refusal(stub, lambda server: server.dags(), path="dags", connection=READER)
    assert "chronon_reconciler" not in said  # whoever only reads needs no other


def test_a_user_of_the_command_line_stands_alone(stub: StubServer) -> None:  # S10
    stub.reply("/api/v2/dags/x", (403, {"detail": "Forbidden"}))
    login = find_login({}, address=stub.url.replace("//", "//reader:secret@"))
    assert login is not None
    with pytest.raises(NoRights, match="the user 'reader' lacks the right to delete DAGs"):
        AirflowRest(login).delete_dag("x")


def test_a_user_who_may_not_log_in_is_told_so(stub: StubServer) -> None:  # S10
    stub.reply("/auth/token", (403, {"detail": "Forbidden"}))
    said = refusal(stub, lambda server: server.dags(), path="dags")
    assert "the user 'reader' of the connection chronon_reconciler lacks the right to log in" in said
