"""The timetable as Airflow drives it: next runs, outages, catch-up (C8 to C10, C29, H8 to H11)."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from itertools import islice, pairwise

import pendulum
import pytest
from airflow.exceptions import InvalidPartitionKeyError
from airflow.models.dag import DagModel
from airflow.timetables.base import DagRunInfo
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.airflow.timetables.partitions import PartitionTimetable
from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant, from_datetime, to_datetime
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule, Run
from tests.support.schedules import COARSE, T0, at, schedule_of, schedules
from tests.support.timetables import ANY_TIME, KEPT, THREE_HOURLY, labels


def as_airflow_reads(info: DagRunInfo) -> DagRunInfo:
    """A run with a key comes back from the database without its interval."""
    return info._replace(data_interval=None)


def facts(info: DagRunInfo) -> tuple[object, ...]:
    assert info.data_interval is not None
    assert info.partition_date is not None
    interval = info.data_interval
    dates = (info.run_after, interval.start, interval.end, info.partition_date)
    return (*(from_datetime(date) for date in dates), info.partition_key)


def facts_of_run(run: Run, schedule: PartitionedSchedule) -> tuple[object, ...]:
    newest = run.end - schedule.spec.grid.interval
    return run.fire, run.window.start, run.end, newest, schedule.spec.label(newest)


class Scheduler:
    """What Airflow's scheduler does with a timetable: plan, create what is due, plan again."""

    def __init__(self, schedule: PartitionedSchedule, clock) -> None:
        # as the scheduler has it: from the serialised DAG
        self.timetable = PartitionTimetable.deserialize(
            json.loads(json.dumps(PartitionTimetable(schedule).serialize()))
        )
        self.clock = clock
        self.last: DagRunInfo | None = None
        self.created: list[DagRunInfo] = []

    def tick(self, now: Instant, *, at_most: int = 10_000) -> list[DagRunInfo]:
        """Create everything that is due at ``now``."""
        self.clock.instant = now
        new: list[DagRunInfo] = []
        while len(new) < at_most:
            info = self.timetable.next_dagrun_info_v2(last_dagrun_info=self.last, restriction=ANY_TIME)
            if info is None or from_datetime(info.run_after) > now:
                break
            new.append(info)
            self.last = as_airflow_reads(info)
        self.created += new
        return new


