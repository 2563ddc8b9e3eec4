"""What the timetable makes of the runs in Airflow's database: scheduled, replayed and manual ones (C28, H8, H9)."""

from __future__ import annotations

from typing import Any

import pendulum
import pytest
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.timetables.base import TimeRestriction
from airflow.utils.types import DagRunType

from airflow_chronon.airflow.timetables.partitions import PartitionTimetable
from airflow_chronon.core.calendar.instants import DAY, MINUTE, to_datetime
from tests.support.schedules import T0, at, schedule_of

ANY_TIME = TimeRestriction(None, None, True)


@pytest.fixture
def timetable() -> PartitionTimetable:
    """A run per minute, with catch-up."""
    return PartitionTimetable(schedule_of("* * * * *", MINUTE, enabled=True, start=T0))


@pytest.fixture
def add_run(session):
    """Put a run into the database and read it back as the scheduler does."""

    def add(kind: DagRunType, label: str | None, *, logical_date: str | None = None, dag_id: str = "d") -> DagRun:
        date = None if label is None else at(f"{label[:10]}T{label[11:13] or '00'}:{label[14:16] or '00'}:00Z")
        logical = None if logical_date is None else to_datetime(at(logical_date))
        ends = logical if date is None else to_datetime(date + MINUTE)
        has_interval = kind is DagRunType.SCHEDULED and date is not None
        values: dict[str, Any] = {
            "dag_id": dag_id,
            "run_id": f"{kind.value}__{label}__{logical_date}",
            "run_type": kind.value,
            "logical_date": to_datetime(date) if has_interval and date is not None else logical,
            "data_interval": (to_datetime(date), ends) if has_interval and date is not None else None,
            "run_after": ends,
            "partition_key": label,
            "partition_date": None if date is None else to_datetime(date),
        }
        run = DagRun(
            **{name: value for name, value in values.items() if name not in ("partition_key", "partition_date")}
        )
        run.partition_key, run.partition_date = values["partition_key"], values["partition_date"]
        session.add(run)
        session.flush()
        session.refresh(run)
        return run

    return add


def next_key(timetable: PartitionTimetable, run: DagRun) -> str | None:
    """The run that Airflow plans next when ``run`` is the last it offers."""
    info = timetable.run_info_from_dag_run(dag_run=run)
    following = timetable.next_dagrun_info_v2(last_dagrun_info=info, restriction=ANY_TIME)
    return following and following.partition_key


def test_the_run_after_a_scheduled_one_is_the_next_partition(timetable, add_run, clock):
    clock.instant = T0 + 5 * MINUTE
    run = add_run(DagRunType.SCHEDULED, "2026-06-01-00-01")
    assert next_key(timetable, run) == "2026-06-01-00-02"


def test_a_replay_ahead_of_catch_up_tears_no_hole(timetable, add_run, clock):
    # C28: catch-up stands at 01:12, replays of 03:20 to 03:22 are offered as the last runs
    clock.instant = at("2026-06-01T05:00:00Z")
    add_run(DagRunType.SCHEDULED, "2026-06-01-01-11")
    add_run(DagRunType.SCHEDULED, "2026-06-01-01-12")
    replays = [add_run(DagRunType.BACKFILL_JOB, f"2026-06-01-03-{minute}") for minute in (20, 21, 22)]
    assert {next_key(timetable, replay) for replay in replays} == {"2026-06-01-01-13"}


def test_a_replay_before_any_scheduled_run_leaves_the_schedule_at_its_start(timetable, add_run, clock):
    # H9
    clock.instant = at("2026-06-01T05:00:00Z")
    replay = add_run(DagRunType.BACKFILL_JOB, "2026-06-01-03-20")
    assert next_key(timetable, replay) == "2026-06-01-00-00"


def test_runs_of_another_dag_do_not_count(timetable, add_run, clock):
    clock.instant = at("2026-06-01T05:00:00Z")
    add_run(DagRunType.SCHEDULED, "2026-06-01-04-00", dag_id="other")
    add_run(DagRunType.SCHEDULED, "2026-06-01-00-07")
    assert next_key(timetable, add_run(DagRunType.BACKFILL_JOB, "2026-06-01-03-20")) == "2026-06-01-00-08"


def test_scheduled_runs_from_before_the_timetable_knew_partitions_do_not_count(timetable, add_run, clock):
    clock.instant = at("2026-06-01T05:00:00Z")
    old = add_run(DagRunType.SCHEDULED, None, logical_date="2026-05-31T00:00:00Z")
    assert next_key(timetable, old) == "2026-06-01-00-00"


def test_a_manual_run_that_holds_the_logical_date_does_not_stop_the_schedule(timetable, add_run, clock):
    # Airflow allows each logical date once per DAG: the scheduled run then has its key and no interval
    clock.instant = at("2026-06-01T05:00:00Z")
    add_run(DagRunType.SCHEDULED, "2026-06-01-00-07")
    manual = add_run(DagRunType.MANUAL, None, logical_date="2026-06-01T00:08:00Z")
    info = timetable.run_info_from_dag_run(dag_run=manual)
    following = timetable.next_dagrun_info_v2(last_dagrun_info=info, restriction=ANY_TIME)
    assert following is not None
    assert (following.partition_key, following.data_interval) == ("2026-06-01-00-08", None)
    assert following.run_after == pendulum.datetime(2026, 6, 1, 0, 9)


