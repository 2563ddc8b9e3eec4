"""Job files for tests, and their runs as a worker sees them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow_chronon.airflow import config as deployment
from airflow_chronon.core.calendar.cron import Cron
from airflow_chronon.core.calendar.instants import Instant, to_datetime
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.plan.history import record_after
from airflow_chronon.core.plan.manifest import manifest_of
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import JobSchedule
from airflow_chronon.state.folder import StateFolder, open_state


def job_schedule(cron: str = "0 * * * *", *, offset: int = 0, lookback: int | None = None, **of: Any) -> JobSchedule:
    """An active schedule; ``of`` are the fields of :class:`CatchUp`, and ``active_since``."""
    active_since = of.pop("active_since", 0)
    return JobSchedule(Cron(cron), CatchUp(**of), offset, lookback, active_since=active_since)


def write_job(root: Path, name: str = "hourly", **document: Any) -> Path:
    """A job file of the team ``etl``; JSON is YAML."""
    path = root / "jobs" / "etl" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    defaults = {"version": 1, "runner": {"kind": "command", "argv": ["true"]}}
    path.write_text(json.dumps({**defaults, **document}))
    return path


def state_of(home: Path) -> StateFolder:
    """The state folder of the deployment on the default branch, below an Airflow home."""
    return open_state(str(home / "chronon_state"), deployment=Deployment("main", deployment.DEFAULT_BUNDLE))


def see(state: StateFolder, *plans: Any, now: Instant, **seen: Any) -> None:
    """What a reconcile records of jobs that it sees for the first time, or again."""
    for plan in plans:
        known = state.read_record(plan.dag_id)
        state.write_record(record_after(plan, manifest_of(plan), known, now=now, **seen))


def context(
    key: str | None = None,
    *,
    interval: tuple[Instant, Instant] | None = None,
    run_type: str = "manual",
    conf: dict[str, Any] | None = None,
    **params: str,
) -> dict[str, Any]:
    """A run as a worker sees it."""
    start, end = (None, None) if interval is None else map(to_datetime, interval)
    run = SimpleNamespace(
        partition_key=key,
        run_type=run_type,
        data_interval_start=start,
        data_interval_end=end,
        conf={**(conf or {}), **params},
        run_id="run-1",
    )
    given = {"start_time": None, "end_time": None, "logical_date": None} | params
    return {"dag_run": run, "params": given, "run_id": "run-1"}
