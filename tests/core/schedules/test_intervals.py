"""The window of each run of a job, and which fires it has (H2, H3, H4, H15); the numbers are the source document's."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given

from airflow_chronon.core.calendar.instants import DAY, HOUR, LONGEST_WINDOW, Instant, iso
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import IllegalJobSchedule, IntervalSchedule, NoSuchInterval
from airflow_chronon.core.schedules.request import IllegalWindow, asked_window
from airflow_chronon.errors import ChrononError
from tests.support.both_schedules import INSTANTS, job_schedules, policies
from tests.support.confs import at
from tests.support.jobs import schedule, window

HOURLY = "0 0 * ? * * *"  # as the source document writes it


class TestTheNumbersOfTheSourceDocument:
    def test_the_hourly_run_of_ten_o_clock_has_the_last_hour(self) -> None:  # H2
        run = schedule(HOURLY).run_at(at("2026-06-03T10:00"))
        assert window(run) == "[2026-06-03T09:00:00, 2026-06-03T10:00:00)"
        assert iso(run.logical_date) == run.key == "2026-06-03T09:00:00Z"

    def test_the_daily_run_of_midnight_has_yesterday(self) -> None:  # H2
        run = schedule("@daily").run_at(at("2026-06-03"))
        assert window(run) == "[2026-06-02T00:00:00, 2026-06-03T00:00:00)"

    def test_a_start_at_five_past_ten_gives_a_short_first_run(self) -> None:  # H4
        first, second = [
            *schedule(HOURLY, start="2026-06-03T10:05").runs_between(at("2026-06-03"), at("2026-06-03T13:00"))
        ]
        assert (iso(first.fire), window(first)) == (
            "2026-06-03T11:00:00Z",
            "[2026-06-03T10:05:00, 2026-06-03T11:00:00)",
        )
        assert first.key == "2026-06-03T10:05:00Z"
        assert window(second) == "[2026-06-03T11:00:00, 2026-06-03T12:00:00)"

    def test_an_offset_of_25_hours_moves_the_window_and_never_widens_it(self) -> None:  # H2
        run = schedule(HOURLY, offset=25 * 3600).run_at(at("2026-06-03T11:00"))
        assert window(run) == "[2026-06-02T09:00:00, 2026-06-02T10:00:00)"
        assert run.key == "2026-06-03T10:00:00Z"

    def test_an_offset_of_an_hour_gives_the_hour_before(self) -> None:  # H2
        run = schedule(HOURLY, offset=3600).run_at(at("2026-06-03T10:00"))
        assert window(run) == "[2026-06-03T08:00:00, 2026-06-03T09:00:00)"


class TestWindows:
    def test_a_lookback_of_25_hours_is_the_trailing_window_that_the_example_wants(self) -> None:  # H3
        run = schedule(HOURLY, lookback=25 * HOUR).run_at(at("2026-06-03T11:00"))
        assert window(run) == "[2026-06-02T10:00:00, 2026-06-03T11:00:00)"
        assert run.key == "2026-06-03T10:00:00Z"

    def test_no_offset_and_an_offset_of_nothing_are_alike(self) -> None:  # H2
        assert schedule(HOURLY).run_at(at("2026-06-03T10:00")) == schedule(HOURLY, offset=0).run_at(
            at("2026-06-03T10:00")
        )

    @pytest.mark.parametrize(
        ("cron", "fire", "expected"),
        [
            pytest.param(
                "0 0 4 1 * ?", "2026-03-01T04:00", "[2026-02-01T04:00:00, 2026-03-01T04:00:00)", id="February"
            ),
            pytest.param("0 0 4 1 * ?", "2026-04-01T04:00", "[2026-03-01T04:00:00, 2026-04-01T04:00:00)", id="March"),
            pytest.param(
                "0 30 6 ? * MON-FRI", "2026-06-01T06:30", "[2026-05-29T06:30:00, 2026-06-01T06:30:00)", id="Monday"
            ),
            pytest.param(
                "0 30 6 ? * MON-FRI", "2026-06-02T06:30", "[2026-06-01T06:30:00, 2026-06-02T06:30:00)", id="Tuesday"
            ),
            pytest.param(
                "0 0 9-17 ? * *", "2026-06-02T09:00", "[2026-06-01T17:00:00, 2026-06-02T09:00:00)", id="the night"
            ),
        ],
    )
    def test_an_irregular_cron_has_each_runs_own_length(self, cron: str, fire: str, expected: str) -> None:  # H2
        assert window(schedule(cron).run_at(at(fire))) == expected

    def test_a_moved_window_keeps_its_runs_own_length(self) -> None:  # H2
        run = schedule("0 30 6 ? * MON-FRI", offset=HOUR).run_at(at("2026-06-01T06:30"))
        assert window(run) == "[2026-05-29T05:30:00, 2026-06-01T05:30:00)"

    def test_a_start_on_a_fire_gives_a_full_run_at_the_next_one(self) -> None:  # H4
        run = next(schedule(HOURLY, start="2026-06-03T10:00").runs_between(at("2026-06-01"), at("2026-06-04")))
        assert (iso(run.fire), window(run)) == ("2026-06-03T11:00:00Z", "[2026-06-03T10:00:00, 2026-06-03T11:00:00)")

    def test_the_first_window_is_moved_too(self) -> None:  # H2, H4
        run = schedule(HOURLY, start="2026-06-03T10:05", offset=HOUR).run_at(at("2026-06-03T11:00"))
        assert window(run) == "[2026-06-03T09:05:00, 2026-06-03T10:00:00)"
        assert run.key == "2026-06-03T10:05:00Z"

    def test_seconds_are_kept(self) -> None:  # H15
        of = schedule(HOURLY, start="2026-06-03T10:05:17", end="2026-06-03T12:00:01")
        runs = [*of.runs_between(at("2026-06-03"), at("2026-06-04"))]
        assert [window(run) for run in runs] == [
            "[2026-06-03T10:05:17, 2026-06-03T11:00:00)",
            "[2026-06-03T11:00:00, 2026-06-03T12:00:00)",
        ]

    def test_no_fire_after_the_end(self) -> None:  # H15
        of = schedule(HOURLY, start="2026-06-03", end="2026-06-03T02:00")
        assert [iso(run.fire) for run in of.runs_between(at("2026-06-02"), at("2026-06-05"))] == [
            "2026-06-03T01:00:00Z",
            "2026-06-03T02:00:00Z",
        ]
        assert of.run_after(at("2026-06-03T02:00")) is None

    def test_an_end_a_second_before_a_fire_excludes_it(self) -> None:  # H15
        of = schedule(HOURLY, start="2026-06-03", end="2026-06-03T01:59:59")
        assert of.last_run(at("2026-07-01")) == of.run_at(at("2026-06-03T01:00"))

    def test_a_schedule_that_is_off_has_no_fires(self) -> None:  # H14
        of = schedule(HOURLY, start="2026-06-03", enabled=False)
        assert [*of.runs_between(at("2026-06-03"), at("2026-06-05"))] == []
        assert of.next_run(None, at("2026-06-04")) is of.last_run(at("2026-06-04")) is None

    def test_a_run_of_an_interval_that_the_cron_no_longer_has_keeps_its_window(self) -> None:  # H2
        run = schedule("@daily", offset=HOUR).run(at("2026-06-03T09:00"), at("2026-06-03T10:00"))
        assert window(run) == "[2026-06-03T08:00:00, 2026-06-03T09:00:00)"


class TestYears:
    """A cron that fires in some years only (H1)."""

    NEW_YEARS = "0 0 0 1 1 ? 2027,2029"

    def test_the_first_interval_begins_where_it_would_without_them(self) -> None:
        runs = [*schedule(self.NEW_YEARS).runs_between(at("2020-01-01"), at("2090-01-01"))]
        assert [run.key for run in runs] == ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"]
        assert window(runs[1]) == "[2027-01-01T00:00:00, 2029-01-01T00:00:00)"

    def test_before_the_first_year_nothing_was_missed_and_after_the_last_nothing_comes(self) -> None:
        of = schedule(self.NEW_YEARS, start="2020-01-01", catchup=True)
        assert of.last_run(at("2026-06-01")) is None
        assert [run.key for run in of.missed(None, at("2027-06-01"))] == ["2026-01-01T00:00:00Z"]
        assert [iso(start) for start in of.starts(at("2019-01-01"), at("2027-01-01"))] == ["2026-01-01T00:00:00Z"]
        assert of.next_run(at("2029-01-01"), at("2029-06-01")) is None

    def test_its_intervals_are_those_of_its_runs(self) -> None:
        of = schedule(self.NEW_YEARS)
        starts = [iso(start) for start in of.starts(at("2020-01-01"), at("2090-01-01"))]
        assert starts == ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"]
        assert [of.run_of(at(start)).key for start in starts] == starts
        for text in ("2025-01-01", "2029-01-01"):
            with pytest.raises(NoSuchInterval):
                of.run_of(at(text))

    def test_a_skip_date_before_the_first_fire_keeps_it(self) -> None:  # H11
        run = schedule(self.NEW_YEARS, skip_to="2025-06-01").first_after(at("2020-01-01"))
        assert run is not None and run.key == "2026-01-01T00:00:00Z"

    def test_a_key_whose_interval_has_not_ended_is_refused(self) -> None:  # C27
        with pytest.raises(ChrononError, match="None has ended yet"):
            schedule(self.NEW_YEARS).start_of_key("2026-01-01T00:00:00Z", now=at("2026-06-01"))


class TestReplays:
    def test_a_logical_date_names_its_interval(self) -> None:
        of = schedule(HOURLY, start="2026-06-03T10:05", enabled=False)
        assert of.run_of(at("2026-06-03T10:05")) == of.run_at(at("2026-06-03T11:00"))
        assert of.run_of(at("2026-06-03T12:00")) == of.run_at(at("2026-06-03T13:00"))

    def test_what_begins_no_interval_is_refused_with_the_nearest_two(self) -> None:  # C27
        with pytest.raises(NoSuchInterval, match="2026-06-03T12:00:00Z or 2026-06-03T13:00:00Z"):
            schedule(HOURLY).run_of(at("2026-06-03T12:30"))


class TestRefusals:
    @pytest.mark.parametrize(
        ("of", "rule", "said"),
        [
            pytest.param({"offset": -1}, "H2", "-1 seconds", id="a negative offset"),
            pytest.param({"offset": LONGEST_WINDOW + 1}, "H2", str(LONGEST_WINDOW), id="an offset before the calendar"),
            pytest.param({"lookback": 0}, "H3", "0 seconds", id="a lookback of nothing"),
            pytest.param({"lookback": -3600}, "H3", "-3600 seconds", id="a negative lookback"),
            pytest.param({"offset": 1, "lookback": 1}, "H3", "not both", id="moved and widened"),
        ],
    )
    def test_an_illegal_schedule_cannot_exist(self, of: dict[str, object], rule: str, said: str) -> None:
        with pytest.raises(IllegalJobSchedule) as refused:
            schedule(HOURLY, **of)  # type: ignore[arg-type]
        assert refused.value.fault.rule == rule and said in refused.value.fault.message

    def test_a_lookback_beside_an_offset_of_nothing_is_good(self) -> None:  # H2, H3
        assert schedule(HOURLY, offset=0, lookback=60).catch_up == CatchUp()


class TestWindowsByHand:
    def test_without_one_there_is_none(self) -> None:  # H7
        assert asked_window(None, None) is None

    @pytest.mark.parametrize(
        ("start", "end", "said"),
        [
            pytest.param(None, 10, "an end without a start", id="an end without a start"),
            pytest.param(10, None, "no end", id="a start without an end"),
            pytest.param(10, 10, "not after its start", id="an empty one"),
            pytest.param(20, 10, "not after its start", id="backwards"),
        ],
    )
    def test_half_a_window_and_an_empty_one_are_refused(
        self, start: int | None, end: int | None, said: str
    ) -> None:  # H7
        with pytest.raises(IllegalWindow, match=said) as refused:
            asked_window(start, end)
        assert refused.value.fault.rule == "H7"


@given(job_schedules(policies()), INSTANTS)
def test_windows_follow_their_intervals_within_start_and_end(
    of: IntervalSchedule, start: Instant
) -> None:  # H2, H3, H4, H15
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
