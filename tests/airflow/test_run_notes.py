"""The notes of manual runs: what each is for, as people see it on the run's page (C27, H7)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.models.dagrun import DagRun
from airflow.utils.types import DagRunType

from airflow_chronon.airflow.run_notes import on_dag_run_running
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


def test_airflow_loads_it_with_the_plugin():
    from airflow_chronon.airflow import run_notes
    from airflow_chronon.plugin import ChrononPlugin

    assert ChrononPlugin.listeners == [run_notes]
