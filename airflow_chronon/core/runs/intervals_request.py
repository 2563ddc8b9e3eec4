"""Which interval a run of a job is for: by its key, its data interval, its parameters, or none (H2, H7, H18)."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso, parse_instant
from airflow_chronon.core.runs.windows import IllegalWindow, asked_window
from airflow_chronon.core.schedules.intervals import JobSchedule, illegal_key
from airflow_chronon.errors import Fault


@dataclass(frozen=True)
class JobWindow:
    """What a run of a job is for."""

    window: TimeWindow
    logical_date: Instant
    is_bare: bool = False  #: its interval as it is, since no schedule says how to move or widen it (H2, H3)


@dataclass(frozen=True)
class JobRunRequest:
    """What is known of an Airflow run of a job; empty text is absent."""

    partition_key: str = ""
    interval: TimeWindow | None = None  #: the data interval, of a scheduled run or given by hand
    start_time: str = ""
    end_time: str = ""
    logical_date: str = ""


def requested_window(request: JobRunRequest, schedule: JobSchedule | None, *, now: Instant) -> JobWindow | None:
    """The window that is asked for; None for a manual run without one (H7).

    The key wins over what Airflow says besides. Nothing is refused because a logical date repeats (H18). Raises
    ``ChrononError`` for a request that contradicts itself, half a window, a key that names no interval of the schedule,
    and one whose fire has not come.
    """
    given = request.start_time or request.end_time or request.logical_date
    if request.partition_key and given:
        problem = f"both a partition key {request.partition_key!r} and start_time, end_time or logical_date are given"
        raise IllegalWindow(Fault("H7", "params", problem, "give the key, or the window, not both"))
    if request.partition_key:
        return _of_key(request, schedule, now)
    if given:
        return _of_params(request)
    if request.interval is not None:  # given by hand: it is the window (H7)
        return JobWindow(request.interval, request.interval.start)
    return None


def _of_key(request: JobRunRequest, schedule: JobSchedule | None, now: Instant) -> JobWindow:
    interval = request.interval
    if interval is not None and iso(interval.start) == request.partition_key:
        return _of_interval(interval, schedule)  # a scheduled run: its interval holds, whatever the cron says today
    if schedule is None:
        problem = f"a partition key {request.partition_key!r} is given, and the job has no schedule"
        raise illegal_key(problem, "give start_time and end_time instead")
    run = schedule.run_of(schedule.start_of_key(request.partition_key, now=now))
    return JobWindow(run.window, run.logical_date)


def _of_interval(interval: TimeWindow, schedule: JobSchedule | None) -> JobWindow:
    if schedule is None:
        return JobWindow(interval, interval.start, is_bare=True)
    run = schedule.run(interval.start, interval.end)
    return JobWindow(run.window, run.logical_date)


def _of_params(request: JobRunRequest) -> JobWindow:
    window = asked_window(_instant(request, "start_time"), _instant(request, "end_time"))
    logical_date = _instant(request, "logical_date")
    if window is None:
        problem = f"a logical date {request.logical_date!r} is given without a window"
        raise IllegalWindow(Fault("H7", "logical_date", problem, "give start_time and end_time too"))
    return JobWindow(window, window.start if logical_date is None else logical_date)


def _instant(request: JobRunRequest, field: str) -> Instant | None:
    text = getattr(request, field)
    try:
        return parse_instant(text) if text else None
    except ValueError:
        remedy = "write it like 2026-01-15T03:00:00Z"
        raise IllegalWindow(Fault("H7", field, f"{text!r} is no instant", remedy)) from None
