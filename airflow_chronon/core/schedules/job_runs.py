"""Runs of jobs: scheduled ones, and those started by hand over a given window or without one (H2, H7)."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso, parse_instant
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.partitions.parse import IllegalPartition
from airflow_chronon.core.schedules.request import IllegalWindow, RunRequest, asked_window
from airflow_chronon.errors import Fault


@dataclass(frozen=True)
class JobRun:
    """One run of a job: it is named by its logical date."""

    fire: Instant  #: F, the end of its interval: when it is due
    logical_date: Instant  #: P, the start of its interval
    window: TimeWindow  #: the data it is for: the interval, moved (H2) or widened (H3), or what was given by hand (H7)

    @property
    def key(self) -> PartitionKey:
        """The partition key: the logical date as ISO-8601 with ``Z``."""
        return PartitionKey(iso(self.logical_date))

    @property
    def interval(self) -> TimeWindow:
        """From the fire before, or the schedule's start, to its own (H2)."""
        return TimeWindow(self.logical_date, self.fire)

    @property
    def end(self) -> Instant:
        """Where its interval ends: at its fire."""
        return self.fire


def run_without_schedule(request: RunRequest) -> JobRun | None:
    """The run of a job that has no schedule, or none any more: the window that is given, or the interval of a scheduled
    run as it is, since nothing says how to move or widen it (H2, H3, H7). Raises ``ChrononError`` as a schedule would."""
    interval = request.interval
    if not request.partition_key:
        return run_by_hand(request)
    refuse_key_and_window(request)
    if interval is None or iso(interval.start) != request.partition_key:
        problem = f"a partition key {request.partition_key!r} is given, and the job has no schedule"
        raise illegal_key(problem, "give start_time and end_time instead")
    return JobRun(interval.end, interval.start, interval)


def refuse_key_and_window(request: RunRequest) -> None:
    """Refuse a request with a key that gives a window too (H7)."""
    if request.start_time or request.end_time or request.logical_date:
        problem = f"both a partition key {request.partition_key!r} and start_time, end_time or logical_date are given"
        raise IllegalWindow(Fault("H7", "params", problem, "give the key, or the window, not both"))


def run_by_hand(request: RunRequest) -> JobRun | None:
    """The run over a window that was given, in parameters or as a data interval; None without one (H7)."""
    window = asked_window(_instant(request.start_time, "start_time"), _instant(request.end_time, "end_time"))
    logical_date = _instant(request.logical_date, "logical_date")
    if window is None and logical_date is not None:
        problem = f"a logical date {request.logical_date!r} is given without a window"
        raise IllegalWindow(Fault("H7", "logical_date", problem, "give start_time and end_time too"))
    window = window or request.interval
    return (
        None if window is None else JobRun(window.end, window.start if logical_date is None else logical_date, window)
    )


def _instant(text: str, field: str) -> Instant | None:
    try:
        return parse_instant(text) if text else None
    except ValueError:
        remedy = "write it like 2026-01-15T03:00:00Z"
        raise IllegalWindow(Fault("H7", field, f"{text!r} is not an instant", remedy)) from None


def illegal_key(problem: str, remedy: str) -> IllegalPartition:
    """What is wrong with a partition key of a job (C27)."""
    return IllegalPartition(Fault("C27", "partition_key", problem, remedy))
