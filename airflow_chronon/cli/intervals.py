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
from airflow_chronon.core.plan.history import as_seen
from airflow_chronon.core.plan.record import DeploymentRecord
from airflow_chronon.core.runs.states import KnownRun
from airflow_chronon.core.schedules.base import AnySchedule


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


def schedule_of(plan: GoodPlan) -> AnySchedule:
    """The schedule of a plan that has one."""
    schedule = plan.intervals
    assert schedule is not None  # open_plan() lets no other through
    return schedule


def asked_range(plan: GoodPlan, start: str, end: str | None) -> TimeWindow:
    """The partitions from ``start`` to ``end``, both inclusive, whether or not they have ended; the first alone without
    an end."""
    return schedule_of(plan).read_range(start, end or start)


def check_size(plan: GoodPlan, window: TimeWindow) -> None:
    """Refuse a range of more partitions than anyone can look at; those of jobs are judged while they are read."""
    if isinstance(plan, ConfPlan):
        limited(plan.spec.grid.starts(window.start, window.end), what="partitions", conf=plan.key)


def ended_range(plan: GoodPlan, start: str, end: str | None, *, now: Instant) -> TimeWindow:
    """The same range, every partition of which has ended by ``now``."""
    window = asked_range(plan, start, end)
    schedule_of(plan).check_ended(window, now=now)
    return window


def runs_in(
    server: AirflowServer, plan: GoodPlan, window: TimeWindow, *, now: Instant, states: Sequence[str] = ()
) -> list[KnownRun]:
    """The runs that cover partitions of a window."""
    schedule = schedule_of(plan)
    found = runs_covering(server, plan.dag_id, window, grid=schedule.grid, states=states)
    return known_runs(found, schedule, now=now)
