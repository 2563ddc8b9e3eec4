"""What becomes of the fires that a job missed (H8 to H11, H13 to H15); the numbers are the source document's."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_chronon.core.calendar.cron import Cron
from airflow_chronon.core.calendar.instants import DAY, HOUR, Instant
from airflow_chronon.core.calendar.quartz import read_cron
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import JobSchedule
from airflow_chronon.core.schedules.job_runs import JobRun
from airflow_chronon.core.schedules.serialization import job_schedule_from_json, job_schedule_to_json
from tests.support.confs import at
from tests.support.jobs import created, schedule, window

HOURLY = "0 0 * ? * * *"


class TestTheNumbersOfTheSourceDocument:
    def test_a_six_hour_outage_without_catch_up_gives_the_six_o_clock_run_alone(self) -> None:  # H8
        of = schedule(HOURLY, start="2026-01-01")
        assert created(of, last="2026-06-03T00:00", now="2026-06-03T06:00") == ["2026-06-03T06:00:00Z"]
        assert window(of.next_run(at("2026-06-03T00:00"), at("2026-06-03T06:10"))) == (
            "[2026-06-03T05:00:00, 2026-06-03T06:00:00)"
        )

    def test_a_six_hour_outage_with_catch_up_gives_every_run_oldest_first(self) -> None:  # H9
        of = schedule(HOURLY, start="2026-01-01", catchup=True)
        assert created(of, last="2026-06-03T00:00", now="2026-06-03T06:00") == [
            f"2026-06-03T0{hour}:00:00Z" for hour in range(1, 7)
        ]

    def test_a_week_long_outage_with_a_cap_of_24_gives_the_newest_24(self) -> None:  # H10
        of = schedule(HOURLY, start="2026-01-01", catchup=True, cap=24)
        fires = created(of, last="2026-05-27T12:00", now="2026-06-03T12:30")
        assert len(fires) == 24
        assert (fires[0], fires[-1]) == ("2026-06-02T13:00:00Z", "2026-06-03T12:00:00Z")

    def test_a_week_long_outage_without_a_cap_gives_all_168(self) -> None:  # H9
        of = schedule(HOURLY, start="2026-01-01", catchup=True)
        assert len(created(of, last="2026-05-27T12:00", now="2026-06-03T12:30")) == 168


class TestLimits:
    def test_the_skip_date_drops_the_intervals_that_begin_before_it(self) -> None:  # H11
        of = schedule(HOURLY, start="2026-01-01", catchup=True, skip_to="2026-06-03T10:00")
        assert created(of, last="2026-05-27T12:00", now="2026-06-03T12:00") == [
            "2026-06-03T11:00:00Z",
            "2026-06-03T12:00:00Z",
        ]

    def test_a_skip_date_within_an_interval_drops_it(self) -> None:  # H11
        of = schedule(HOURLY, start="2026-01-01", catchup=True, skip_to="2026-06-03T10:00:01")
        assert created(of, last="2026-05-27T12:00", now="2026-06-03T12:00") == ["2026-06-03T12:00:00Z"]

    def test_the_short_first_interval_counts_by_its_start(self) -> None:  # H4, H11
        of = schedule(HOURLY, start="2026-06-03T10:05", catchup=True, skip_to="2026-06-03T10:05")
        assert created(of, last=None, now="2026-06-03T11:00") == ["2026-06-03T11:00:00Z"]
        assert (
            created(
                replace(of, catch_up=replace(of.catch_up, skip_to=at("2026-06-03T10:06"))),
                last=None,
                now="2026-06-03T11:00",
            )
            == []
        )

    def test_the_filter_comes_before_the_cap(self) -> None:  # H11
        of = schedule(HOURLY, start="2026-01-01", catchup=True, cap=5, skip_to="2026-06-03T11:00")
        assert created(of, last="2026-05-27T12:00", now="2026-06-03T12:30") == ["2026-06-03T12:00:00Z"]

    def test_a_skip_date_holds_without_catch_up_too(self) -> None:  # H11
        of = schedule(HOURLY, start="2026-01-01", skip_to="2026-06-04")
        assert created(of, last="2026-05-27T12:00", now="2026-06-03T12:30") == []
        assert of.next_run(at("2026-05-27T12:00"), at("2026-06-03T12:30")) == of.run_at(at("2026-06-04T01:00"))

    def test_the_cap_lets_a_backlog_drain_without_dropping_more(self) -> None:  # H10
        of = schedule(HOURLY, start="2026-01-01", catchup=True, cap=24)
        run, now = of.next_run(at("2026-05-27T12:00"), at("2026-06-03T12:00")), at("2026-06-03T12:00")
        drained = []
        while run is not None and run.fire <= now:
            drained.append(run.fire)
            now += 3  # twenty a minute
            run = of.next_run(run.fire, now)
        assert drained == [at("2026-06-02T13:00") + hour * HOUR for hour in range(24)]


class TestNewAndPaused:
    def test_a_new_job_waits_for_its_next_fire(self) -> None:  # H8
        of = schedule(HOURLY, start="2026-01-01", active_since="2026-06-03T10:20")
        assert of.next_run(None, at("2026-06-03T10:20")) == of.run_at(at("2026-06-03T11:00"))
        assert created(of, last=None, now="2026-06-03T10:59") == []

    def test_a_new_job_that_met_an_outage_before_its_first_fire_runs_the_newest(self) -> None:  # H8
        of = schedule(HOURLY, start="2026-01-01", active_since="2026-06-03T10:20")
        assert created(of, last=None, now="2026-06-03T14:30") == ["2026-06-03T14:00:00Z"]

    def test_a_new_job_with_catch_up_replays_since_its_start(self) -> None:  # H13
        of = schedule(HOURLY, start="2026-06-03T07:30", catchup=True, active_since="2026-06-03T10:20")
        assert created(of, last=None, now="2026-06-03T10:20") == [
            f"2026-06-03T{hour}:00:00Z" for hour in ("08", "09", "10")
        ]

    def test_the_cap_holds_for_what_was_missed_before_the_schedule_was_new(self) -> None:  # H10, H13
        of = schedule(HOURLY, start="2026-01-01", catchup=True, cap=2, active_since="2026-06-03T10:20")
        assert created(of, last=None, now="2026-06-03T10:20") == ["2026-06-03T09:00:00Z", "2026-06-03T10:00:00Z"]

    def test_enabled_again_without_catch_up_nothing_before_that_moment_is_missed(self) -> None:  # H14
        of = schedule(HOURLY, start="2026-01-01", active_since="2026-06-03T10:20")
        assert created(of, last="2026-06-01T00:00", now="2026-06-03T10:25") == []
        assert of.next_run(at("2026-06-01"), at("2026-06-03T10:25")) == of.run_at(at("2026-06-03T11:00"))

    def test_enabled_again_with_catch_up_the_pause_is_replayed(self) -> None:  # H14
        of = schedule(HOURLY, start="2026-01-01", catchup=True, active_since="2026-06-03T10:20")
        assert len(created(of, last="2026-06-03T00:00", now="2026-06-03T10:25")) == 10

    def test_enabled_again_with_catch_up_a_skip_date_cuts_the_pause_off(self) -> None:  # H14
        of = schedule(
            HOURLY, start="2026-01-01", catchup=True, skip_to="2026-06-03T10:00", active_since="2026-06-03T10:20"
        )
        assert created(of, last="2026-06-01T00:00", now="2026-06-03T10:25") == []
        assert created(of, last="2026-06-01T00:00", now="2026-06-03T11:00") == ["2026-06-03T11:00:00Z"]

    def test_without_a_start_the_schedule_begins_when_it_was_first_seen(self) -> None:  # H15
        of = schedule(HOURLY).seen(first=at("2026-06-03T10:05:17"), active_since=at("2026-06-03T10:05:17"))
        assert window(of.next_run(None, at("2026-06-03T10:06"))) == "[2026-06-03T10:05:17, 2026-06-03T11:00:00)"

    def test_a_start_of_its_own_stays_when_it_is_seen(self) -> None:  # H15
        of = schedule(HOURLY, start="2026-06-03T10:30").seen(first=at("2026-06-03"), active_since=at("2026-06-03"))
        assert window(of.next_run(None, at("2026-06-03T01:00"))) == "[2026-06-03T10:30:00, 2026-06-03T11:00:00)"

    def test_what_is_to_come_passes_over_what_was_missed(self) -> None:
        of = schedule(HOURLY, start="2026-01-01", catchup=True)
        assert of.first_after(at("2026-06-03T10:00")) == of.run_at(at("2026-06-03T11:00"))
        ended = schedule(HOURLY, start="2026-01-01", end="2026-02-01")
        assert ended.first_after(at("2026-06-03T10:00")) is None


CRONS = st.sampled_from(
    [
        "0 0 * ? * *",
        "0 */20 * ? * *",
        "0 30 6 ? * MON-FRI",
        "0 0 4 1 * ?",
        "0 */15 9-17 ? * MON-FRI",
        "5/15 * * * *",
        "@daily",
        "0 0 0 ? * 1",
    ]
)
INSTANTS = st.integers(at("2026-05-25"), at("2026-06-08"))


@st.composite
def schedules(draw: st.DrawFn) -> JobSchedule:
    start, end, skip_to, active_since = (draw(st.none() | INSTANTS) for _ in range(4))
    catchup = start is not None and draw(st.booleans())
    lookback = draw(st.none() | st.integers(1, 3 * DAY))
    offset = draw(st.sampled_from([0, 0, 1, HOUR, 25 * HOUR])) if lookback is None else 0
    cap = draw(st.none() | st.integers(1, 40))
    return JobSchedule(
        read_cron(draw(CRONS)), CatchUp(catchup, cap, skip_to, start, end), offset, lookback, active_since=active_since
    )


def plainly_missed(of: JobSchedule, last: Instant | None, now: Instant) -> list[JobRun]:
    """H8 to H11 as they are written, over the list of every run that is due."""
    policy = of.catch_up
    if policy.enabled:
        since = last if last is not None else 0
    elif last is None and of.active_since is None:
        return []
    else:
        since = max(each for each in (last, of.active_since) if each is not None)
    due = [run for run in of.runs_between(at("2025-01-01"), now + 1) if run.fire > since]
    kept = [run for run in due if policy.skip_to is None or run.logical_date >= policy.skip_to]
    if not policy.enabled:
        return kept[-1:] if kept and kept[-1] == due[-1] else []
    return kept if policy.max_runs is None else kept[-policy.max_runs :]


class TestProperties:
    @given(schedules(), INSTANTS)
    def test_windows_tile_and_ends_only_grow(self, of: JobSchedule, start: Instant) -> None:  # H2, H4
        runs = [*of.runs_between(start, start + 4 * DAY)]
        for run, following in pairwise(runs):
            assert following.logical_date == run.fire and following.fire > run.fire
            if of.lookback is None:
                assert following.window.start == run.window.end
                assert run.window.end - run.window.start == run.fire - run.logical_date
            else:
                assert run.window.end == run.fire and run.window.end - run.window.start == of.lookback
        for run in runs:
            assert run.fire <= (of.catch_up.end or run.fire)
            assert run.logical_date >= (of.catch_up.start or 0)
            assert of.run_of(run.logical_date) == run

    @given(schedules(), st.none() | INSTANTS, INSTANTS)
    @settings(max_examples=400)
    def test_what_is_missed_is_what_the_rules_say(
        self, of: JobSchedule, last: Instant | None, now: Instant
    ) -> None:  # H8-H11
        assert [*of.missed(last, now)] == plainly_missed(of, last, now)

    @given(schedules(), st.none() | INSTANTS, INSTANTS)
    def test_the_next_run_is_the_first_missed_one_or_the_first_to_come(
        self, of: JobSchedule, last: Instant | None, now: Instant
    ) -> None:
        run = of.next_run(last, now)
        missed = [*of.missed(last, now)]
        if missed:
            assert run == missed[0]
        elif run is not None:
            assert run.fire > now and run.fire > (last or 0)
            assert run in [*of.runs_between(run.fire, run.fire + 1)]

    @given(schedules(), INSTANTS, st.integers(0, 2 * DAY))
    def test_a_run_is_never_created_twice(self, of: JobSchedule, last: Instant, passed: int) -> None:  # C28
        run = of.next_run(last, last + passed)
        assert run is None or run.fire > last

    @given(schedules())
    def test_a_schedule_survives_serialisation(self, of: JobSchedule) -> None:
        data: dict[str, Any] = job_schedule_to_json(of)
        assert job_schedule_from_json(data) == of
        assert job_schedule_from_json(data) is job_schedule_from_json(dict(data))


class _Counting(Cron):
    """A cron that counts how often it is stepped back."""

    steps = 0

    def last_before(self, instant: Instant) -> Instant:
        _Counting.steps += 1
        return super().last_before(instant)


def test_a_year_of_missed_minutes_costs_no_walk() -> None:
    of = JobSchedule(_Counting("* * * * *"), CatchUp(True, 400_000, start=at("2025-01-01")))
    run = of.next_run(None, at("2026-01-01"))
    assert run is not None and run.fire == at("2026-01-01") - 399_999 * 60
    assert 0 < _Counting.steps < 10