def test_a_run_that_is_in_no_session_does_not_raise(timetable, clock):
    clock.instant = at("2026-06-01T05:00:00Z")
    run = DagRun(dag_id="d", run_id="r", run_type=DagRunType.BACKFILL_JOB.value, run_after=to_datetime(T0))
    assert next_key(timetable, run) == "2026-06-01-00-00"


def test_a_changed_grid_goes_on_from_the_newest_boundary(add_run, clock):
    # C22: its runs fail in their first task; the scheduler itself goes on behind what it has
    clock.instant = at("2026-06-03T05:00:00Z")
    run = add_run(DagRunType.SCHEDULED, "2026-06-01-07-13")
    daily = PartitionTimetable(schedule_of("@daily", DAY, enabled=True, start=T0))
    assert next_key(daily, run) == "2026-06-02"


class TestWaitingFires:
    """A fire that found every slot taken is created later; one that was missed is caught up or not (H8, H10, H12)."""

    LIMIT = 2

    @pytest.fixture
    def created(self, add_run, session):
        """A scheduled run with the moments of its life, as minutes after midnight."""

        def add(minute: int, *, created: float, ended: float | None = None) -> DagRun:
            run = add_run(DagRunType.SCHEDULED, f"2026-06-01-00-{minute:02}")
            run.created_at = to_datetime(T0 + int(created * MINUTE))
            run.end_date = None if ended is None else to_datetime(T0 + int(ended * MINUTE))
            session.flush()
            return run

        return add

    @pytest.fixture
    def create_next(self, session, clock):
        """The partition that the scheduler creates at a minute after midnight."""
        session.add(DagBundleModel(name="waiting"))
        session.flush()
        model = DagModel(dag_id="d", bundle_name="waiting")
        model.max_active_runs = self.LIMIT
        session.add(model)
        session.flush()

        def create(timetable: PartitionTimetable, minute: float, *, last: DagRun) -> str | None:
            clock.instant = T0 + int(minute * MINUTE)
            info = timetable.run_info_from_dag_run(dag_run=last)
            planned = timetable.next_dagrun_info_v2(last_dagrun_info=info, restriction=ANY_TIME)
            model.next_dagrun_create_after = planned.run_after
            model.next_dagrun_partition_key, model.next_dagrun_partition_date = planned[3], planned[2]
            return timetable.next_run_info_from_dag_model(dag_model=model).partition_key

        return create

    def test_without_catch_up_a_fire_that_waited_for_a_slot_is_not_dropped(self, created, create_next):
        timetable = PartitionTimetable(schedule_of("* * * * *", MINUTE))
        created(0, created=1, ended=7)
        last = created(1, created=2)  # both slots are taken until 00:07
        assert create_next(timetable, 7.5, last=last) == "2026-06-01-00-02"

    def test_the_fires_behind_it_follow_one_by_one(self, created, create_next):
        timetable = PartitionTimetable(schedule_of("* * * * *", MINUTE))
        created(1, created=2)
        last = created(2, created=7.5)
        assert create_next(timetable, 8.5, last=last) == "2026-06-01-00-03"

    def test_without_catch_up_an_outage_leaves_the_newest_alone(self, created, create_next):
        timetable = PartitionTimetable(schedule_of("* * * * *", MINUTE))
        created(0, created=1, ended=1.5)
        last = created(1, created=2, ended=2.5)
        assert create_next(timetable, 30.5, last=last) == "2026-06-01-00-29"

    def test_the_cap_holds_for_an_outage_and_does_not_slide_while_it_drains(self, created, create_next):
        timetable = PartitionTimetable(schedule_of("* * * * *", MINUTE, enabled=True, start=T0, max_runs=3))
        last = created(1, created=2, ended=2.5)
        assert create_next(timetable, 30.5, last=last) == "2026-06-01-00-27"
        last = created(27, created=30.5, ended=30.7)
        assert create_next(timetable, 31.5, last=last) == "2026-06-01-00-28"  # not 29, though it is three back again

    def test_the_cap_never_drops_a_fire_that_waited_for_a_slot(self, created, create_next):
        timetable = PartitionTimetable(schedule_of("* * * * *", MINUTE, enabled=True, start=T0, max_runs=1))
        created(0, created=1, ended=9)
        last = created(1, created=2)
        assert create_next(timetable, 9.5, last=last) == "2026-06-01-00-02"

    def test_replays_take_no_slot(self, add_run, created, create_next):
        timetable = PartitionTimetable(schedule_of("* * * * *", MINUTE))
        for minute in (20, 21):
            add_run(DagRunType.BACKFILL_JOB, f"2026-06-01-00-{minute}").created_at = to_datetime(T0)
        last = created(1, created=2, ended=2.5)
        assert create_next(timetable, 30.5, last=last) == "2026-06-01-00-29"
