"""Runs and waits as text, for task logs and DAG pages."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_chronon.core.calendar.instants import Instant, duration_text, iso
from airflow_chronon.core.partitions.labels import span
from airflow_chronon.core.schedules.base import AnySchedule
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.job_runs import JobRun
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule, Run
from airflow_chronon.core.schedules.request import RunRequest
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.errors import ChrononError

NO_WINDOW = "a manual run without a partition: no window, nothing is waited for, no partition is written"


def format_run(run: Run | None, schedule: PartitionedSchedule) -> str:
    """What a run is for: its window and what each mode writes."""
    if run is None:
        return NO_WINDOW
    modes = "; ".join(
        f"{mode.value} writes {schedule.spec.span(of.window.start, of.window.end)}" for mode, of in run.modes.items()
    )
    return f"partition {schedule.key_of(run)}, window {run.window}: {modes}"


def format_job_run(run: JobRun | None, schedule: IntervalSchedule | None) -> str:
    """What a run of a job is for."""
    if run is None:
        return "a manual run without a window: no window variable is set"
    bare = " as it is, neither moved nor widened, since the job has no schedule" if schedule is None else ""
    return f"logical date {iso(run.logical_date)}, window {run.window}{bare}"


def request_note(request: RunRequest, schedule: AnySchedule, *, now: Instant) -> str:
    """What a run is asked for; why it is refused, where that cannot be told."""
    try:
        if isinstance(schedule, PartitionedSchedule):
            run = schedule.requested(request, now=now)
            return "; ".join((format_run(run, schedule), *schedule.notes_on(request, now=now)))
        assert isinstance(schedule, IntervalSchedule), schedule
        return format_job_run(schedule.requested(request, now=now), schedule)
    except ChrononError as error:
        return str(error)


def format_wait(wait: Wait) -> str:
    """What one wait needs."""
    if wait.expression is not None:
        return f"{wait.table} until {wait.expression}"
    if wait.until is not None:
        return f"{wait.table} until its newest {wait.column} is at least {iso(wait.until)}"
    sub = f" with {', '.join(wait.sub)}" if wait.sub else ""
    back = f", lookback {wait.lookback} ({wait.policy.value})" if wait.lookback else ""
    lag = ""
    if wait.max_lag is not None:
        most = counted(wait.max_lag.partitions, "partition")
        lag = f", after {duration_text(wait.max_lag.after)} with one that is at most {most} behind (max_lag)"
    return f"{wait.table} {wait.column}={span(wait.labels)}{sub}{back}{lag}"


def counted(number: int, noun: str) -> str:
    """A number and its noun: ``1 run``, ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
