"""What a tree of confs and jobs asks of an Airflow: its DAGs, the runs of its busiest hour, the waits of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from airflow_chronon.core.calendar.instants import DAY, HOUR, Instant
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan


@dataclass(frozen=True, kw_only=True)
class Load:
    """How much there is of everything."""

    dags: int
    waiting: int  #: runs at once that wait for data, when one run of each conf does
    waits: int  #: their deferred tasks
    runs_a_day: int
    runs_in_busiest_hour: int
    work_in_busiest_hour: int  #: tasks that hold a worker, those that check what has landed left out

    def scaled(self, dags: int) -> Load:
        """The same mixture with another number of DAGs."""
        if not self.dags:
            return self

        def part(count: int) -> int:
            return ceil(count * dags / self.dags)

        return Load(
            dags=dags,
            waiting=part(self.waiting),
            waits=part(self.waits),
            runs_a_day=part(self.runs_a_day),
            runs_in_busiest_hour=part(self.runs_in_busiest_hour),
            work_in_busiest_hour=part(self.work_in_busiest_hour),
        )


def load_of(plans: Iterable[Plan], *, day: Instant) -> Load:
    """The load of good confs and jobs on the day that starts at ``day``: best one on which weekly and monthly schedules fire too."""
    built = [plan for plan in plans if not plan.is_left_out]
    runs, work = Counter[int](), Counter[int]()
    fires: dict[str, Counter[int]] = {}
    for plan in built:
        if plan.schedule is None or not plan.schedule.is_on:
            continue
        known = repr(plan.schedule)
        if known not in fires:
            fires[known] = Counter((run.fire - day) // HOUR for run in plan.schedule.runs_between(day, day + DAY))
        jobs = len(plan.modes) if isinstance(plan, ConfPlan) else 1
        for hour, count in fires[known].items():
            runs[hour] += count
            work[hour] += count * jobs
    tables = [
        len({each.table for found in plan.dependencies.values() for each in found})
        for plan in built
        if isinstance(plan, ConfPlan) and plan.modes
    ]
    return Load(
        dags=len(built),
        waiting=sum(1 for count in tables if count),
        waits=sum(tables),
        runs_a_day=runs.total(),
        runs_in_busiest_hour=max(runs.values(), default=0),
        work_in_busiest_hour=max(work.values(), default=0),
    )
