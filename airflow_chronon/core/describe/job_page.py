"""The page of a job: what people see in its DAG's documentation. Like a conf's, it shows a fixed reference week."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import islice

from airflow_chronon.core.calendar.instants import DAY, iso
from airflow_chronon.core.describe.page import REFERENCE_WEEK, markdown_table
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import JobSchedule

_RUNS_SHOWN = 8
NOT_ACTIVE = "It does not fire yet: a job is armed by its first reconcile, and so is one that was switched on again."


def job_page(plan: JobPlan, *, is_active: bool = True) -> str:
    """Markdown of one job: its command, its schedule in words, the runs of a reference week."""
    argv = " ".join(plan.settings.runner.model_dump().get("argv") or ())
    parts = [f"### {plan.key}", f"Command: `{argv}`", "#### Schedule"]
    schedule = plan.schedule
    if schedule is None:
        parts.append("None: it runs when someone starts it.")
    else:
        parts += [_schedule(schedule, plan), *_runs(schedule)]
        if schedule.enabled and not is_active:
            parts.insert(3, NOT_ACTIVE)
    if plan.warnings:
        parts += ["#### Warnings", "\n".join(f"* {warning}" for warning in plan.warnings)]
    parts.append(f"Job file `{plan.file}`, content {_digest(plan)}.")
    return "\n\n".join(parts)


def _schedule(schedule: JobSchedule, plan: JobPlan) -> str:
    catch_up = schedule.catch_up
    sentences = [f"Fires at `{schedule.cron.text}` (UTC)" if schedule.enabled else "Switched off (`enabled: false`)"]
    if schedule.lookback is not None:
        sentences.append(f"Each run's window is the {schedule.lookback} seconds before its fire")
    elif schedule.offset:
        sentences.append(
            f"Each run's window is the time since the fire before, moved back by {schedule.offset} seconds"
        )
    else:
        sentences.append("Each run's window is the time since the fire before")
    if catch_up.start is not None:
        sentences.append(f"The first interval begins at {iso(catch_up.start)}")
    if catch_up.end is not None:
        sentences.append(f"No fire comes after {iso(catch_up.end)}")
    if not catch_up.enabled:
        sentences.append("After an outage only the newest run is made")
    else:
        kept = "" if catch_up.max_runs is None else f", the newest {catch_up.max_runs} of them"
        sentences.append(f"Missed runs are caught up{kept}")
    if catch_up.skip_to is not None:
        sentences.append(f"Intervals that begin before {iso(catch_up.skip_to)} are skipped")
    at_work = plan.settings.max_active_runs
    sentences.append(f"At most {at_work} work{'s' if at_work == 1 else ''} at a time; a fire that is due waits")
    return ". ".join(sentences) + "."


def _runs(schedule: JobSchedule) -> tuple[str, str]:
    """A heading and a table: a fixed week, so that the page stays as it is, or the first runs of what begins later."""
    start, end = schedule.catch_up.start, schedule.catch_up.end
    free = replace(schedule, enabled=True, catch_up=CatchUp(start=start, end=end))
    heading, since, until = "Runs of a reference week", REFERENCE_WEEK, REFERENCE_WEEK + 7 * DAY
    if start is not None and start > REFERENCE_WEEK:
        heading, since, until = "The first runs", start, start + 366 * DAY
    runs = islice(free.runs_between(since, until), _RUNS_SHOWN)
    rows = [(iso(run.fire), run.key, iso(run.window.start), iso(run.window.end)) for run in runs]
    table = markdown_table(("fire", "logical date", "window from", "to"), rows) if rows else "None."
    return f"#### {heading}", table


def _digest(plan: JobPlan) -> str:
    """Tells two contents of a job file apart, so that a changed command makes a new DAG version."""
    text = json.dumps(plan.job.text.raw, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
