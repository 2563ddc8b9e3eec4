"""What the accounts of the two connections need at least: a viewer for tasks and waits, an editor for the reconciler (S10)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from airflow_api import ApiError

from tests.support.confs import dependency
from tests.support.integration.accounts import connection_as, password_of
from tests.support.integration.airflow_client import AirflowClient, wait_until
from tests.support.integration.replay_lab import Lab, hour, unscheduled

pytestmark = pytest.mark.soak


def reconcile(lab: Lab, *, reconciler: str | None) -> subprocess.CompletedProcess[str]:
    """``airflow-chronon reconcile`` where ``chronon_airflow`` is the reader's and ``chronon_reconciler`` this user's."""
    environment = dict(lab.airflow.server.environment)
    if reconciler is not None:
        environment["AIRFLOW_CONN_CHRONON_RECONCILER"] = connection_as(lab.airflow, reconciler)
    command = [sys.executable, "-m", "airflow_chronon.cli.main", "reconcile", "--root", str(lab.airflow.conf_root)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    lab.airflow.parse_soon()
    return done


def test_the_reader_may_change_nothing(lab: Lab) -> None:  # S10
    dag_id = lab.deploy(unscheduled("t.accounts.untouched__1", "1h"))
    lab.wait_for(dag_id)
    password = password_of(lab.airflow, "reader")
    with AirflowClient(url=lab.airflow.server.url, user="reader", password=password) as reader:
        assert reader.dag(dag_id)["dag_id"] == dag_id
        for forbidden in (lambda: reader.trigger(dag_id), lambda: reader.pause(dag_id)):
            with pytest.raises(ApiError) as refused:
                forbidden()
            assert refused.value.status == 403


def test_runs_take_their_turn_and_waits_end_with_no_more_than_the_readers_rights(lab: Lab) -> None:  # S10, C28
    name, late = "t.accounts.turns__1", "vendor.lands_late"
    dag_id = lab.deploy(unscheduled(name, "1h", dependencies=[dependency(late, interval="1h")]))
    lab.wait_for(dag_id)
    assert lab.airflow.api.request("GET", f"/dags/{dag_id}/details")["max_active_runs"] > 1
    table, key = lab.table(name), hour(3)
    with lab.holding(table):
        runs = [lab.airflow.api.trigger(dag_id, partition_key=key) for _ in range(2)]
        wait_until(
            lambda: {lab.task_state(run, f"wait.{late}") for run in runs} == {"deferred"}, timeout=240, why="both wait"
        )
        landed = lab.airflow.warehouse / late / f"ds={key}"
        landed.mkdir(parents=True)
        (landed / "_SUCCESS").touch()
        wait_until(
            lambda: sorted(str(lab.task_state(run)) for run in runs) == ["deferred", "running"],
            timeout=300,
            why="one works, and the other waits for it without a worker",
        )
    assert [lab.ended(run, timeout=300).state for run in runs] == ["success"] * 2
    told = lab.told(table)
    assert [entry["what"] for entry in told] == ["begins", "ends"] * 2
    logs = [lab.log_of(run) for run in runs]
    assert not any("are not kept apart in time" in log for log in logs)


@pytest.mark.parametrize(
    ("reconciler", "named", "remedy"),
    [
        ("reader", "chronon_reconciler", "Give it to this user, or use another one."),
        (None, "chronon_airflow", "Make a connection chronon_reconciler with a user that has it"),
    ],
)
def test_a_reconciler_that_may_only_read_says_in_one_sentence_which_right_lacks_and_to_whom(
    lab: Lab, reconciler: str | None, named: str, remedy: str
) -> None:  # S10
    dags = [lab.deploy(unscheduled(f"t.accounts.paused_{n}__1", "1h")) for n in range(2)]
    lab.wait_for(*dags)
    done = reconcile(lab, reconciler="editor")
    assert done.returncode == 0, done.stdout + done.stderr
    for dag_id in dags:
        lab.airflow.api.pause(dag_id)
    done = reconcile(lab, reconciler=reconciler)
    assert done.returncode == 1, done.stdout + done.stderr
    [said] = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert f"the user 'reader' of the connection {named} lacks the right to edit DAGs: Forbidden (403)" in said
    assert remedy in said and said.endswith("1 further steps lack this right.")
    assert all(lab.airflow.api.dag(dag_id)["is_paused"] for dag_id in dags)


def test_a_reconciler_that_may_edit_dags_needs_to_be_no_administrator(lab: Lab) -> None:  # S10
    stays, leaves = unscheduled("t.accounts.stays__1", "1h"), unscheduled("t.accounts.leaves__1", "1h")
    dags = [lab.deploy(stays), lab.deploy(leaves)]
    lab.wait_for(*dags)

    def editor_does(condition: Callable[[], bool], *, why: str) -> None:
        def look() -> bool:
            done = reconcile(lab, reconciler="editor")
            assert done.returncode == 0, done.stdout + done.stderr
            return condition()

        wait_until(look, timeout=400, why=why, every=3)

    lab.airflow.api.pause(dags[0])
    editor_does(lambda: not lab.airflow.api.dag(dags[0])["is_paused"], why="what was paused by hand goes on")
    lab.withdraw(leaves)
    editor_does(lambda: lab.airflow.api.dag(dags[1]) is None, why="the DAG of a conf that is gone is deleted")
