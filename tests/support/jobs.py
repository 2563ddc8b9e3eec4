"""Job files and schedules for tests."""

from __future__ import annotations

from typing import Any

from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.calendar.quartz import read_cron
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.jobs.document import Job, read_job
from airflow_chronon.core.jobs.resolve import JobPlan, resolve_jobs
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.job_runs import JobRun
from airflow_chronon.core.schedules.partitioned import Run
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.errors import Fault
from tests.support.confs import at

HEAD = "version: 1\nrunner: {kind: command, argv: ['true']}\n"


def schedule(
    cron: str = "@hourly",
    *,
    start: str | None = None,
    end: str | None = None,
    skip_to: str | None = None,
    catchup: bool = False,
    cap: int | None = None,
    active_since: str | None = None,
    **of: Any,
) -> IntervalSchedule:
    """A schedule; instants as text."""
    skip, first, last, since = (None if each is None else at(each) for each in (skip_to, start, end, active_since))
    return IntervalSchedule(read_cron(cron), CatchUp(catchup, cap, skip, first, last), active_since=since, **of)


def window(run: JobRun | Run | None) -> str:
    """A run's window, short: on one day the second date is left out."""
    assert run is not None
    start, end = iso(run.window.start)[:-1], iso(run.window.end)[:-1]
    return f"[{start}, {end})"


def job(text: str, *, team: str = "etl", name: str = "hourly") -> Job:
    return read_job(text, team=team, name=name, file=f"jobs/{team}/{name}.yaml", environ={})


def plan_of(text: str, settings: Settings | None = None, **of: Any) -> JobPlan:
    (verdict,) = resolve_jobs([job(text)], settings or Settings(), **of).values()
    assert isinstance(verdict, JobPlan), verdict
    return verdict


def job_faults(text: str, settings: Settings | None = None) -> tuple[Fault, ...]:
    (verdict,) = resolve_jobs([job(text)], settings or Settings()).values()
    assert isinstance(verdict, RejectedConf), verdict
    return verdict.faults
