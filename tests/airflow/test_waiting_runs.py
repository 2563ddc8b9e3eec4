"""Which running runs Airflow's scheduler looks at: all in turn, or, where the deployment asks for it, none that only waits."""

from __future__ import annotations

from datetime import timedelta
from inspect import signature
from types import SimpleNamespace

import pytest
from airflow.jobs.job import Job
from airflow.models.dag import DagModel, DagTag
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunType
from sqlalchemy import update

from airflow_chronon.airflow import waiting_runs
from airflow_chronon.core.calendar.instants import to_datetime
from tests.support.schedules import at

NOW = to_datetime(at("2026-06-10T12:00:00Z"))
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
WAITS = (("wait.lake.t", TaskInstanceState.DEFERRED), ("ready", None), ("backfill", None))


@pytest.fixture
def add_run(session, clock):
    """A running run, last looked at a minute ago, whose tasks have not changed for an hour."""
    clock.instant = int(NOW.timestamp())
    session.merge(DagBundleModel(name="dags-folder"))
    session.flush()

    def add(dag_id, *tasks, tag="chronon", looked_at=NOW - MINUTE, changed=NOW - HOUR):
        session.add(
            DagModel(dag_id=dag_id, bundle_name="dags-folder", is_paused=False, is_stale=False, tags=[DagTag(name=tag)])
        )
        run = DagRun(
            dag_id=dag_id, run_id="r", run_type=DagRunType.SCHEDULED.value, state=DagRunState.RUNNING, run_after=NOW - HOUR
        )  # fmt: skip
        run.last_scheduling_decision = looked_at
        session.add(run)
        for name, state in tasks or WAITS:
            insert(session, dag_id, name, state, changed)
        session.flush()

    return add


def insert(session, dag_id, name, state, changed):
    """A row of a task instance; Airflow's own constructor wants the whole operator."""
    from uuid6 import uuid7

    row = {
        "id": uuid7(),
        "dag_id": dag_id,
        "task_id": name,
        "run_id": "r",
        "map_index": -1,
        "state": state,
        "updated_at": changed,
    }
    more = {"pool": "default_pool", "pool_slots": 1, "try_number": 0}
    session.flush()
    session.execute(TaskInstance.__table__.insert().values(**row, **more))


@pytest.fixture
def picked(session, monkeypatch):
    """The DAGs whose runs the scheduler would look at."""
    monkeypatch.setattr(DagRun, "get_running_dag_runs_to_examine", DagRun.get_running_dag_runs_to_examine)

    def pick():
        names = signature(DagRun.get_running_dag_runs_to_examine).parameters
        more = {"eagerly_load_dag_tags": True} if "eagerly_load_dag_tags" in names else {}  # Airflow 3.4
        return sorted(run.dag_id for run in DagRun.get_running_dag_runs_to_examine(session=session, **more))

    return pick


@pytest.fixture
def narrowed(picked):
    waiting_runs.pass_over_waiting_runs()
    return picked


def test_a_run_that_only_waits_is_passed_over(add_run, narrowed):
    add_run("quiet")
    assert narrowed() == []
    add_run("at.work", ("backfill", TaskInstanceState.RUNNING), ("wait.lake.u", TaskInstanceState.DEFERRED))
    add_run(
        "to.be.tried.again", ("backfill", TaskInstanceState.UP_FOR_RETRY), ("gate.upload", TaskInstanceState.DEFERRED)
    )
    add_run("without.waits", ("backfill", None))
    assert narrowed() == ["at.work", "to.be.tried.again", "without.waits"]


def test_a_run_whose_wait_has_ended_is_picked_in_the_next_loop(add_run, narrowed, session):
    add_run("ready", ("wait.a", TaskInstanceState.DEFERRED), ("wait.b", TaskInstanceState.DEFERRED))
    assert narrowed() == []
    ended = update(TaskInstance).where(TaskInstance.task_id == "wait.a")
    session.execute(ended.values(state=TaskInstanceState.SUCCESS, updated_at=NOW - timedelta(seconds=1)))
    assert narrowed() == ["ready"]


def test_a_change_that_was_committed_late_is_seen_all_the_same(add_run, narrowed):
    """It carries a time from before the last look, which did not see it."""
    late = ("wait.a", TaskInstanceState.SUCCESS), ("wait.b", TaskInstanceState.DEFERRED)
    second = timedelta(seconds=1)
    add_run("late", *late, changed=NOW - 3 * second, looked_at=NOW - second)
    assert narrowed() == ["late"]


def test_every_few_minutes_each_is_looked_at(add_run, narrowed):
    """A new version of its DAG changes none of a run's tasks."""
    add_run("long.unseen", looked_at=NOW - timedelta(seconds=waiting_runs.AT_LEAST_EVERY) - MINUTE)
    add_run("never.seen", looked_at=None)
    assert narrowed() == ["long.unseen", "never.seen"]


def test_runs_of_other_peoples_dags_are_left_to_airflow(add_run, narrowed):
    add_run("theirs", tag="etl")
    assert narrowed() == ["theirs"]


def test_it_has_to_be_asked_for(add_run, picked, monkeypatch):
    add_run("quiet")
    Job()  # as in the scheduler's own start
    assert picked() == ["quiet"]
    monkeypatch.setenv("AIRFLOW__CHRONON__PASS_OVER_WAITING_RUNS", "True")
    waiting_runs.on_starting(SimpleNamespace())  # a task that starts
    assert picked() == ["quiet"]
    waiting_runs.on_starting(Job())
    assert picked() == []
    waiting_runs.on_starting(Job())
    assert picked() == []


def test_airflow_loads_it_with_the_plugin():
    from airflow_chronon.plugin import ChrononPlugin

    assert waiting_runs in ChrononPlugin.listeners
