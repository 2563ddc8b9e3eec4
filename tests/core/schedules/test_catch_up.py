"""What becomes of missed fires, of confs and of jobs alike (H8 to H15); the numbers are the source document's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_chronon.core.calendar.cron import Cron
from airflow_chronon.core.calendar.instants import DAY, HOUR, Instant
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.chronon import IllegalSchedule
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from tests.support.both_schedules import BOTH, Hourly, created, hourly_conf, hourly_job, next_fire
from tests.support.confs import at
from tests.support.jobs import window
from tests.support.schedules import schedule_of


def fires(day: str, *hours: int) -> list[str]:
    return [f"{day}T{hour:02}:00:00Z" for hour in hours]


@BOTH
class TestTheNumbersOfTheSourceDocument:
    def test_a_six_hour_outage_without_catch_up_gives_the_six_o_clock_run_alone(self, hourly: Hourly) -> None:  # H8
        of = hourly(start="2026-01-01")
        assert created(of, last="2026-06-03T00:00", now="2026-06-03T06:00") == ["2026-06-03T06:00:00Z"]
        run = of.next_run(at("2026-06-03T00:00"), at("2026-06-03T06:10"))
        assert window(run) == "[2026-06-03T05:00:00, 2026-06-03T06:00:00)"

    def test_a_six_hour_outage_with_catch_up_gives_every_run_oldest_first(self, hourly: Hourly) -> None:  # H9
        of = hourly(start="2026-01-01", enabled=True)
        assert created(of, last="2026-06-03T00:00", now="2026-06-03T06:00") == fires("2026-06-03", *range(1, 7))

    def test_a_week_long_outage_with_a_cap_of_24_gives_the_newest_24(self, hourly: Hourly) -> None:  # H10
        of = hourly(start="2026-01-01", enabled=True, max_runs=24)
        found = created(of, last="2026-05-27T12:00", now="2026-06-03T12:30")
        assert len(found) == 24
        assert (found[0], found[-1]) == ("2026-06-02T13:00:00Z", "2026-06-03T12:00:00Z")

    def test_a_week_long_outage_without_a_cap_gives_all_168(self, hourly: Hourly) -> None:  # H9
        of = hourly(start="2026-01-01", enabled=True)
        assert len(created(of, last="2026-05-27T12:00", now="2026-06-03T12:30")) == 168


@BOTH
class TestWithoutCatchUp:  # H8
    def test_lateness_under_one_interval_never_skips(self, hourly: Hourly) -> None:
        assert next_fire(hourly(), last="2026-06-10 08:00", now="2026-06-10 09:59:59") == "2026-06-10T09:00:00Z"

    def test_a_skip_date_holds_too(self, hourly: Hourly) -> None:  # H11
        of = hourly(start="2026-01-01", skip_to="2026-06-04")
        assert created(of, last="2026-05-27T12:00", now="2026-06-03T12:30") == []
        assert next_fire(of, last="2026-05-27T12:00", now="2026-06-03T12:30") == "2026-06-04T01:00:00Z"


@BOTH
class TestWithCatchUp:  # H9, H10, H11
    def test_every_missed_run_comes_oldest_first(self, hourly: Hourly) -> None:
        of = hourly(enabled=True, start="2026-06-10")
        assert created(of, last=None, now="2026-06-10 06:20") == fires("2026-06-10", *range(1, 7))
        assert created(of, last="2026-06-10 04:00", now="2026-06-10 06:20") == fires("2026-06-10", 5, 6)

    def test_the_cap_keeps_the_newest_of_what_was_missed_before_the_schedule_was_new(self, hourly: Hourly) -> None:
        of = hourly(enabled=True, max_runs=2, start="2026-06-10")
        assert created(of, last=None, now="2026-06-10 06:20") == fires("2026-06-10", 5, 6)

    def test_the_skip_date_drops_the_intervals_that_begin_before_it(self, hourly: Hourly) -> None:  # H11
        of = hourly(start="2026-01-01", enabled=True, skip_to="2026-06-03T10:00")
        assert created(of, last="2026-05-27T12:00", now="2026-06-03T12:00") == fires("2026-06-03", 11, 12)

    @pytest.mark.parametrize("skip_to", ["2026-06-03T10:00:01", "2026-06-03T10:30"])
    def test_a_skip_date_within_an_interval_drops_it(self, hourly: Hourly, skip_to: str) -> None:  # H11
        of = hourly(start="2026-01-01", enabled=True, skip_to=skip_to)
        assert created(of, last="2026-05-27T12:00", now="2026-06-03T12:00") == fires("2026-06-03", 12)

    @pytest.mark.parametrize("cap", [4, 5])
    def test_the_filter_comes_before_the_cap(self, hourly: Hourly, cap: int) -> None:  # H11
        of = hourly(start="2026-01-01", enabled=True, max_runs=cap, skip_to="2026-06-03T10:00")
        assert created(of, last="2026-05-27T12:00", now="2026-06-03T12:30") == fires("2026-06-03", 11, 12)

    def test_the_cap_lets_a_backlog_drain_without_dropping_more(self, hourly: Hourly) -> None:  # H10
        of = hourly(start="2026-01-01", enabled=True, max_runs=24)
        run, now = of.next_run(at("2026-05-27T12:00"), at("2026-06-03T12:00")), at("2026-06-03T12:00")
        drained = []
        while run is not None and run.fire <= now:
            drained.append(run.fire)
            now += 3  # twenty a minute
            run = of.next_run(run.end, now)
        assert drained == [at("2026-06-02T13:00") + hour * HOUR for hour in range(24)]

    def test_a_start_in_the_future_waits_for_it(self, hourly: Hourly) -> None:
        of = hourly(enabled=True, start="2026-06-11")
        assert created(of, last=None, now="2026-06-10 06:20") == []
        assert next_fire(of, last=None, now="2026-06-10 06:20") == "2026-06-11T01:00:00Z"

    def test_after_the_end_nothing_comes(self, hourly: Hourly) -> None:  # C29, H15
        of = hourly(enabled=True, start="2026-06-10", end="2026-06-10 03:00")
        assert created(of, last=None, now="2026-06-10 06:20") == fires("2026-06-10", 1, 2, 3)
        assert next_fire(of, last="2026-06-10 03:00", now="2026-06-10 06:20") is None

    def test_what_is_to_come_passes_over_what_was_missed(self, hourly: Hourly) -> None:
        run = hourly(start="2026-01-01", enabled=True).first_after(at("2026-06-03T10:00"))
        assert run is not None and run.fire == at("2026-06-03T11:00")
        assert hourly(start="2026-01-01", end="2026-02-01").first_after(at("2026-06-03T10:00")) is None


class TestConfs:
    def labels(self, text: str, now: str) -> list[str]:
        of = schedule_of(text, HOUR)
        return [of.key_of(run) for run in of.missed(None, at(now))]

    def test_a_new_one_runs_its_newest_closed_partition_at_once(self) -> None:  # H8
        assert self.labels("15 * * * *", "2026-06-10 09:20") == ["2026-06-10-08-00"]

    def test_before_its_fire_a_closed_partition_does_not_run(self) -> None:  # C8
        assert self.labels("15 * * * *", "2026-06-10 09:14") == ["2026-06-10-07-00"]

    def test_the_skip_date_avoids_the_run_at_once(self) -> None:  # H8
        of = hourly_conf(skip_to="2026-06-10 09:00")
        assert created(of, last=None, now="2026-06-10 09:20") == []
        assert next_fire(of, last=None, now="2026-06-10 09:20") == "2026-06-10T10:00:00Z"

    def test_a_weekly_one_catches_up_week_by_week(self) -> None:  # C9
        of = schedule_of("0 6 * * mon", DAY, enabled=True, start=at("2026-06-03"))
        runs = list(of.missed(None, at("2026-06-22 07:00")))
        assert [of.key_of(run) for run in runs] == ["2026-06-07", "2026-06-14", "2026-06-21"]
        assert runs[0].window.start == at("2026-06-03")

    def test_catch_up_without_a_start_cannot_exist(self) -> None:  # C29
        with pytest.raises(IllegalSchedule, match="begins") as refused:
            hourly_conf(enabled=True)
        assert refused.value.fault.rule == "C29"


class TestJobs:
    def test_the_short_first_interval_counts_by_its_start(self) -> None:  # H4, H11
        of = hourly_job(start="2026-06-03T10:05", enabled=True, skip_to="2026-06-03T10:05")
        assert created(of, last=None, now="2026-06-03T11:00") == ["2026-06-03T11:00:00Z"]
        later = replace(of, catch_up=replace(of.catch_up, skip_to=at("2026-06-03T10:06")))
        assert created(later, last=None, now="2026-06-03T11:00") == []

    def test_a_new_one_waits_for_its_next_fire(self) -> None:  # H8
        of = hourly_job(start="2026-01-01", active_since="2026-06-03T10:20")
        assert of.next_run(None, at("2026-06-03T10:20")) == of.run_at(at("2026-06-03T11:00"))
        assert created(of, last=None, now="2026-06-03T10:59") == []

    def test_a_new_one_that_met_an_outage_before_its_first_fire_runs_the_newest(self) -> None:  # H8
        of = hourly_job(start="2026-01-01", active_since="2026-06-03T10:20")
        assert created(of, last=None, now="2026-06-03T14:30") == ["2026-06-03T14:00:00Z"]

    def test_a_new_one_with_catch_up_replays_since_its_start(self) -> None:  # H13
        of = hourly_job(start="2026-06-03T07:30", enabled=True, active_since="2026-06-03T10:20")
        assert created(of, last=None, now="2026-06-03T10:20") == fires("2026-06-03", 8, 9, 10)

    def test_the_cap_holds_for_what_was_missed_before_it_was_active(self) -> None:  # H10, H13
        of = hourly_job(start="2026-01-01", enabled=True, max_runs=2, active_since="2026-06-03T10:20")
        assert created(of, last=None, now="2026-06-03T10:20") == fires("2026-06-03", 9, 10)

    def test_enabled_again_without_catch_up_nothing_before_that_moment_is_missed(self) -> None:  # H14
        of = hourly_job(start="2026-01-01", active_since="2026-06-03T10:20")
        assert created(of, last="2026-06-01T00:00", now="2026-06-03T10:25") == []
        assert of.next_run(at("2026-06-01"), at("2026-06-03T10:25")) == of.run_at(at("2026-06-03T11:00"))

    def test_enabled_again_with_catch_up_the_pause_is_replayed(self) -> None:  # H14
        of = hourly_job(start="2026-01-01", enabled=True, active_since="2026-06-03T10:20")
        assert len(created(of, last="2026-06-03T00:00", now="2026-06-03T10:25")) == 10

    def test_enabled_again_with_catch_up_a_skip_date_cuts_the_pause_off(self) -> None:  # H14
        of = hourly_job(start="2026-01-01", enabled=True, skip_to="2026-06-03T10:00", active_since="2026-06-03T10:20")
        assert created(of, last="2026-06-01T00:00", now="2026-06-03T10:25") == []
        assert created(of, last="2026-06-01T00:00", now="2026-06-03T11:00") == ["2026-06-03T11:00:00Z"]

    def test_without_a_start_it_begins_when_it_was_first_seen(self) -> None:  # H15
        of = hourly_job().seen(first=at("2026-06-03T10:05:17"), active_since=at("2026-06-03T10:05:17"))
        assert window(of.next_run(None, at("2026-06-03T10:06"))) == "[2026-06-03T10:05:17, 2026-06-03T11:00:00)"

    def test_without_a_start_catch_up_begins_when_it_was_first_seen(self) -> None:  # H15
        of = hourly_job(enabled=True)
        assert created(of, last=None, now="2026-06-03T10:25") == []
        seen = of.seen(first=at("2026-06-03T10:05:17"), active_since=at("2026-06-03T10:05:17"))
        assert [run.key for run in seen.missed(None, at("2026-06-03T12:30"))] == [
            "2026-06-03T10:05:17Z",
            "2026-06-03T11:00:00Z",
        ]

    def test_a_start_of_its_own_stays_when_it_is_seen(self) -> None:  # H15
        of = hourly_job(start="2026-06-03T10:30").seen(first=at("2026-06-03"), active_since=at("2026-06-03"))
        assert window(of.next_run(None, at("2026-06-03T01:00"))) == "[2026-06-03T10:30:00, 2026-06-03T11:00:00)"


class _Counting(Cron):
    """A cron that counts how often it is stepped back."""

    steps = 0

    def last_before(self, instant: Instant) -> Instant:
        _Counting.steps += 1
        return super().last_before(instant)


def test_a_year_of_missed_minutes_costs_no_walk() -> None:
    of = IntervalSchedule(_Counting("* * * * *"), CatchUp(True, 400_000, start=at("2025-01-01")))
    run = of.next_run(None, at("2026-01-01"))
    assert run is not None and run.fire == at("2026-01-01") - 399_999 * 60
    assert 0 < _Counting.steps < 10
