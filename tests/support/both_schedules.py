"""Schedules of confs and of jobs for tests of what they share: hourly ones, and any legal one by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant, iso
from airflow_chronon.core.calendar.quartz import read_cron
from airflow_chronon.core.schedules.base import AnySchedule, CatchUp
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from tests.support.confs import at
from tests.support.schedules import schedule_of

EitherSchedule: TypeAlias = PartitionedSchedule | IntervalSchedule
Hourly = Callable[..., AnySchedule]


def hourly_conf(**catch_up: Any) -> PartitionedSchedule:
    """A conf on hourly partitions that fires on the hour; instants of the policy are text."""
    return schedule_of("0 * * * *", HOUR, **_instants(catch_up))


def hourly_job(*, active_since: str | None = None, **catch_up: Any) -> IntervalSchedule:
    """A job that fires on the hour, as the source document writes it."""
    since = None if active_since is None else at(active_since)
    return IntervalSchedule(read_cron("0 0 * ? * * *"), CatchUp(**_instants(catch_up)), active_since=since)


#: For tests with an argument ``hourly``: the two have the same fires, intervals and ends.
BOTH = pytest.mark.parametrize("hourly", [pytest.param(hourly_conf, id="conf"), pytest.param(hourly_job, id="job")])


def created(of: AnySchedule, *, last: str | None, now: str) -> list[str]:
    """The fires that are created at ``now`` after the run that ended at ``last``, oldest first."""
    return [iso(run.fire) for run in of.missed(None if last is None else at(last), at(now))]


def next_fire(of: AnySchedule, *, last: str | None, now: str) -> str | None:
    """The fire of the run that is created next, now or later."""
    run = of.next_run(None if last is None else at(last), at(now))
    return None if run is None else iso(run.fire)


def _instants(catch_up: dict[str, Any]) -> dict[str, Any]:
    return {name: at(value) if isinstance(value, str) else value for name, value in catch_up.items()}


SUB_DAILY = {  # an interval and a cron of that cadence, its phase anywhere
    15 * MINUTE: "7/15 * * * *",
    30 * MINUTE: "5,35 * * * *",
    HOUR: "50 * * * *",
    2 * HOUR: "10 1-23/2 * * *",
    3 * HOUR: "15 1-22/3 * * *",
    6 * HOUR: "0 4-22/6 * * *",
    12 * HOUR: "30 11,23 * * *",
}
DAILY = (
    "0 0 * * *",
    "0 2 * * *",
    "59 23 * * *",
    "0 6 * * mon",
    "30 1 * * mon-fri",
    "0 6 1 * *",
    "0 6 l * *",
    "0 6 1,15 * wed",
    "0 0 * jan,jun *",
)
JOB_CRONS = (
    "0 0 * ? * *",
    "0 */20 * ? * *",
    "0 30 6 ? * MON-FRI",
    "0 0 4 1 * ?",
    "0 */15 9-17 ? * MON-FRI",
    "5/15 * * * *",
    "@daily",
    "0 0 0 ? * 1",
)
OLDEST = at("2026-05-25")  #: no start, end or skip date of the schedules below is older
INSTANTS = st.integers(OLDEST, at("2026-06-08"))


@st.composite
def policies(draw: st.DrawFn) -> CatchUp:
    start, end, skip_to = (draw(st.none() | INSTANTS) for _ in range(3))
    return CatchUp(start is not None and draw(st.booleans()), draw(st.none() | st.integers(1, 40)), skip_to, start, end)


#: With catch-up and a start, and nothing that drops a run.
LOSSLESS = INSTANTS.map(lambda start: CatchUp(enabled=True, start=start))


@st.composite
def conf_schedules(draw: st.DrawFn, catch_up: st.SearchStrategy[CatchUp] = LOSSLESS) -> PartitionedSchedule:
    """Any legal schedule of a conf: sub-daily, daily, weekly, monthly, with one mode or two."""
    interval = draw(st.sampled_from([*SUB_DAILY, DAY, DAY, DAY]))
    modes = draw(st.sampled_from([[Mode.BACKFILL], [Mode.UPLOAD], [Mode.BACKFILL, Mode.UPLOAD]]))
    texts = [SUB_DAILY[interval]] if interval in SUB_DAILY else list(DAILY)
    picked = {mode: draw(st.sampled_from(texts)) for mode in modes}
    policy, offset = draw(catch_up), draw(st.integers(0, interval // MINUTE - 1)) * MINUTE
    return schedule_of(picked, interval, offset).with_catch_up(policy)


@st.composite
def job_schedules(draw: st.DrawFn, catch_up: st.SearchStrategy[CatchUp] = LOSSLESS) -> IntervalSchedule:
    """Any legal schedule of a job, its window moved or widened."""
    lookback = draw(st.none() | st.integers(1, 3 * DAY))
    offset = draw(st.sampled_from([0, 0, 1, HOUR, 25 * HOUR])) if lookback is None else 0
    cron, active_since = read_cron(draw(st.sampled_from(JOB_CRONS))), draw(st.none() | INSTANTS)
    return IntervalSchedule(cron, draw(catch_up), offset, lookback, active_since=active_since)


def schedules(catch_up: st.SearchStrategy[CatchUp] = LOSSLESS) -> st.SearchStrategy[EitherSchedule]:
    """Any legal schedule, of a conf or of a job."""
    return conf_schedules(catch_up) | job_schedules(catch_up)


def until(of: EitherSchedule) -> Instant:
    """A while after the start: long enough for coarse schedules, short enough for fine ones."""
    assert of.catch_up.start is not None
    is_coarse = len(of.cron.times) == 1 if isinstance(of, IntervalSchedule) else of.grid.interval == DAY
    return of.catch_up.start + (200 * DAY if is_coarse else 4 * DAY)


def all_runs(of: EitherSchedule) -> list[Any]:
    """Every run from the start for a while."""
    assert of.catch_up.start is not None
    return list(of.runs_between(of.catch_up.start, until(of)))
