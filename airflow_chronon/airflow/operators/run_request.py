"""From an Airflow run to the partitions or the window it is for: in triggers from rendered templates, in workers from the context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_chronon.core.calendar.instants import TimeWindow, from_datetime, parse_instant
from airflow_chronon.core.runs.intervals_request import JobRunRequest
from airflow_chronon.core.runs.partitions_request import RunRequest

#: What a trigger is told of its run; each value is a template that the triggerer renders.
REQUEST_TEMPLATES: dict[str, str] = {
    "partition_key": "{{ partition_key or '' }}",
    "run_type": "{{ dag_run.run_type }}",
    "start_ds": "{{ params.start_ds or '' }}",
    "end_ds": "{{ params.end_ds or '' }}",
    "interval_start": "{{ dag_run.data_interval_start.isoformat() if dag_run.data_interval_start else '' }}",
    "interval_end": "{{ dag_run.data_interval_end.isoformat() if dag_run.data_interval_end else '' }}",
}


def request_of_fields(fields: Mapping[str, str]) -> RunRequest:
    """The request that rendered :data:`REQUEST_TEMPLATES` describe."""
    start, end = fields["interval_start"], fields["interval_end"]
    return RunRequest(
        partition_key=fields["partition_key"],
        is_scheduled=fields["run_type"].rpartition(".")[2].lower() == "scheduled",
        start_ds=fields["start_ds"],
        end_ds=fields["end_ds"],
        window=_window(parse_instant(start), parse_instant(end)) if start and end else None,
    )


def request_of_context(context: Mapping[str, Any]) -> RunRequest:
    """The request of a task's context."""
    dag_run, params = context["dag_run"], context["params"]
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    return RunRequest(
        partition_key=dag_run.partition_key or "",
        is_scheduled=str(getattr(dag_run.run_type, "value", dag_run.run_type)) == "scheduled",
        start_ds=params.get("start_ds") or "",
        end_ds=params.get("end_ds") or "",
        window=_window(from_datetime(start), from_datetime(end)) if start and end else None,
    )


def job_request_of_context(context: Mapping[str, Any]) -> JobRunRequest:
    """The request of a job's task."""
    dag_run, params = context["dag_run"], context["params"]
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    return JobRunRequest(
        partition_key=dag_run.partition_key or "",
        interval=_window(from_datetime(start), from_datetime(end)) if start and end else None,
        start_time=params.get("start_time") or "",
        end_time=params.get("end_time") or "",
        logical_date=params.get("logical_date") or "",
    )


def _window(start: int, end: int) -> TimeWindow | None:
    """An interval that someone gave; the empty one of a bare logical date is none (H7)."""
    return TimeWindow(start, end) if end > start else None
