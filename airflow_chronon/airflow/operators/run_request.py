"""From an Airflow run to what it was asked for: in triggers from rendered templates, in workers from the context."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_chronon.core.calendar.instants import TimeWindow, from_datetime, parse_instant
from airflow_chronon.core.runs.replay_order import REPLAY, ReplayOrder, read_order
from airflow_chronon.core.schedules.request import RunRequest, given_parameters

#: What a trigger gets of its run; each value is a template that the triggerer renders.
REQUEST_TEMPLATES: dict[str, str] = {
    "partition_key": "{{ partition_key or '' }}",
    "run_type": "{{ dag_run.run_type }}",
    "start_ds": "{{ params.start_ds or '' }}",
    "end_ds": "{{ params.end_ds or '' }}",
    "asked_at": "{{ dag_run.run_after.isoformat() }}",
    "interval_start": "{{ dag_run.data_interval_start.isoformat() if dag_run.data_interval_start else '' }}",
    "interval_end": "{{ dag_run.data_interval_end.isoformat() if dag_run.data_interval_end else '' }}",
    "replay": "{{ (dag_run.conf or {}).get('replay', '') | tojson }}",
}
#: Those of them that triggers in Airflow's database may lack, made by an earlier version.
LATER = frozenset({"replay"})


def request_of_fields(fields: Mapping[str, str]) -> RunRequest:
    """The request that rendered :data:`REQUEST_TEMPLATES` describe."""
    start, end = fields["interval_start"], fields["interval_end"]
    return RunRequest(
        partition_key=fields["partition_key"],
        is_scheduled=fields["run_type"].rpartition(".")[2].lower() == "scheduled",
        interval=_interval(parse_instant(start), parse_instant(end)) if start and end else None,
        asked_at=parse_instant(asked_at) if (asked_at := fields["asked_at"]) else None,
        **given_parameters(fields),
    )


def request_of_context(context: Mapping[str, Any]) -> RunRequest:
    """The request of a task's context."""
    dag_run = context["dag_run"]
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    return RunRequest(
        partition_key=dag_run.partition_key or "",
        is_scheduled=str(getattr(dag_run.run_type, "value", dag_run.run_type)) == "scheduled",
        interval=_interval(from_datetime(start), from_datetime(end)) if start and end else None,
        asked_at=from_datetime(asked_at) if (asked_at := getattr(dag_run, "run_after", None)) else None,
        dag_id=str(getattr(dag_run, "dag_id", "CONF")),
        **given_parameters(context["params"]),
    )


def replay_of_fields(fields: Mapping[str, str]) -> ReplayOrder | None:
    """The replay that the run is part of; None where it is of none, or was made by somebody who carries no order."""
    try:
        return read_order({REPLAY: json.loads(fields.get("replay") or "null")})
    except ValueError:
        return None


def _interval(start: int, end: int) -> TimeWindow | None:
    """An interval that someone gave; the empty one of a bare logical date is none (H7)."""
    return TimeWindow(start, end) if end > start else None
