"""Plans as the deployment knows their schedules: those of jobs fire only once a reconcile has seen them (H14, H15)."""

from __future__ import annotations

from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.plan.history import JournalEntry, as_seen


def seen_plan(plan: Plan, entry: JournalEntry | None) -> Plan:
    """The plan with the schedule that its timetable has; ``entry`` is what is remembered of its DAG."""
    return plan.as_seen(lambda schedule: as_seen(schedule, entry))


def is_active(plan: Plan, entry: JournalEntry | None) -> bool:
    """Whether a schedule that is on fires already, and does not wait for a reconcile to see it."""
    planned, seen = plan.schedule, seen_plan(plan, entry).schedule
    return planned is None or not planned.is_on or (seen is not None and seen.is_on)