class TestRunsEqualThoseOfExplain:
    @KEPT
    @given(schedule=schedules(bounded=False))
    def test_a_scheduler_that_never_sleeps_makes_every_run(self, schedule, clock):
        # C8, C9, C10, H4: run by run what `explain` lists, label, window and fire alike
        expected = list(islice(schedule.runs_between(T0 - 4 * DAY, T0 + 400 * DAY), 12))
        scheduler = Scheduler(schedule, clock)
        first = expected[0]
        for run in expected:
            scheduler.tick(run.fire)
        made = [facts(info) for info in scheduler.created]
        wanted = [facts_of_run(run, schedule) for run in expected]
        # a new schedule may begin with the newest run that had closed before its first fire
        assert made[-len(wanted) :] == wanted, first

    @KEPT
    @given(schedule=schedules(bounded=True), data=st.data())
    def test_after_any_outage_the_runs_are_those_that_explain_foretells(self, schedule, data, clock):
        # H8 to H11: `explain --after LAST --now NOW`
        scheduler = Scheduler(schedule, clock)
        last_end, now = None, T0
        for _ in range(3):
            now += data.draw(st.integers(0, 2 * DAY // MINUTE)) * MINUTE
            expected = [facts_of_run(run, schedule) for run in islice(schedule.missed(last_end, now), 30)]
            made = [facts(info) for info in scheduler.tick(now, at_most=30)]
            assert made == expected
            if made:
                last_end = made[-1][2]

    @KEPT
    @given(schedule=schedules(catch_up=st.just(True), bounded=False), data=st.data())
    def test_catch_up_after_any_interruptions_leaves_no_hole(self, schedule, data, clock):
        # C28, H9: however the scheduler came and went, the windows tile from the start to now
        scheduler = Scheduler(schedule, clock)
        now = T0
        for _ in range(4):
            now += data.draw(st.integers(0, 3 * schedule.spec.grid.interval // MINUTE)) * MINUTE
            scheduler.tick(now, at_most=data.draw(st.integers(1, 5)))
        windows = [facts(info)[1:3] for info in scheduler.created]
        for (_, end), (start, _) in pairwise(windows):
            assert start == end
        if windows:
            assert windows[0][0] == schedule.first_start

    @KEPT
    @given(
        schedule=schedules(), steps=st.lists(st.integers(-3 * DAY // MINUTE, 3 * DAY // MINUTE), min_size=1, max_size=6)
    )
    def test_a_clock_that_steps_back_yields_no_unclosed_partition(self, schedule, steps, clock):
        # C28, prior art 9
        scheduler = Scheduler(schedule, clock)
        now = T0
        for step in steps:
            now += step * MINUTE
            for info in scheduler.tick(now, at_most=5):
                assert info.data_interval is not None
                assert from_datetime(info.data_interval.end) <= now
                assert from_datetime(info.run_after) <= now
        ends = [facts(info)[2] for info in scheduler.created]
        assert ends == sorted(set(ends))  # interval ends only ever grow


class TestOutages:
    def test_catch_up_off_makes_exactly_the_newest(self, clock):
        # H8
        scheduler = Scheduler(schedule_of(*THREE_HOURLY), clock)
        scheduler.tick(at("2026-06-01T04:15:00Z"))
        assert labels(scheduler.tick(at("2026-06-03T05:00:00Z"))) == ["2026-06-03-01-00"]
        assert scheduler.tick(at("2026-06-03T05:00:00Z")) == []

    def test_catch_up_on_makes_all_oldest_first(self, clock):
        # H9
        start = at("2026-06-01T00:00:00Z")
        scheduler = Scheduler(schedule_of("0 2 * * *", DAY, enabled=True, start=start), clock)
        assert labels(scheduler.tick(at("2026-06-04T03:00:00Z"))) == ["2026-06-01", "2026-06-02", "2026-06-03"]

    def test_the_cap_keeps_the_newest_and_the_skip_date_goes_first(self, clock):
        # H10, H11
        bounds = {"enabled": True, "start": at("2026-06-01T00:00:00Z"), "max_runs": 3}
        scheduler = Scheduler(schedule_of("0 2 * * *", DAY, **bounds), clock)
        assert labels(scheduler.tick(at("2026-06-10T03:00:00Z"))) == ["2026-06-07", "2026-06-08", "2026-06-09"]
        bounds |= {"skip_to": at("2026-06-09T00:00:00Z")}
        scheduler = Scheduler(schedule_of("0 2 * * *", DAY, **bounds), clock)
        assert labels(scheduler.tick(at("2026-06-10T03:00:00Z"))) == ["2026-06-09"]

    def test_a_plan_from_before_an_outage_is_corrected_to_the_newest(self, clock):
        # H8: Airflow would create both the run it had planned and the newest
        timetable = PartitionTimetable(schedule_of(*THREE_HOURLY))
        clock.instant = at("2026-06-01T04:20:00Z")
        last = timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=ANY_TIME)
        planned = timetable.next_dagrun_info_v2(last_dagrun_info=as_airflow_reads(last), restriction=ANY_TIME)
        model = dag_model(planned)
        assert timetable.next_run_info_from_dag_model(dag_model=model) == planned
        clock.instant = at("2026-06-05T09:00:00Z")
        corrected = timetable.next_run_info_from_dag_model(dag_model=model)
        assert corrected.partition_key == "2026-06-05-04-00"
        assert corrected.data_interval == (
            to_datetime(at("2026-06-05T04:00:00Z")),
            to_datetime(at("2026-06-05T07:00:00Z")),
        )
        scheduler = Scheduler(schedule_of(*THREE_HOURLY), clock)
        scheduler.last = as_airflow_reads(corrected)
        assert scheduler.tick(at("2026-06-05T09:00:00Z")) == []  # one run after the outage, not two

    def test_a_plan_stays_with_catch_up_on(self, clock):
        # H9: what was planned is the oldest missed one
        timetable = PartitionTimetable(schedule_of("0 2 * * *", DAY, enabled=True, start=at("2026-06-01T00:00:00Z")))
        clock.instant = at("2026-06-01T04:20:00Z")
        planned = timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=ANY_TIME)
        clock.instant = at("2026-06-20T09:00:00Z")
        assert timetable.next_run_info_from_dag_model(dag_model=dag_model(planned)) == planned

    def test_nothing_planned_is_nothing_to_create(self, clock):
        timetable = PartitionTimetable(schedule_of(*THREE_HOURLY))
        assert timetable.next_run_info_from_dag_model(dag_model=DagModel(dag_id="d")) is None


def dag_model(planned: DagRunInfo) -> DagModel:
    """The row in which Airflow keeps the next run."""
    model = DagModel(dag_id="d")
    model.next_dagrun = planned.logical_date
    model.next_dagrun_data_interval = planned.data_interval
    model.next_dagrun_create_after = planned.run_after
    model.next_dagrun_partition_key = planned.partition_key
    model.next_dagrun_partition_date = planned.partition_date
    return model


class TestItIsTotal:
    @KEPT
    @given(
        schedule=schedules(),
        now=st.integers(0, at("2199-01-01T00:00:00Z")),
        date=st.none() | st.integers(0, at("2199-01-01T00:00:00Z")),
    )
    def test_no_last_run_and_no_clock_make_it_raise(self, schedule, now, date, clock):
        # prior art 7: an exception in a timetable stops the scheduler
        clock.instant = now
        timetable = PartitionTimetable(schedule)
        moment = None if date is None else pendulum.instance(to_datetime(date))
        last = None if date is None else DagRunInfo(moment, None, moment, "whatever")
        for known in (last, None if last is None else last._replace(partition_date=None)):
            timetable.next_dagrun_info_v2(last_dagrun_info=known, restriction=ANY_TIME)

    @KEPT
    @given(
        schedule=schedules(),
        key=st.text(max_size=20) | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(-[0-9]{2}){0,2}", fullmatch=True),
    )
    def test_a_key_is_taken_or_refused(self, schedule, key, clock):
        clock.instant = T0
        with suppress(InvalidPartitionKeyError):
            PartitionTimetable(schedule).resolve_partition_date(key)


class TestFaultsThatOthersShipped:
    """prior-art-cases.md, 1 to 10."""

    def test_1_a_half_hour_grid_does_not_align_itself_to_the_moment_of_unpausing(self, clock):
        scheduler = Scheduler(schedule_of("*/30 * * * *", 30 * MINUTE), clock)
        [info] = scheduler.tick(at("2026-06-01T10:17:00Z"))
        assert facts(info)[1:3] == (at("2026-06-01T09:30:00Z"), at("2026-06-01T10:00:00Z"))

    def test_2_a_start_in_mid_period_gives_the_first_whole_partition_and_no_later_one(self, clock):
        # H4, C29
        scheduler = Scheduler(schedule_of("*/30 * * * *", 30 * MINUTE, start=at("2026-06-01T10:10:00Z")), clock)
        assert scheduler.tick(at("2026-06-01T10:59:00Z")) == []
        [info] = scheduler.tick(at("2026-06-01T11:00:00Z"))
        assert info.partition_key == "2026-06-01-10-30"

    def test_3_after_a_schedule_change_the_next_window_starts_where_the_last_one_ended(self, clock):
        # C22: the grid is the same, so only the fires move
        scheduler = Scheduler(schedule_of("15 1-22/3 * * *", 3 * HOUR, HOUR), clock)
        [before] = scheduler.tick(at("2026-06-01T04:15:00Z"))
        changed = Scheduler(schedule_of("45 1-22/3 * * *", 3 * HOUR, HOUR), clock)
        changed.last = as_airflow_reads(before)
        assert changed.tick(at("2026-06-01T07:15:00Z")) == []
        [after] = changed.tick(at("2026-06-01T07:45:00Z"))
        assert after.data_interval.start == before.data_interval.end

    def test_4_a_fire_long_after_the_partition_closed_changes_no_window(self, clock):
        prompt = [facts(i)[1:3] for i in self._week("0 0 * * *", clock)]
        delayed = [facts(i)[1:3] for i in self._week("59 23 * * *", clock)]
        assert delayed == prompt[: len(delayed)]
        assert len(delayed) >= 6

    def _week(self, cron: str, clock) -> list[DagRunInfo]:
        scheduler = Scheduler(schedule_of(cron, DAY, enabled=True, start=T0), clock)
        return scheduler.tick(T0 + 7 * DAY)

    def test_5_a_restart_in_mid_catch_up_leaves_no_hole(self, clock):
        schedule = schedule_of("0 * * * *", HOUR, enabled=True, start=T0)
        scheduler = Scheduler(schedule, clock)
        scheduler.tick(T0 + 30 * HOUR, at_most=7)
        restarted = Scheduler(schedule, clock)
        restarted.last = scheduler.last
        restarted.tick(T0 + 50 * HOUR)
        starts = [facts(info)[3] for info in scheduler.created + restarted.created]
        assert starts == list(range(T0, T0 + 50 * HOUR, HOUR))

    @pytest.mark.parametrize("late", [1, 59 * MINUTE, HOUR - 1])
    def test_6_lateness_under_one_interval_never_skips(self, clock, late):
        scheduler = Scheduler(schedule_of("0 * * * *", HOUR), clock)
        scheduler.tick(T0)
        for hour in range(1, 6):
            scheduler.tick(T0 + hour * HOUR + (late if hour % 2 else 0))
        assert [facts(info)[3] for info in scheduler.created] == list(range(T0 - HOUR, T0 + 5 * HOUR, HOUR))

    @pytest.mark.parametrize("cron", COARSE)
    def test_7_there_is_always_a_next_run(self, clock, cron):
        clock.instant = T0
        timetable = PartitionTimetable(schedule_of(cron, DAY))
        info = None
        for _ in range(50):
            info = timetable.next_dagrun_info_v2(last_dagrun_info=info and as_airflow_reads(info), restriction=ANY_TIME)
            assert info is not None

    def test_8_a_label_gives_exactly_its_partition(self, clock):
        clock.instant = at("2026-06-10T00:00:00Z")
        date = PartitionTimetable(schedule_of(*THREE_HOURLY)).resolve_partition_date("2026-06-02-22-00")
        assert date == to_datetime(at("2026-06-02T22:00:00Z"))
        assert PartitionTimetable(schedule_of(*THREE_HOURLY)).resolve_partition_date(None) is None

    def test_9_a_clock_that_steps_back_makes_no_run(self, clock):
        scheduler = Scheduler(schedule_of("0 * * * *", HOUR), clock)
        scheduler.tick(T0)
        assert scheduler.tick(T0 - timedelta(hours=5).seconds) == []
        assert labels(scheduler.tick(T0 + HOUR)) == ["2026-06-01-00-00"]

    def test_10_offset_zero_is_an_offset(self, clock):
        # C5
        explicit, absent = schedule_of("0 0 * * *", DAY, 0), schedule_of("0 0 * * *", DAY)
        assert PartitionTimetable(explicit) == PartitionTimetable(absent)
        [info] = Scheduler(explicit, clock).tick(T0)
        assert facts(info)[1:3] == (T0 - DAY, T0)


def test_airflows_older_question_gets_the_same_answer(clock):
    clock.instant = at("2026-06-01T07:20:00Z")
    timetable = PartitionTimetable(schedule_of(*THREE_HOURLY))
    first = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=ANY_TIME)
    assert first == timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=ANY_TIME)
    following = timetable.next_dagrun_info(last_automated_data_interval=first.data_interval, restriction=ANY_TIME)
    assert following.partition_key == "2026-06-01-07-00"
