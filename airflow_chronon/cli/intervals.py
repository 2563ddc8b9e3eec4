"""What ``partitions`` and ``backfill`` ask of a conf and of a job alike: the range that is meant, and what ran in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_chronon.airflow_api.coverage import known_runs, runs_covering
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.jobs.verdicts import GoodPlan
from airflow_chronon.core.partitions.limits import limited
from airflow_chronon.core.partitions.parse import read_range, read_span
from airflow_chronon.core.plan.history import as_seen
from airflow_chronon.core.plan.record import DeploymentRecord
from airflow_chronon.core.runs.intervals_range import check_ended, read_intervals
from airflow_chronon.core.runs.states import KnownRun
from airflow_chronon.core.schedules.intervals import JobSchedule
from airflow_chronon.core.schedules.partitioned import RunSchedule


def seen_plan(plan: GoodPlan, record: DeploymentRecord | None) -> GoodPlan:
    """The plan with its schedule as the deployment knows it: a job may begin when it was first seen (H15)."""
    if isinstance(plan, JobPlan) and plan.schedule is not None:
        return replace(plan, schedule=as_seen(plan.schedule, record))
    return plan


def is_active(plan: GoodPlan, record: DeploymentRecord | None) -> bool:
    """Whether a schedule that is on may fire: a job's waits for its first reconcile (H14)."""
    if record is not None or not isinstance(plan, JobPlan) or plan.schedule is None:
        return True
    return not plan.schedule.enabled or as_seen(plan.schedule, record).enabled


def schedule_of(plan: GoodPlan) -> RunSchedule | JobSchedule:
    """The schedule of a plan that has one."""
    schedule = plan.intervals
    assert schedule is not None  # open_plan() lets no other through
    return schedule


def asked_range(plan: GoodPlan, start: str, end: str | None) -> TimeWindow:
    """The partitions from ``start`` to ``end``, both inclusive, whether or not they have ended; the first alone without
    an end."""
    schedule, last = schedule_of(plan), end or start
    if isinstance(schedule, JobSchedule):
        return read_intervals(start, last, schedule)
    return read_span(start, last, schedule.spec)


def check_size(plan: GoodPlan, window: TimeWindow) -> None:
    """Refuse a range of more partitions than anyone can look at; those of jobs are judged while they are read."""
    if isinstance(plan, ConfPlan):
        limited(plan.spec.grid.starts(window.start, window.end), what="partitions", conf=plan.key)


def ended_range(plan: GoodPlan, start: str, end: str | None, *, now: Instant) -> TimeWindow:
    """The same range, every partition of which has ended by ``now``."""
    if isinstance(plan, ConfPlan):
        return read_range(start, end or start, plan.spec, now=now)
    window = asked_range(plan, start, end)
    check_ended(window, now=now)
    return window


def runs_in(
    server: AirflowServer, plan: GoodPlan, window: TimeWindow, *, now: Instant, states: Sequence[str] = ()
) -> list[KnownRun]:
    """The runs that cover partitions of a window."""
    grid = plan.spec.grid if isinstance(plan, ConfPlan) else None
    found = runs_covering(server, plan.dag_id, window, grid=grid, states=states)
    return known_runs(found, schedule_of(plan), now=now)
