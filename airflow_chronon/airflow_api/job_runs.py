"""Starting runs of jobs by hand (H7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.core.calendar.instants import Instant, iso
from airflow_chronon.core.schedules.request import asked_window


def start_run(
    server: AirflowServer,
    dag_id: str,
    *,
    start: Instant | None,
    end: Instant | None,
    logical_date: Instant | None = None,
    env: Mapping[str, str] | None = None,
) -> RunRecord:
    """Start one run of a job's DAG, over ``[start, end)`` or without a window (H7); its logical date is the start by default."""
    window = asked_window(start, end)
    params: dict[str, Any] = {}
    if window is not None:
        params |= {"start_time": iso(window.start), "end_time": iso(window.end)}
    if logical_date is not None:
        params["logical_date"] = iso(logical_date)
    if env:
        params["env"] = {str(name): str(value) for name, value in env.items()}
    return server.trigger(dag_id, params=params)
