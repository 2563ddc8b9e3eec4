"""The timetable of jobs and what ran before: pauses, and what the scheduler creates of what was planned (H8, H10, H12, H14)."""

from __future__ import annotations

import pytest
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.log import Log

from airflow_chronon.airflow.timetables.intervals import JobTimetable
from airflow_chronon.core.calendar.instants import HOUR, to_datetime
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from tests.support.airflow_jobs import ANY_TIME, job_schedule, moment
from tests.support.schedules import at


def logged(session, text: str, *, event: str = "patch_dag", extra: str = '{"is_paused": false}') -> None:
    """Airflow's audit log has it."""
    log = Log(event=event, dag_id="d", extra=extra)
    log.dttm = to_datetime(at(text))
    session.add(log)
    session.flush()


class TestPauses:
    """A job that was paused in the UI (H14)."""

    @pytest.fixture
    def model(self, session) -> DagModel:
        session.add(DagBundleModel(name="pauses"))
        session.flush()
        model = DagModel(dag_id="d", bundle_name="pauses", is_paused=False)
        model.max_active_runs = 64
        session.add(model)
        session.flush()
        return model

    @pytest.fixture
    def last(self, session) -> DagRun:
        """The last run before the pause: at nine o'clock."""
        start, end = at("2026-06-01T08:00:00Z"), at("2026-06-01T09:00:00Z")
        run = DagRun(
            dag_id="d",
            run_id="scheduled__x",
            run_type="scheduled",
            logical_date=to_datetime(start),
            data_interval=(to_datetime(start), to_datetime(end)),
            run_after=to_datetime(end),
        )
        run.partition_key, run.partition_date = "2026-06-01T08:00:00Z", to_datetime(start)
        session.add(run)
        session.flush()
        session.refresh(run)
        return run

    def planned(self, schedule: IntervalSchedule, run: DagRun) -> str:
        timetable = JobTimetable(schedule)
        found = timetable.next_dagrun_info_v2(
            last_dagrun_info=timetable.run_info_from_dag_run(dag_run=run), restriction=ANY_TIME
        )
        assert found is not None
        return found.run_after.format("HH:mm")

    def unpaused(self, session, text: str, *, after: str | None = "2026-06-01T08:10:00Z", **of: str) -> None:
        """The DAG is unpaused, having been paused at ``after``."""
        if after is not None:
            logged(session, after, extra='{"is_paused": true}')
        logged(session, text, **of)

    def test_while_it_is_paused_the_plan_moves_on_with_the_clock(self, clock, model, last):
        clock.instant = at("2026-06-01T12:20:00Z")
        model.is_paused = True
        assert self.planned(job_schedule(), last) == "13:00"

    def test_once_unpaused_nothing_of_the_pause_is_made_up(self, session, clock, model, last):
        clock.instant = at("2026-06-01T12:40:00Z")
        self.unpaused(session, "2026-06-01T12:20:00Z")
        assert self.planned(job_schedule(), last) == "13:00"

    @pytest.mark.parametrize(
        "of",
        [
            {"event": "patch_dag", "extra": '{"is_paused": false, "method": "PATCH"}'},
            {"event": "cli_dag_unpause", "extra": "{}"},
        ],
        ids=["by the UI or the API", "by the command line"],
    )
    def test_a_fire_after_the_pause_is_due(self, session, clock, model, last, of):
        clock.instant = at("2026-06-01T13:10:00Z")
        self.unpaused(session, "2026-06-01T12:20:00Z", **of)
        assert self.planned(job_schedule(), last) == "13:00"

    def test_an_outage_after_an_old_pause_is_an_outage(self, session, clock, model, last):
        # H8
        clock.instant = at("2026-06-01T12:40:00Z")
        self.unpaused(session, "2026-06-01T08:20:00Z")
        assert self.planned(job_schedule(), last) == "12:00"

    def test_an_unpausing_of_a_job_that_was_not_paused_is_none(self, session, clock, model, last):
        # H8: a script unpauses everything after an outage
        clock.instant = at("2026-06-01T12:40:00Z")
        self.unpaused(session, "2026-06-01T12:20:00Z", after=None)
        assert self.planned(job_schedule(), last) == "12:00"

    def test_an_unpausing_after_the_end_of_a_pause_does_not_draw_it_out(self, session, clock, model, last):
        # H8
        clock.instant = at("2026-06-01T12:40:00Z")
        self.unpaused(session, "2026-06-01T08:30:00Z")
        self.unpaused(session, "2026-06-01T12:20:00Z", after=None, event="cli_dag_unpause", extra="{}")
        assert self.planned(job_schedule(), last) == "12:00"

    def test_a_pause_by_the_command_line_counts_too(self, session, clock, model, last):
        clock.instant = at("2026-06-01T12:40:00Z")
        logged(session, "2026-06-01T09:10:00Z", event="cli_dag_pause", extra="{}")
        self.unpaused(session, "2026-06-01T12:20:00Z", after=None)
        assert self.planned(job_schedule(), last) == "13:00"

    def test_what_is_reported_of_the_last_run_stays_as_it_is(self, session, clock, model, last):
        clock.instant = at("2026-06-01T12:40:00Z")
        self.unpaused(session, "2026-06-01T12:20:00Z")
        found = JobTimetable(job_schedule()).run_info_from_dag_run(dag_run=last)
        assert (found.partition_key, found.partition_date) == ("2026-06-01T08:00:00Z", moment("2026-06-01T08:00:00Z"))

    def test_the_interval_after_a_pause_is_a_whole_one(self, session, clock, model, last):
        # H2
        clock.instant = at("2026-06-01T12:40:00Z")
        self.unpaused(session, "2026-06-01T12:20:00Z")
        timetable = JobTimetable(job_schedule())
        found = timetable.next_dagrun_info_v2(
            last_dagrun_info=timetable.run_info_from_dag_run(dag_run=last), restriction=ANY_TIME
        )
        assert found is not None and found.partition_key == "2026-06-01T12:00:00Z"

    def test_with_catch_up_the_pause_is_replayed(self, session, clock, model, last):
        clock.instant = at("2026-06-01T12:40:00Z")
        self.unpaused(session, "2026-06-01T12:20:00Z")
        assert self.planned(job_schedule(enabled=True, start=at("2026-01-01T00:00:00Z")), last) == "10:00"


