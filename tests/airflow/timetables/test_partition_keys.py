"""The timetable as Airflow asks it for replays and keys, and keeps it (C7, C8, C27, C28)."""

from __future__ import annotations

import json

import pendulum
import pytest
from airflow.exceptions import InvalidPartitionKeyError
from airflow.models.backfill import InvalidBackfillDateRange
from airflow.models.dagrun import DagRun
from airflow.timetables.base import DagRunInfo, DataInterval
from airflow.utils.types import DagRunType
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.airflow.timetables.partitions import PartitionTimetable
from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, from_datetime, to_datetime
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from tests.support.schedules import T0, at, schedule_of, schedules
from tests.support.timetables import ANY_TIME, KEPT, THREE_HOURLY, labels


class TestReplays:
    def ask(self, schedule: PartitionedSchedule, first: str, last: str) -> list[DagRunInfo]:
        timetable = PartitionTimetable(schedule)
        return list(
            timetable.iter_partition_dagrun_infos(earliest=to_datetime(at(first)), latest=to_datetime(at(last)))
        )

    def test_both_ends_are_in_and_there_is_no_interval(self, clock):
        # prior art 11, 13: an interval would make a second replay of a partition break
        clock.instant = at("2026-06-10T00:00:00Z")
        infos = self.ask(schedule_of(*THREE_HOURLY), "2026-06-01T01:00:00Z", "2026-06-01T07:00:00Z")
        assert labels(infos) == ["2026-06-01-01-00", "2026-06-01-04-00", "2026-06-01-07-00"]
        assert {info.data_interval for info in infos} == {None}
        assert [from_datetime(info.partition_date) for info in infos] == [
            at(f"2026-06-01T0{h}:00:00Z") for h in (1, 4, 7)
        ]

    def test_more_than_one_replay_may_have_are_refused_in_one_sentence_before_any_is_made(self, clock):
        # S7: Airflow would make the list in its api-server
        clock.instant = at("2026-06-10T00:00:00Z")
        minutely = PartitionTimetable(schedule_of("* * * * *", MINUTE))
        found = minutely.iter_partition_dagrun_infos(
            earliest=to_datetime(0), latest=to_datetime(at("2026-06-09T00:00:00Z"))
        )
        with pytest.raises(InvalidBackfillDateRange, match=r"more than 50000 runs.*\(S7\).*up to 1970-02-04-17-19\.$"):
            next(iter(found))
        assert len(self.ask(schedule_of("* * * * *", MINUTE), "2026-05-01T00:00:00Z", "2026-05-31T23:59:00Z")) == 44_640

    def test_partitions_that_have_not_closed_are_left_out(self, clock):
        clock.instant = at("2026-06-01T06:59:00Z")
        infos = self.ask(schedule_of(*THREE_HOURLY), "2026-05-31T22:00:00Z", "2026-06-09T00:00:00Z")
        assert labels(infos) == ["2026-05-31-22-00", "2026-06-01-01-00"]

    def test_go_partition_by_partition_whatever_the_schedule(self, clock):
        # C9, C12
        clock.instant = at("2026-06-10T00:00:00Z")
        for schedule in (schedule_of("0 3 * * mon", DAY), schedule_of({}, DAY)):
            infos = self.ask(schedule, "2026-06-01T00:00:00Z", "2026-06-03T00:00:00Z")
            assert labels(infos) == ["2026-06-01", "2026-06-02", "2026-06-03"]

    @KEPT
    @given(
        schedule=schedules(),
        first=st.integers(-5000, 5000),
        length=st.integers(-100, 3000),
        now=st.integers(-5000, 5000),
    )
    def test_any_range_is_exactly_its_closed_labels(self, schedule, first, length, now, clock):
        grid = schedule.spec.grid
        clock.instant, earliest = T0 + now * MINUTE, T0 + first * MINUTE
        latest = earliest + length * MINUTE
        found = PartitionTimetable(schedule).iter_partition_dagrun_infos(
            earliest=to_datetime(earliest), latest=to_datetime(latest)
        )
        starts = [from_datetime(info.partition_date) for info in found]
        every = range(grid.floor(earliest), latest + 1, grid.interval)
        assert starts == [s for s in every if earliest <= s <= latest and s + grid.interval <= clock.instant]


