"""The timetable of jobs: intervals between fires, given to Airflow with key and data interval (H2, H4, H8 to H18)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from airflow.exceptions import InvalidPartitionKeyError
from airflow.timetables.base import DagRunInfo
from airflow.utils.types import DagRunType
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.airflow.timetables.intervals import JobTimetable
from airflow_chronon.core.calendar.cron import Cron
from airflow_chronon.core.calendar.instants import HOUR, MINUTE
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from tests.support.airflow_jobs import ANY_TIME, job_schedule, moment
from tests.support.schedules import T0, at


def info(fire: str, logical_date: str) -> DagRunInfo:
    return DagRunInfo(moment(fire), None, moment(logical_date), logical_date)


def next_info(schedule: IntervalSchedule, last: DagRunInfo | None = None) -> DagRunInfo | None:
    return JobTimetable(schedule).next_dagrun_info_v2(last_dagrun_info=last, restriction=ANY_TIME)


def next_key(schedule: IntervalSchedule, last: DagRunInfo | None = None) -> str | None:
    following = next_info(schedule, last)
    return following and following.partition_key


class TestTheNextRun:
    def test_a_scheduled_run_has_its_interval_its_key_and_its_fire(self, clock):
        # H2: ten o'clock gives [09:00, 10:00), and the logical date is its start
        clock.instant = at("2026-06-01T10:00:30Z")
        found = next_info(job_schedule(active_since=at("2026-06-01T09:30:00Z")))
        assert found is not None and found.data_interval is not None
        assert found.run_after == moment("2026-06-01T10:00:00Z")
        assert (found.data_interval.start, found.data_interval.end) == (
            moment("2026-06-01T09:00:00Z"),
            moment("2026-06-01T10:00:00Z"),
        )
        assert (found.partition_key, found.partition_date) == ("2026-06-01T09:00:00Z", moment("2026-06-01T09:00:00Z"))

    @pytest.mark.parametrize("more", [{"offset": 25 * HOUR}, {"lookback": 25 * HOUR}], ids=["moved", "widened"])
    def test_a_moved_or_widened_window_does_not_move_the_interval(self, clock, more):
        # H2, H3: intervals tile, whatever the window
        clock.instant = at("2026-06-01T10:00:30Z")
        found = next_info(job_schedule(active_since=at("2026-06-01T09:30:00Z"), **more))
        assert found is not None and found.data_interval is not None
        assert found.data_interval.start == moment("2026-06-01T09:00:00Z")

    def test_the_first_interval_begins_at_the_start(self, clock):
        # H4
        clock.instant = at("2026-06-01T11:00:30Z")
        found = next_info(job_schedule(start=at("2026-06-01T10:05:00Z"), active_since=at("2026-06-01T10:05:00Z")))
        assert found is not None and found.data_interval is not None
        assert found.partition_key == "2026-06-01T10:05:00Z"
        assert found.data_interval.end == moment("2026-06-01T11:00:00Z")

    def test_a_new_job_without_catch_up_waits_for_its_next_fire(self, clock):
        # H8
        clock.instant = at("2026-06-01T10:20:00Z")
        found = next_info(job_schedule(active_since=at("2026-06-01T10:15:00Z"), start=at("2026-01-01T00:00:00Z")))
        assert found is not None
        assert found.run_after == moment("2026-06-01T11:00:00Z")

    def test_a_new_job_makes_up_what_fired_since_it_was_first_seen(self, clock):
        # H8, H15
        clock.instant = at("2026-06-01T11:20:00Z")
        seen = job_schedule().seen(first=at("2026-06-01T10:00:00Z"), active_since=at("2026-06-01T10:00:00Z"))
        assert next_key(seen) == "2026-06-01T10:00:00Z"

    def test_a_job_that_is_off_never_fires(self, clock):
        clock.instant = at("2026-06-01T10:20:00Z")
        assert next_info(IntervalSchedule(job_schedule().cron, enabled=False, active_since=0)) is None

    def test_after_an_outage_without_catch_up_the_newest_comes(self, clock):
        # H8: six hours without a scheduler
        clock.instant = at("2026-06-01T06:10:00Z")
        assert next_key(job_schedule(), info("2026-06-01T00:00:00Z", "2026-05-31T23:00:00Z")) == "2026-06-01T05:00:00Z"

    def test_after_an_outage_with_catch_up_the_oldest_comes_within_the_cap(self, clock):
        # H9, H10
        clock.instant = at("2026-06-01T06:10:00Z")
        last = info("2026-06-01T00:00:00Z", "2026-05-31T23:00:00Z")
        start = at("2026-01-01T00:00:00Z")
        assert next_key(job_schedule(enabled=True, start=start), last) == "2026-06-01T00:00:00Z"
        assert next_key(job_schedule(enabled=True, start=start, max_runs=2), last) == "2026-06-01T04:00:00Z"

    def test_under_a_changed_cron_intervals_still_tile(self, clock):
        # H2: hourly until 06:00, daily since: the next interval does not reach back over what has run
        clock.instant = at("2026-06-02T00:00:30Z")
        found = next_info(job_schedule("0 0 * * *"), info("2026-06-01T06:00:00Z", "2026-06-01T05:00:00Z"))
        assert found is not None and found.data_interval is not None
        assert found.data_interval.start == moment("2026-06-01T06:00:00Z")
        assert found.data_interval.end == moment("2026-06-02T00:00:00Z")

    @given(
        st.sampled_from(["0 * * * *", "*/7 * * * *", "0 9 * * 1-5", "30 6 1 * *"]), st.integers(0, 400), st.booleans()
    )
    def test_runs_tile_whatever_the_cron(self, cron, minutes, catch_up):
        # H2, H17: each interval begins where the one before it ended
        from airflow_chronon.airflow.timetables import keyed as keyed_timetable

        schedule = job_schedule(cron, enabled=catch_up, start=T0)
        last: DagRunInfo | None = None
        timetable = JobTimetable(schedule)
        original = keyed_timetable.now
        try:
            for step in range(4):
                keyed_timetable.now = lambda step=step: T0 + (minutes + step) * MINUTE  # type: ignore[assignment,misc]
                found = timetable.next_dagrun_info_v2(last_dagrun_info=last, restriction=ANY_TIME)
                assert found is not None and found.data_interval is not None
                if last is not None and catch_up:
                    assert found.data_interval.start == last.run_after
                assert found.data_interval.end == found.run_after
                last = found._replace(data_interval=None)
        finally:
            keyed_timetable.now = original


class TestReplays:
    def test_have_a_key_and_no_interval_and_end_with_what_has_ended(self, clock):
        # H18: a replay works any number of times
        clock.instant = at("2026-06-01T06:10:00Z")
        found = list(
            JobTimetable(job_schedule()).iter_partition_dagrun_infos(
                earliest=moment("2026-06-01T03:00:00Z"), latest=moment("2026-06-01T12:00:00Z")
            )
        )
        assert [each.partition_key for each in found] == [f"2026-06-01T0{hour}:00:00Z" for hour in (3, 4, 5)]
        assert {each.data_interval for each in found} == {None}

    def test_the_short_first_interval_is_one_of_them(self, clock):
        # H4
        clock.instant = at("2026-06-02T00:00:00Z")
        schedule = job_schedule(start=at("2026-06-01T10:05:00Z"))
        found = JobTimetable(schedule).iter_partition_dagrun_infos(
            earliest=moment("2026-06-01T09:00:00Z"), latest=moment("2026-06-01T11:00:00Z")
        )
        assert [each.partition_key for each in found] == [
            "2026-06-01T09:00:00Z",
            "2026-06-01T10:05:00Z",
            "2026-06-01T11:00:00Z",
        ]

    def test_an_end_that_is_far_away_costs_nothing(self, clock, mocker):
        # C27, H18: what has not ended is not a replay, so nobody looks for it
        clock.instant = at("2026-06-01T03:05:00Z")
        looked = mocker.spy(Cron, "first_at_or_after")
        found = JobTimetable(job_schedule()).iter_partition_dagrun_infos(
            earliest=moment("2026-06-01T01:00:00Z"), latest=moment("2036-06-01T00:00:00Z")
        )
        assert [each.partition_key[11:13] for each in found] == ["01", "02"]
        assert looked.call_count < 20

    def test_irregular_crons_are_fine(self, clock):
        clock.instant = at("2026-06-10T00:00:00Z")
        found = JobTimetable(job_schedule("0 9 * * 1-5")).iter_partition_dagrun_infos(
            earliest=moment("2026-06-05T00:00:00Z"), latest=moment("2026-06-08T23:00:00Z")
        )
        assert [each.partition_key for each in found] == ["2026-06-05T09:00:00Z", "2026-06-08T09:00:00Z"]

    def test_run_ids_never_repeat_but_those_of_scheduled_runs(self):
        timetable = JobTimetable(job_schedule())
        of: dict[str, Any] = {"run_after": moment("2026-06-01T10:00:00Z"), "data_interval": None}
        key = "2026-06-01T09:00:00Z"
        assert timetable.generate_run_id(run_type=DagRunType.SCHEDULED, partition_key=key, **of) == f"scheduled__{key}"
        ids = {timetable.generate_run_id(run_type=DagRunType.BACKFILL_JOB, partition_key=key, **of) for _ in range(5)}
        assert len(ids) == 5 and all(each.startswith(f"backfill__{key}__") for each in ids)


class TestKeys:
    def decode(self, key: str, **of: Any) -> datetime | None:
        return JobTimetable(job_schedule(**of))._decode_partition_date(key)

    def test_a_logical_date_is_a_key(self, clock):
        clock.instant = at("2026-06-01T10:00:00Z")
        assert self.decode("2026-06-01T09:00:00Z") == moment("2026-06-01T09:00:00Z")

    @pytest.mark.parametrize(
        ("key", "says"),
        [
            ("2026-06-01T08:30:00Z", "Use 2026-06-01T08:00:00Z or 2026-06-01T09:00:00Z"),
            ("2026-06-01T08:00", "Write 2026-06-01T08:00:00Z"),
            ("yesterday", "not a logical date"),
            ("2026-06-01T10:00:00Z", "has not come"),
        ],
    )
    def test_anything_else_is_refused_with_what_would_do(self, clock, key, says):
        # C27
        clock.instant = at("2026-06-01T10:30:00Z")
        with pytest.raises(InvalidPartitionKeyError, match=says):
            self.decode(key)


def test_it_survives_serialisation():
    for schedule in (
        job_schedule(),
        job_schedule(offset=HOUR, enabled=True, start=T0, max_runs=3, skip_to=T0 + HOUR, end=T0 + 99 * HOUR),
        job_schedule(lookback=HOUR, active_since=None),
    ):
        timetable = JobTimetable(schedule)
        assert JobTimetable.deserialize(timetable.serialize()) == timetable
    assert JobTimetable(job_schedule()) != JobTimetable(job_schedule("1 * * * *"))
