"""What a deployment runs first: what the scheduler creates as soon as it knows a conf, and within a day from then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from airflow_chronon.cli.output import columns
from airflow_chronon.core.calendar.instants import DAY, Instant, iso
from airflow_chronon.core.confs.plan import Plan, Verdict
from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.describe.plans import describe
from airflow_chronon.core.schedules.base import AnySchedule, ScheduledRun

_MOST = 10_000  #: runs of one conf that are counted


@dataclass(frozen=True)
class FirstDay:
    """The runs of one conf or job that is new at an instant, as far as they fire within a day."""

    plan: Plan
    at_once: tuple[ScheduledRun, ...]  #: what it missed: one run, or with catch-up all since its start
    later: tuple[ScheduledRun, ...]

    @property
    def json(self) -> dict[str, Any]:
        described = describe(self.plan)
        return {"at_once": self._few(self.at_once, described), "later": self._few(self.later, described)}

    def _few(self, runs: tuple[ScheduledRun, ...], described: Any) -> dict[str, Any]:
        return {"count": len(runs), "first": described.run_json(runs[0]) if runs else None}

    def row(self, key: str) -> tuple[str, ...]:
        """Its row in a table for people."""
        schedule: AnySchedule | None = self.plan.schedule
        assert schedule is not None
        at_once = f"partition {schedule.key_of(self.at_once[-1])}" if self.at_once else "nothing"
        if len(self.at_once) > 1:
            at_once = f"{_counted(self.at_once)}, up to {at_once}"
        later = f"{_counted(self.later)}, the first {iso(self.later[0].fire)}" if self.later else "nothing"
        return (key, at_once, later)


def first_days(verdicts: Mapping[str, Verdict], *, now: Instant) -> dict[str, FirstDay]:
    """The first day of every good conf and job that has a schedule, by its key."""
    found: dict[str, FirstDay] = {}
    for key, verdict in verdicts.items():
        plan = verdict.plan
        schedule: AnySchedule | None = None if plan is None else plan.schedule
        if plan is None or schedule is None or not schedule.is_on or plan.is_left_out:
            continue
        later = filter(schedule.is_kept, schedule.runs_between(now + 1, now + DAY + 1))
        found[key] = FirstDay(plan, tuple(islice(schedule.missed(None, now), _MOST)), tuple(islice(later, _MOST)))
    return found


def first_day_lines(days: Mapping[str, FirstDay], *, now: Instant) -> list[str]:
    """The first day of all of them, for people."""
    if not days:
        return ["no good conf has a schedule: nothing runs unless a partition is asked for"]
    head = ("conf", "at once", f"until {iso(now + DAY)}")
    rows = columns([head, *(day.row(key) for key, day in days.items())], indent=2)
    return [f"what runs, were it deployed at {iso(now)}:", *rows]


def _counted(runs: tuple[ScheduledRun, ...]) -> str:
    return f"{_MOST} runs or more" if len(runs) == _MOST else counted(len(runs), "run")