class TestKeys:
    def test_the_canonical_label_is_its_partition(self, clock):
        clock.instant = at("2026-06-10T00:00:00Z")
        timetable = PartitionTimetable(schedule_of(*THREE_HOURLY))
        assert timetable.resolve_partition_date("2026-06-01-04-00") == to_datetime(at("2026-06-01T04:00:00Z"))

    @pytest.mark.parametrize(
        ("key", "says"),
        [
            pytest.param(
                "2026-06-01", "The nearest labels are 2026-05-31-22-00 or 2026-06-01-01-00", id="another format"
            ),
            pytest.param("2026-06-01-02-00", "2026-06-01-01-00 or 2026-06-01-04-00", id="off the grid"),
            pytest.param(
                "2026-06-10-01-00",
                "has not closed at 2026-06-10T00:30:00Z (C27). The newest closed one is 2026-06-09-19-00",
                id="not closed",
            ),
            pytest.param("2026-06-31-01-00", "is not in the format", id="no date"),
            pytest.param(" 2026-06-01-01-00", "Write 2026-06-01-01-00", id="a space"),
            pytest.param("٢٠٢٦-06-01-01-00", "is not in the format", id="other digits"),
            pytest.param("9999-12-31-22-00", "not within the years 1970 to 2199", id="the end of time"),
            pytest.param("9999-12-31-23-30", "not within the years 1970 to 2199", id="the end of time, off the grid"),
            pytest.param("0001-01-01-00-30", "not within the years 1970 to 2199", id="the beginning of time"),
        ],
    )
    def test_anything_else_is_refused_in_one_sentence(self, clock, key, says):
        # C27
        clock.instant = at("2026-06-10T00:30:00Z")
        with pytest.raises(InvalidPartitionKeyError) as refusal:
            PartitionTimetable(schedule_of(*THREE_HOURLY)).resolve_partition_date(key)
        text = str(refusal.value)
        assert says in text
        assert "\n" not in text
        assert "(C7)" in text or "(C27)" in text

    def test_a_label_read_leniently_gets_its_canonical_form(self, clock):
        # C27: Airflow stores the key as typed
        from dataclasses import replace

        from airflow_chronon.core.partitions.labels import partition_format

        clock.instant = at("2026-06-10T00:00:00Z")
        schedule = schedule_of("0 0 * * *", DAY)
        schedule = replace(schedule, spec=replace(schedule.spec, format=partition_format("yyyy/M/d")))
        with pytest.raises(InvalidPartitionKeyError, match=r"'2026/06/01' is not a label.* Write 2026/6/1"):
            PartitionTimetable(schedule).resolve_partition_date("2026/06/01")

    @pytest.mark.parametrize("label", ["2026/06/01/04", "2026-06-01 04:00:00", "20260601", "2026-06-01T04:00"])
    @pytest.mark.parametrize("kind", [DagRunType.SCHEDULED, DagRunType.BACKFILL_JOB, DagRunType.MANUAL])
    def test_airflow_takes_the_run_id_of_every_label_format(self, clock, label, kind):  # C7
        timetable = PartitionTimetable(schedule_of(*THREE_HOURLY))
        after = pendulum.datetime(2026, 6, 1, 7)
        run_id = timetable.generate_run_id(run_type=kind, run_after=after, data_interval=None, partition_key=label)
        assert DagRun(dag_id="d", run_id=run_id, run_type=kind.value).run_id == run_id

    def test_run_ids_hold_the_label_and_replays_are_distinguished(self, clock):
        timetable = PartitionTimetable(schedule_of(*THREE_HOURLY))
        after = pendulum.datetime(2026, 6, 1, 7)

        def run_id(kind: DagRunType, key: str | None = "2026-06-01-04-00") -> str:
            return timetable.generate_run_id(run_type=kind, run_after=after, data_interval=None, partition_key=key)

        assert run_id(DagRunType.SCHEDULED) == "scheduled__2026-06-01-04-00"
        ids = {run_id(DagRunType.BACKFILL_JOB) for _ in range(20)}
        assert len(ids) == 20
        assert all(each.startswith("backfill__2026-06-01-04-00__") for each in ids)
        assert run_id(DagRunType.MANUAL, None).startswith("manual__2026-06-01T07:00:00+00:00__")

    def test_a_logical_date_alone_gives_no_window(self, clock):
        # H7
        moment = pendulum.datetime(2026, 6, 1, 7)
        interval = PartitionTimetable(schedule_of(*THREE_HOURLY)).infer_manual_data_interval(run_after=moment)
        assert interval.start == interval.end


class TestSerialisation:
    @KEPT
    @given(schedule=schedules())
    def test_goes_through_json_unchanged(self, schedule):
        timetable = PartitionTimetable(schedule)
        text = json.dumps(timetable.serialize())
        back = PartitionTimetable.deserialize(json.loads(text))
        assert back == timetable
        assert json.dumps(back.serialize()) == text
        assert (back.summary, back.description) == (timetable.summary, timetable.description)

    def test_summary_and_description_say_cron_and_grid(self):
        timetable = PartitionTimetable(schedule_of({Mode.BACKFILL: "0 6 * * mon", Mode.UPLOAD: "@daily"}, DAY))
        assert timetable.summary == "0 6 * * mon | 0 0 * * *"
        assert timetable.description == "0 6 * * mon | 0 0 * * * over partitions of 1d"
        assert PartitionTimetable(schedule_of({}, HOUR)).summary == "@never"


def test_an_interval_is_left_out_when_a_manual_run_holds_the_logical_date(clock):
    # Airflow allows each logical date once per DAG: the key alone must do then
    clock.instant = at("2026-06-01T07:20:00Z")
    timetable = PartitionTimetable(schedule_of(*THREE_HOURLY))
    held = pendulum.datetime(2026, 6, 1, 4)
    last = DagRunInfo(held, DataInterval.exact(held), pendulum.datetime(2026, 6, 1, 1), "2026-06-01-01-00")
    info = timetable.next_dagrun_info_v2(last_dagrun_info=last, restriction=ANY_TIME)
    assert (info.partition_key, info.data_interval) == ("2026-06-01-04-00", None)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_bound_of_partition_dates_is_utc_whatever_the_zone_of_airflow(zone: str) -> None:  # all time is UTC
    timetable = PartitionTimetable(schedule_of(*THREE_HOURLY))
    for day in (pendulum.naive(2026, 6, 1), pendulum.datetime(2026, 6, 1, tz=zone)):
        assert from_datetime(timetable.localize_partition_datetime(day)) == at("2026-06-01")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_backfill_of_days_in_the_zone_of_airflow_makes_each_of_them(clock, zone: str) -> None:  # all time is UTC
    clock.instant = at("2026-06-10")
    daily = PartitionTimetable(schedule_of("0 0 * * *", DAY, 0))

    def keys(first: int, last: int) -> list[str | None]:
        days = (pendulum.datetime(2026, 6, day, tz=zone) for day in (first, last))
        found = daily.iter_partition_dagrun_infos(earliest=next(days), latest=next(days))
        return [info.partition_key for info in found]

    assert keys(1, 3) == ["2026-06-01", "2026-06-02", "2026-06-03"]
    assert keys(2, 2) == ["2026-06-02"]