class TestCreation:
    """What the scheduler creates of what was planned (H8, H10, H12), as for confs."""

    @pytest.fixture
    def create(self, session, clock):
        session.add(DagBundleModel(name="creation"))
        session.flush()
        model = DagModel(dag_id="d", bundle_name="creation", is_paused=False)
        model.max_active_runs = 2
        session.add(model)
        session.flush()

        def create(schedule: IntervalSchedule, now: str, *, planned: str) -> str:
            clock.instant = at(now)
            run = schedule.run_of(at(planned))
            model.next_dagrun_create_after = to_datetime(run.fire)
            model.next_dagrun_partition_key, model.next_dagrun_partition_date = run.key, to_datetime(run.logical_date)
            found = JobTimetable(schedule).next_run_info_from_dag_model(dag_model=model)
            assert found is not None and found.partition_key is not None
            return found.partition_key

        return create

    def add(self, session, logical_date: str, *, created: str) -> None:
        start = at(logical_date)
        run = DagRun(dag_id="d", run_id=logical_date, run_type="scheduled", run_after=to_datetime(start + HOUR))
        run.partition_key, run.partition_date = logical_date, to_datetime(start)
        run.created_at = to_datetime(at(created))
        session.add(run)
        session.flush()

    def test_what_an_outage_overtook_gives_way_to_the_newest(self, create):
        assert create(job_schedule(), "2026-06-01T06:10:00Z", planned="2026-06-01T00:00:00Z") == "2026-06-01T05:00:00Z"

    def test_a_fire_that_waited_for_a_slot_comes(self, session, create):
        # H12
        self.add(session, "2026-06-01T00:00:00Z", created="2026-06-01T01:00:01Z")
        self.add(session, "2026-06-01T01:00:00Z", created="2026-06-01T02:00:01Z")
        found = create(job_schedule(), "2026-06-01T06:10:00Z", planned="2026-06-01T05:00:00Z")
        assert found == "2026-06-01T02:00:00Z"

    def full_before_a_pause(self, session) -> None:
        """As many unfinished runs as there may be; then paused until half past five."""
        self.add(session, "2026-06-01T00:00:00Z", created="2026-06-01T01:00:01Z")
        self.add(session, "2026-06-01T01:00:00Z", created="2026-06-01T02:00:01Z")
        logged(session, "2026-06-01T02:30:00Z", extra='{"is_paused": true}')
        logged(session, "2026-06-01T05:30:00Z")

    def test_what_fell_into_a_pause_did_not_wait_for_a_slot(self, session, create):
        # H14: the slots were busy all the time
        self.full_before_a_pause(session)
        found = create(job_schedule(), "2026-06-01T06:10:00Z", planned="2026-06-01T05:00:00Z")
        assert found == "2026-06-01T05:00:00Z"

    def test_what_came_due_after_a_pause_did(self, session, create):
        # H12, H14
        self.full_before_a_pause(session)
        found = create(job_schedule(), "2026-06-01T09:10:00Z", planned="2026-06-01T08:00:00Z")
        assert found == "2026-06-01T05:00:00Z"

    def test_what_fell_into_a_pause_is_replayed_with_catch_up(self, session, create):
        # H14
        self.full_before_a_pause(session)
        of = job_schedule(enabled=True, start=at("2026-01-01T00:00:00Z"))
        assert create(of, "2026-06-01T06:10:00Z", planned="2026-06-01T05:00:00Z") == "2026-06-01T02:00:00Z"

    def test_what_came_due_while_the_job_was_off_did_not_wait_for_a_slot(self, session, create):
        # H14: seen to be on again at half past four
        self.add(session, "2026-06-01T00:00:00Z", created="2026-06-01T01:00:01Z")
        self.add(session, "2026-06-01T01:00:00Z", created="2026-06-01T02:00:01Z")
        of = job_schedule(active_since=at("2026-06-01T04:30:00Z"))
        assert create(of, "2026-06-01T06:10:00Z", planned="2026-06-01T05:00:00Z") == "2026-06-01T04:00:00Z"
