"""What holds of every legal schedule, of a conf or of a job, whatever is missed (H8 to H15, C28)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, Instant
from airflow_chronon.core.schedules.base import AnySchedule, CatchUp
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.serialization import any_schedule_from_json, any_schedule_to_json
from tests.support.both_schedules import INSTANTS, OLDEST, EitherSchedule, all_runs, policies, schedules, until

SLOW = settings(max_examples=100)


def plainly_missed(of: AnySchedule, last: Instant | None, now: Instant) -> list[Any]:
    """H8 to H11 as they are written, over the list of every run that is due."""
    policy = of.catch_up
    since = last
    if (
        isinstance(of, IntervalSchedule) and not policy.enabled
    ):  # what was before a job became active is not missed (H14)
        since = max((each for each in (last, of.active_since) if each is not None), default=now)
    oldest = of.newest_before(OLDEST)
    every = of.runs_between(OLDEST if oldest is None else oldest.fire, now + 1)
    due = [run for run in every if since is None or run.end > since]
    kept = [run for run in due if policy.skip_to is None or of.start_of(run) >= policy.skip_to]
    if not policy.enabled:
        return kept[-1:] if kept and kept[-1] == due[-1] else []
    return kept if policy.max_runs is None else kept[-policy.max_runs :]


@given(schedules(policies()), st.none() | INSTANTS, INSTANTS)
@settings(max_examples=600)
def test_what_is_missed_is_what_the_rules_say(of: EitherSchedule, last: Instant | None, now: Instant) -> None:  # H8-H11
    last = None if last is None else of.floor(last)
    assert [*of.missed(last, now)] == plainly_missed(of, last, now)


@given(schedules(policies()), st.none() | INSTANTS, INSTANTS)
@SLOW
def test_the_next_run_is_the_first_missed_one_or_the_first_to_come(
    of: EitherSchedule, last: Instant | None, now: Instant
) -> None:
    last = None if last is None else of.floor(last)
    run = of.next_run(last, now)
    missed = [*of.missed(last, now)]
    if missed:
        assert run == missed[0]
    elif run is not None:
        assert run.fire > now and run.end > (last or 0)
        assert run in [*of.runs_between(run.fire, run.fire + 1)]


@given(schedules(policies()), st.lists(INSTANTS, max_size=12))
@SLOW
def test_whatever_the_clock_does_no_open_interval_runs_and_none_runs_twice(
    of: EitherSchedule, ticks: list[Instant]
) -> None:  # C28
    last: Instant | None = None
    for now in ticks:  # in any order
        run = of.next_run(last, now)
        if run is None or run.fire > now:
            continue
        assert run.end <= run.fire <= now
        assert last is None or run.end > last
        last = run.end


@given(schedules())
@SLOW
def test_runs_tile_the_timeline_from_the_start_with_no_gap_and_no_overlap(of: EitherSchedule) -> None:  # C9, C10, H2
    runs = all_runs(of)
    assert not runs or runs[0].interval.start == of.first_start
    for earlier, later in pairwise(runs):
        assert earlier.interval.end == earlier.end == later.interval.start
        assert earlier.fire < later.fire


@given(schedules())
@SLOW
def test_driven_step_by_step_it_makes_the_same_runs(of: EitherSchedule) -> None:
    last: Instant | None = None
    for expected in all_runs(of):
        run = of.next_run(last, expected.fire)
        assert run == expected
        last = run.end


@given(schedules(), st.data())
@SLOW
def test_after_any_interruptions_and_catch_up_no_run_is_missing(of: EitherSchedule, data: st.DataObject) -> None:  # C28
    assert of.catch_up.start is not None
    end = until(of) - 1
    ticks = sorted(data.draw(st.lists(st.integers(of.catch_up.start, end), max_size=6)))
    last: Instant | None = None
    done: list[Any] = []
    for now in [*ticks, end]:
        for run in of.missed(last, now):
            done.append(run)
            last = run.end
            if data.draw(st.booleans()):
                break  # interrupted in mid catch-up
    done += of.missed(last, end)
    assert done == all_runs(of)


@given(schedules(), st.data())
@SLOW
def test_without_catch_up_an_outage_gives_exactly_one_run_the_newest(
    of: EitherSchedule, data: st.DataObject
) -> None:  # H8
    runs = all_runs(of)
    if len(runs) < 2:
        return
    lossy = of.with_catch_up(CatchUp(start=of.catch_up.start))
    if isinstance(lossy, IntervalSchedule):
        lossy = replace(lossy, active_since=None)
    last = data.draw(st.sampled_from(runs[:-1]))
    assert list(lossy.missed(last.end, until(of) - 1)) == [runs[-1]]


@given(schedules(), st.integers(1, 8), st.data())
@SLOW
def test_the_cap_keeps_exactly_the_newest_and_counts_after_the_skip_date(
    of: EitherSchedule, cap: int, data: st.DataObject
) -> None:  # H10, H11
    assert of.catch_up.start is not None
    now = until(of) - 1
    skip_to = data.draw(st.none() | st.integers(of.catch_up.start, now))
    kept = [run for run in all_runs(of) if skip_to is None or of.start_of(run) >= skip_to][-cap:]
    capped = of.with_catch_up(replace(of.catch_up, max_runs=cap, skip_to=skip_to))
    assert list(capped.missed(None, now)) == kept


@given(schedules(policies()), INSTANTS, st.integers(0, 4 * DAY))
@SLOW
def test_each_interval_follows_the_one_before_and_its_key_names_it(
    of: EitherSchedule, start: Instant, length: int
) -> None:  # C7, C27
    starts = list(of.starts(start, start + length))
    assert all(start <= each < start + length for each in starts)
    assert all(of.end_of(earlier) == later for earlier, later in pairwise(starts))
    for each in starts[:20]:
        assert of.start_of_key(of.label(each), now=of.end_of(each)) == each


@given(schedules(policies()))
@SLOW
def test_a_schedule_survives_serialisation(of: EitherSchedule) -> None:
    data = any_schedule_to_json(of)
    assert any_schedule_from_json(json.loads(json.dumps(data))) == of
    assert any_schedule_from_json(data) is any_schedule_from_json(dict(data or {}))
