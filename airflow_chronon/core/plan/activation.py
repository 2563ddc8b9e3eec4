"""Activation of jobs: a job's schedule fires only once a reconcile has seen it (H14, H15)."""

from __future__ import annotations

from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.plan.history import as_seen
from airflow_chronon.core.plan.record import DeploymentRecord


def seen_plan(plan: Plan, record: DeploymentRecord | None) -> Plan:
    """The plan with the schedule that its timetable has; ``record`` is what is remembered of its DAG."""
    return plan.as_seen(lambda schedule: as_seen(schedule, record))


def is_active(plan: Plan, record: DeploymentRecord | None) -> bool:
    """Whether a schedule that is on fires already, and does not wait for a reconcile to see it."""
    planned, seen = plan.schedule, seen_plan(plan, record).schedule
    return planned is None or not planned.is_on or (seen is not None and seen.is_on)
