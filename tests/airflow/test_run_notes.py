"""The notes of runs, as people see them on a run's page: what a manual run is for (C27, H7), why one was skipped (C30)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.types import DagRunType
from sqlalchemy import insert

from airflow_chronon.airflow.run_notes import on_dag_run_running, on_dag_run_success
from airflow_chronon.airflow.timetables.intervals import JobTimetable
from airflow_chronon.airflow.timetables.partitions import PartitionTimetable
from airflow_chronon.core.calendar.instants import DAY, to_datetime
from tests.support.jobs import schedule as job_schedule
from tests.support.schedules import at, schedule_of

DAILY = PartitionTimetable(schedule_of("0 6 * * *", DAY))


@pytest.fixture
def start(session, clock):
    """Start a run as the scheduler does, and read its note."""
    clock.instant = at("2026-06-10T12:00:00Z")

    def started(timetable: Any = DAILY, *, kind: DagRunType = DagRunType.MANUAL, note: str | None = None, **given: Any):
        run = DagRun(
            dag_id="d", run_id=f"r{len(started.runs)}", run_type=kind.value, run_after=to_datetime(clock.instant),
            conf=given.pop("conf", {}), note=note,
        )  # fmt: skip
        run.partition_key = given.pop("partition_key", None)
        session.add(run)
        session.flush()
        started.runs.append(run)
        run.dag = cast("Any", SimpleNamespace(timetable=timetable))
        on_dag_run_running(dag_run=run, msg="started")
        session.expire(run)
        return run.note

    started.runs = []
    return started


def test_a_range_is_named(start):
    said = start(conf={"start_ds": "2026-06-01", "end_ds": "2026-06-03"})
    assert "2026-06-01 … 2026-06-03 (3)" in said


def test_a_partition_key_is_named(start):
    assert start(partition_key="2026-06-02").startswith("partition 2026-06-02, ")


def test_what_was_left_out_of_a_range_is_said(start):
    # C27
    assert "left out of 2026/6/10" in start(conf={"start_ds": "2026-06-09", "end_ds": "2026/6/10"})


def test_a_run_without_a_window_says_that_it_writes_nothing(start):
    # H7
    assert start() == "a manual run without a partition: no window, nothing is waited for, no partition is written"


def test_a_request_that_contradicts_itself_says_why_it_fails(start):
    assert "both a partition key" in start(partition_key="2026-06-02", conf={"start_ds": "2026-06-02"})


def test_a_job_says_its_window(start):
    window = {"start_time": "2026-06-01T00:00:00Z", "end_time": "2026-06-02T00:00:00Z"}
    assert "window [2026-06-01T00:00:00Z, 2026-06-02T00:00:00Z)" in start(JobTimetable(job_schedule()), conf=window)


def test_a_note_that_someone_wrote_stays(start):
    assert start(partition_key="2026-06-02", note="for the audit") == "for the audit"


def test_runs_whose_id_tells_and_those_of_other_dags_have_none(start):
    assert start(kind=DagRunType.SCHEDULED, partition_key="2026-06-02") is None
    assert start(object()) is None


class TestARunOfWhichEveryTaskWasSkipped:
    """Airflow shows it green: the note says that it made nothing, and why (C30)."""

    WHY = "the run is skipped, since the chain begins with a later partition: no run of a will write ds=1 of t"

    @pytest.fixture
    def end(self, start, session):
        """End a scheduled run as the scheduler does, and read its note; ``waits`` are the states and words of its waits."""

        def ended(landed: str = "skipped", note: str | None = None, **waits: tuple[str, str | None]) -> str | None:
            start(kind=DagRunType.SCHEDULED, partition_key="2026-06-02", note=note)
            run = start.runs[-1]
            for task, state, said in [("landed", landed, None), *((f"wait.{k}", *v) for k, v in waits.items())]:
                of = {"dag_id": "d", "run_id": run.run_id, "task_id": task, "map_index": -1}
                session.execute(
                    insert(TaskInstance.__table__).values(
                        id=uuid4(), state=state, pool="p", pool_slots=1, queue="q", priority_weight=1, try_number=1,
                        max_tries=0, span_status="ended", custom_operator_name="", executor_config={}, **of,
                    )
                )  # fmt: skip
                if said is not None:
                    session.add(
                        XComModel(dag_run_id=run.id, key="return_value", value=XComModel.serialize_value(said), **of)
                    )
            session.flush()
            on_dag_run_success(dag_run=run, msg="success")
            session.expire(run)
            return run.note

        return ended

    def test_has_the_reason_of_its_wait_in_its_note(self, end):
        assert end(a=("skipped", self.WHY), b=("success", "the lookback of b has holes")) == f"Skipped: {self.WHY}"

    def test_says_the_same_reason_once(self, end):
        assert end(a=("skipped", self.WHY), b=("skipped", self.WHY)) == f"Skipped: {self.WHY}"

    def test_has_no_note_where_something_landed(self, end):
        # one mode of two was skipped
        assert end(landed="success", a=("skipped", self.WHY)) is None

    def test_keeps_what_someone_wrote(self, end):
        assert end(note="for the audit", a=("skipped", self.WHY)) == "for the audit"

    def test_loses_the_note_when_it_runs_again(self, end, start, session):
        assert end(a=("skipped", self.WHY))
        on_dag_run_running(dag_run=start.runs[-1], msg="started")
        session.expire(start.runs[-1])
        assert start.runs[-1].note is None


def test_airflow_loads_it_with_the_plugin():
    from airflow_chronon.airflow import run_notes
    from airflow_chronon.plugin import ChrononPlugin

    assert run_notes in ChrononPlugin.listeners
