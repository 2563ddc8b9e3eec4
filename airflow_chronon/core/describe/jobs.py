"""The description of a job: its command, its fires, the window of each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

from airflow_chronon.core.calendar.instants import DAY, iso
from airflow_chronon.core.describe.description import REFERENCE_WEEK, RUNS_SHOWN, Description, Neighbours
from airflow_chronon.core.describe.format import markdown_table
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.job_runs import JobRun
from airflow_chronon.core.settings.runners import OPERATOR

NOT_ACTIVE = (
    "It does not fire yet: a job becomes active with its first reconcile, and so does one that was switched on again."
)


@dataclass(frozen=True)
class JobDescription(Description):
    """One job as text and as JSON."""

    source: ClassVar[str] = "Job file"
    plan: JobPlan

    @property
    def headline(self) -> str:
        schedule = self.plan.schedule
        if schedule is None:
            return "runs by hand only"
        begins = ", catch-up begins when the job is first seen" if _begins_when_seen(schedule) else ""
        return f"cron {schedule.cron.text!r}{begins}"

    @property
    def one_line(self) -> str:
        schedule = self.plan.schedule
        if schedule is None:
            return "Runs a command when someone starts it"
        if not schedule.enabled:
            return "Runs a command; switched off"
        window = "since the fire before" if schedule.lookback is None else f"of {schedule.lookback} seconds"
        return f"Runs a command at {schedule.cron.text} UTC, for the window {window}"

    @property
    def fields(self) -> dict[str, Any]:
        schedule = self.plan.schedule
        return {"cron": None if schedule is None else schedule.cron.text}

    def run_json(self, run: JobRun) -> dict[str, Any]:
        return {
            "fire": iso(run.fire),
            "partition_key": run.key,
            "logical_date": iso(run.logical_date),
            "start": iso(run.window.start),
            "end": iso(run.window.end),
        }

    def run_table(self, runs: Iterable[JobRun]) -> list[tuple[str, ...]]:
        rows = [(iso(run.fire), str(run.key), str(run.window)) for run in runs]
        return [("fire", "logical date", "window"), *rows] if rows else []

    def page_head(self) -> str:
        runner = self.plan.settings.runner.model_dump()
        if runner["kind"] == OPERATOR:
            return f"Operator: `{runner.get('class')}`"
        return f"Command: `{' '.join(runner.get('argv') or ())}`"

    def page_schedule(self, *, is_active: bool) -> Sequence[str]:
        schedule = self.plan.schedule
        if schedule is None:
            return ["None: it runs when someone starts it."]
        text = _sentences(schedule, self.plan)
        return [text] if is_active or not schedule.enabled else [NOT_ACTIVE, text]

    def page_sections(self, neighbours: Neighbours) -> Sequence[str]:
        return () if self.plan.schedule is None else _runs(self.plan.schedule)


def _sentences(schedule: IntervalSchedule, plan: JobPlan) -> str:
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
        first = "The first interval begins at" if catch_up.enabled else "No interval begins before"
        sentences.append(f"{first} {iso(catch_up.start)}")
    elif _begins_when_seen(schedule):
        sentences.append("The first interval begins when the job was first seen by a reconcile")
    if catch_up.end is not None:
        sentences.append(f"No fire comes after {iso(catch_up.end)}")
    if not catch_up.enabled:
        new = "There is no catch-up: a job that is new, or on again after a pause, waits for its next fire"
        sentences += [new, "After an outage the newest run that it missed is made, and no other"]
    else:
        kept = "" if catch_up.max_runs is None else f", the newest {catch_up.max_runs} of them"
        sentences.append(f"Missed runs are caught up{kept}")
    if catch_up.skip_to is not None:
        sentences.append(f"Intervals that begin before {iso(catch_up.skip_to)} are skipped")
    at_work = plan.settings.max_active_runs
    sentences.append(f"At most {at_work} work{'s' if at_work == 1 else ''} at a time; a fire that is due waits")
    return ". ".join(sentences) + "."


def _begins_when_seen(schedule: IntervalSchedule) -> bool:
    """Whether its catch-up has no start of its own (H15)."""
    return schedule.catch_up.enabled and schedule.catch_up.start is None


def _runs(schedule: IntervalSchedule) -> tuple[str, str]:
    """A heading and a table: a fixed week, so that the page stays as it is, or the first runs of what begins later."""
    start, end = schedule.catch_up.start, schedule.catch_up.end
    free = replace(schedule, enabled=True, catch_up=CatchUp(start=start, end=end))
    heading, since, until = "Runs of a reference week", REFERENCE_WEEK, REFERENCE_WEEK + 7 * DAY
    if start is not None and start > REFERENCE_WEEK:
        heading = "The first runs" if schedule.catch_up.enabled else "Runs from its start on"
        since, until = start, start + 366 * DAY
    runs = islice(free.runs_between(since, until), RUNS_SHOWN)
    rows = [(iso(run.fire), run.key, iso(run.window.start), iso(run.window.end)) for run in runs]
    table = markdown_table(("fire", "logical date", "window from", "to"), rows) if rows else "None."
    return f"#### {heading}", table
