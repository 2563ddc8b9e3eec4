"""Job files for tests, and their runs as a worker sees them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
from airflow.timetables.base import TimeRestriction

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.calendar.cron import Cron
from airflow_chronon.core.calendar.instants import Instant, parse_instant, to_datetime
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.deployment import DEFAULT_BUNDLE
from airflow_chronon.state.folder import StateFolder, open_state

#: Airflow lets a timetable choose freely.
ANY_TIME = TimeRestriction(None, None, True)


def job_schedule(
    cron: str = "0 * * * *", *, offset: int = 0, lookback: int | None = None, **of: Any
) -> IntervalSchedule:
    """An active schedule; ``of`` are the fields of :class:`CatchUp`, and ``active_since``."""
    active_since = of.pop("active_since", 0)
    return IntervalSchedule(Cron(cron), CatchUp(**of), offset, lookback, active_since=active_since)


def moment(text: str) -> pendulum.DateTime:
    """ISO-8601 text as Airflow's timetables have it."""
    return pendulum.instance(to_datetime(parse_instant(text)))


def write_job(root: Path, name: str = "hourly", **document: Any) -> Path:
    """A job file of the team ``etl``; JSON is YAML."""
    path = root / "jobs" / "etl" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    defaults = {"version": 1, "runner": {"kind": "command", "argv": ["true"]}}
    path.write_text(json.dumps({**defaults, **document}))
    return path


def job_plan(root: Path, dag_id: str) -> JobPlan:
    """What a conf root says about the job of a DAG."""
    found = [plan for plan in read_conf_root(root, environ=os.environ).judge().values() if isinstance(plan, JobPlan)]
    return next(plan for plan in found if plan.dag_id == dag_id)


def state_of(home: Path) -> StateFolder:
    """The state folder of the deployment on the default branch, below an Airflow home."""
    return open_state(str(home / "chronon_state"), deployment=Deployment("main", DEFAULT_BUNDLE))


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
