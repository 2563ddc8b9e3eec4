"""What becomes of DAGs whose confs go, and of everything that must not go (C22 to C25; cases 29 to 32)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_chronon.airflow_api.errors import AirflowUnreachable, Conflict
from airflow_chronon.airflow_api.records import ImportErrorRecord, RunRecord, TaskRecord
from airflow_chronon.core.confs.documents import ConfType
from airflow_chronon.core.plan.actions import Delete, Report, StopIdleRuns, StopRuns, WaitForRuns
from airflow_chronon.core.plan.explain import explain_plan
from tests.support.world import ID, ONE, THREE, TWO, broken, conf, deployed


def test_a_conf_that_is_gone_is_drained_archived_and_deleted() -> None:  # C23, case 31
    world = deployed(ONE, TWO)
    run = world.fire(ID)
    assert run is not None
    world.deploy(TWO)
    world.parse()
    first = world.reconcile()
    assert WaitForRuns(ID, 1) in first.plan.actions
    assert ID in world.live()  # the loader keeps it for its run
    assert world.fire(ID) is None  # and it fires no more
    world.converge()
    assert ID not in world.airflow.dag_records
    (name,) = world.state().archives(ID)
    lines = world.state().read_archive(name)
    assert lines is not None
    assert [line["kind"] for line in lines] == ["retirement", "conf", "record", "run", "task_instance", "end"]
    assert lines[0]["by"] == "a test" and "gone from the tree" in lines[0]["why"]
    assert lines[1]["document"] == ONE.raw
    assert (lines[3]["run_id"], lines[3]["note"]) == (run.run_id, "note 1")


@pytest.mark.parametrize(
    ("task_id", "state"),
    [
        ("wait.upstream.table", "deferred"),
        ("gate.backfill", "deferred"),
        ("ready", "success"),
        ("backfill", None),  # cleared, or not its turn yet
        ("backfill", "scheduled"),
        ("backfill", "queued"),
        ("backfill", "skipped"),
    ],
)
def test_a_run_that_has_begun_no_work_is_stopped_at_once_with_a_note(task_id: str, state: str | None) -> None:  # C23
    world = deployed(ONE, TWO)
    waiting, working = world.fire(ID), world.fire(ID)
    assert waiting is not None and working is not None
    first, _ = world.airflow.task_records
    world.airflow.task_records[0] = replace(first, task_id=task_id, state=state)
    world.airflow.run_records.append(RunRecord(ID, "manual__queued", "manual", "queued"))
    world.deploy(TWO)
    world.parse()
    done = world.reconcile()
    assert {StopIdleRuns(ID, 2), WaitForRuns(ID, 1)} <= set(done.plan.actions)
    runs = {run.run_id: run for run in world.airflow.run_records}
    assert [runs[each].state for each in (waiting.run_id, working.run_id, "manual__queued")] == [
        "failed",
        "running",
        "failed",
    ]
    note = "Stopped by a test: the conf of this DAG is gone, and this run had begun no work."
    assert runs[waiting.run_id].note == f"note 1\n{note}"
    world.converge()
    assert ID not in world.airflow.dag_records
    assert world.history(ID) == set(runs)


def test_a_run_between_two_of_its_modes_is_waited_for() -> None:  # C10, C23
    world = deployed(ONE, TWO)
    run = world.fire(ID)
    assert run is not None
    (work,) = world.airflow.task_records
    world.airflow.task_records = [
        replace(work, state="success"),
        TaskRecord(ID, run.run_id, "gate.upload", "deferred", start=2.0),
    ]
    world.deploy(TWO)
    world.parse()
    assert WaitForRuns(ID, 1) in world.reconcile().plan.actions
    assert world.airflow.run_records == [run]


def test_work_that_begins_after_the_plan_was_made_is_not_stopped() -> None:
    world = deployed(ONE, TWO)
    run = world.fire(ID)
    assert run is not None
    (work,) = world.airflow.task_records
    world.airflow.task_records = [replace(work, task_id="wait.x", state="deferred")]
    world.deploy(TWO)
    world.parse()

    def begin(_: str) -> None:
        world.airflow.task_records.append(work)

    world.files.before = begin  # the record of the retirement is written first
    assert StopIdleRuns(ID, 1) in world.reconcile().plan.actions
    assert world.airflow.run_records == [run]


def test_a_version_bump_retires_the_old_dag_at_the_next_reconcile() -> None:  # case 30
    world = deployed(ONE)
    world.deploy(conf("t.s.one__2"))
    world.parse()
    world.reconcile()
    assert world.firing == {"staging_query.t.s.one__2"}
    world.converge()
    assert set(world.airflow.dag_records) == {"staging_query.t.s.one__2"}
    assert "superseded by staging_query.t.s.one__2" in str(world.state().read_archive(world.state().archives(ID)[0]))


def test_a_broken_conf_keeps_its_runs_going_but_fires_no_more() -> None:
    world = deployed(ONE)
    world.fire(ID)
    world.deploy(broken("t.s.one__1"))
    world.parse()
    assert ID in world.live() and world.fire(ID) is None


def test_a_conf_that_comes_back_while_it_drains_goes_on() -> None:
    world = deployed(ONE, TWO)
    world.fire(ID)
    world.deploy(TWO)
    world.parse()
    world.reconcile()
    world.deploy(ONE, TWO)
    world.converge()
    assert world.fire(ID) is not None and not world.retiring()


def test_a_conf_that_comes_back_after_it_was_deleted_starts_anew() -> None:  # case 32, H16
    world = deployed(ONE, TWO)
    first = world.records()[ID].first_seen
    world.deploy(TWO)
    world.converge()
    world.now += 3600
    world.deploy(ONE, TWO)
    world.converge()
    entry = world.records()[ID]
    assert entry.first_seen == first + 3600 and entry.retirement is None
    assert ID in world.live()


def test_a_delete_that_airflow_refuses_is_left_for_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = deployed(ONE, TWO)
    world.deploy(TWO)
    with monkeypatch.context() as refusing:

        def refuse(dag_id: str) -> None:
            raise Conflict(f"deleting {dag_id}", status=409, detail="still running")

        refusing.setattr(world.airflow, "delete_dag", refuse)
        for _ in range(4):
            world.parse()
            done = world.reconcile()
        assert [type(action) for action, _ in done.outcome.left] == [Delete]
        assert done.is_good  # nothing is wrong
        assert ID in world.retiring()
    world.converge()
    assert ID not in world.airflow.dag_records


def test_a_dag_that_a_file_still_produces_is_not_deleted() -> None:  # case 32
    world = deployed(ONE, TWO)
    world.deploy(TWO)
    world.parse()
    world.reconcile()  # archived
    for _ in range(3):
        world.reconcile()  # Airflow has parsed nothing since
        assert ID in world.airflow.dag_records
    record = world.airflow.dag_records[ID]
    world.airflow.dag_records[ID] = replace(record, is_stale=True, has_import_errors=True)
    world.reconcile()  # stale for another reason: its file is broken
    assert ID in world.airflow.dag_records


def test_the_mark_of_a_file_that_went_while_it_was_parsed_holds_up_nothing() -> None:  # C23
    world = deployed(ONE, TWO)
    world.deploy(TWO)
    world.parse()
    world.reconcile()
    record = replace(world.airflow.dag_records[ID], is_stale=True, has_import_errors=True, file="loader.py")
    world.airflow.dag_records[ID] = record
    world.airflow.errors.append(ImportErrorRecord("loader.py", record.bundle, "SyntaxError"))
    world.reconcile()  # the file is there and broken
    assert ID in world.airflow.dag_records
    world.airflow.errors.clear()  # Airflow forgets the errors of files that are gone, and leaves the mark
    world.reconcile()
    assert ID not in world.airflow.dag_records


def test_a_run_that_begins_after_the_archive_is_archived_too() -> None:
    world = deployed(ONE, TWO)
    world.deploy(TWO)
    world.parse()
    world.reconcile()
    world.firing.add(ID)  # someone triggers it by hand at the last moment
    late = world.fire(ID, state="success")
    assert late is not None
    world.converge()
    assert late.run_id in world.history(ID) and ID not in world.airflow.dag_records


def test_a_run_in_progress_that_began_after_the_archive_is_stopped_and_archived_too() -> None:
    world = deployed(ONE, TWO)
    world.deploy(TWO)
    world.parse()
    world.reconcile()
    world.firing.add(ID)
    late = world.fire(ID)
    assert late is not None
    world.parse()  # nothing produces the DAG any more, so nothing will finish the run
    for _ in range(3):
        assert world.reconcile().is_good
        world.parse()
    assert late.run_id in world.history(ID) and ID not in world.airflow.dag_records


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"overrides": [{"match": "team:t", "on_retire": "stop"}]}, id="by team"),
        pytest.param({"overrides": [{"match": "staging_query/*", "on_retire": "stop"}]}, id="by name"),
    ],
)
def test_overrides_hold_for_a_conf_that_is_gone(settings: dict[str, object]) -> None:
    world = deployed(ONE, TWO)
    world.fire(ID)
    world.deploy(TWO, **settings)
    world.parse()
    assert StopRuns(ID, 1, "its settings say so") in world.reconcile().outcome.done


def test_what_a_conf_says_of_its_own_retirement_holds_once_it_is_gone() -> None:
    own = '{"airflow": {"on_retire": "stop"}}'
    world = deployed(conf("t.s.one__1", customJson=own), TWO)
    world.fire(ID)
    world.deploy(TWO)
    world.parse()
    assert StopRuns(ID, 1, "its settings say so") in world.reconcile().outcome.done


def test_a_broken_conf_is_reported_and_remembered_as_switched_off() -> None:  # C23, H20
    world = deployed(ONE, TWO)
    world.now += 3600
    world.deploy(broken("t.s.one__1"), TWO)
    world.parse()
    done = world.reconcile()
    (report,) = (action for action in done.plan.actions if isinstance(action, Report))
    assert "fires no more until it is mended" in report.fault.message and done.is_good
    assert not world.records()[ID].now.enabled
    world.now += 3600
    world.deploy(ONE, TWO)
    world.parse()
    assert f"record    {ID}: its conf is good again" in explain_plan(world.reconcile().plan)
    world.converge()
    assert [revision.enabled for revision in world.records()[ID].revisions] == [True, False, True]


def test_runs_are_stopped_when_the_settings_say_so() -> None:
    world = deployed(ONE, TWO)
    run = world.fire(ID)
    assert run is not None
    world.deploy(TWO, on_retire="stop")
    world.parse()
    done = world.reconcile()
    assert StopRuns(ID, 1, "its settings say so") in done.outcome.done
    stopped = world.airflow.run(ID, run.run_id)
    assert stopped.state == "failed"
    assert stopped.note is not None and stopped.note.startswith("note 1\nStopped by a test")


def test_a_dag_without_a_record_cannot_finish_so_its_runs_are_stopped() -> None:
    world = deployed(ONE, TWO)
    world.fire(ID)
    world.files.contents.clear()  # the state folder was lost
    world.deploy(TWO)
    world.converge()
    assert ID not in world.airflow.dag_records and world.history(ID) == {"scheduled__1"}


def test_a_failed_step_stops_further_retiring(monkeypatch: pytest.MonkeyPatch) -> None:
    world = deployed(ONE, TWO, THREE)
    world.deploy(THREE)
    world.parse()
    listing = world.airflow.tasks

    def fail(dag_id: str | None = None, *more: object, **others: object) -> object:
        if dag_id == ID:
            raise AirflowUnreachable("http://127.0.0.1", "does not answer")
        return listing(dag_id)

    monkeypatch.setattr(world.airflow, "tasks", fail)
    done = world.reconcile()
    assert not done.is_good and len(done.outcome.failed) == 1
    assert world.state().archives("staging_query.t.s.two__1") == ()
    assert all(world.records()[each].keeps_dag for each in (ID, "staging_query.t.s.two__1"))


def test_a_rename_retires_the_old_name_and_starts_the_new_one() -> None:
    world = deployed(ONE, TWO)
    world.fire(ID)
    world.deploy(conf("t.s.uno__1"), TWO)
    world.converge()
    assert set(world.airflow.dag_records) == {"staging_query.t.s.uno__1", "staging_query.t.s.two__1"}
    assert world.history(ID) == {"scheduled__1"}


def test_of_two_types_with_one_name_only_the_one_that_is_gone_goes() -> None:  # C26
    other = conf("t.s.one__1", conf_type=ConfType.GROUP_BY, schedule="@daily")
    world = deployed(ONE, other)
    assert set(world.airflow.dag_records) == {ID, "group_by.t.s.one__1"}
    world.deploy(other)
    world.converge()
    assert set(world.airflow.dag_records) == {"group_by.t.s.one__1"}


def test_an_idle_reconcile_asks_airflow_the_same_however_many_dags_there_are() -> None:
    asked = []
    for size in (3, 60):
        world = deployed(*(conf(f"t.s.c{number}__1") for number in range(size)))
        world.airflow.calls.clear()
        world.reconcile()
        asked.append(len(world.airflow.calls))
    assert asked == [6, 6]  # the DAGs, the queued replays, and four settings


def test_a_conf_that_airflow_never_saw_leaves_no_trace() -> None:
    world = deployed(ONE)
    world.deploy(ONE, TWO)
    world.reconcile()  # deployed, yet never parsed
    world.deploy(ONE)
    world.reconcile()
    world.reconcile()
    assert set(world.records()) == {ID}
