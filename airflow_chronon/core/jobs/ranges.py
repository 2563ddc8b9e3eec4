"""Ranges of a job's intervals as people type them (C27): their logical dates, or days."""

from __future__ import annotations

import re

from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow, iso, parse_instant
from airflow_chronon.core.partitions.limits import limited
from airflow_chronon.core.partitions.parse import IllegalPartition
from airflow_chronon.core.schedules.intervals import JobSchedule
from airflow_chronon.errors import Fault

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def read_intervals(start: str, end: str, schedule: JobSchedule) -> TimeWindow:
    """From the logical date ``start`` to the end of the interval that begins at ``end``, both inclusive.

    A day as a start means its first logical date, or the next one after it; as an end, its last. Raises ``ChrononError``
    for an instant at which no interval begins, with the two nearest, and for a range without any or of too many.
    """
    lower, upper = _bound(start, schedule, field="start_ds"), _bound(end, schedule, field="end_ds", is_end=True)
    if upper < lower:
        raise _refused("end_ds", f"{end!r} is before start_ds {start!r}", "swap them")
    found = limited(schedule.each_start(lower, upper + 1), what="intervals")
    if not found:
        first = schedule.end_of(lower)
        problem = f"no interval of {schedule.cron.text!r} begins from {start!r} to {end!r}"
        raise _refused("end_ds", problem, f"the next one begins at {iso(first)}")
    return TimeWindow(found[0], schedule.end_of(found[-1]))


def check_ended(window: TimeWindow, *, now: Instant) -> None:
    """Refuse a range whose last interval has not ended."""
    if window.end > now:
        problem = f"its last interval ends at {iso(window.end)}, which has not come at {iso(now)}"
        raise _refused("end_ds", problem, "end earlier")


def _bound(text: str, schedule: JobSchedule, *, field: str, is_end: bool = False) -> Instant:
    cleaned = text.strip()
    try:
        instant = parse_instant(cleaned)
    except ValueError:
        raise _refused(
            field, f"{text!r} is not a logical date", "write it like 2026-01-15T03:00:00Z, or a day"
        ) from None
    if _DAY.fullmatch(cleaned):
        return instant + DAY - 1 if is_end else instant
    return schedule.run_of(instant).logical_date


def _refused(field: str, problem: str, remedy: str) -> IllegalPartition:
    return IllegalPartition(Fault("C27", field, problem, remedy))
