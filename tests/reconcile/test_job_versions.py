"""One version of a job in the place of another: bumps, roll-backs, pauses on the way, the last runs of the old one (H8, H14)."""

from __future__ import annotations

import pytest

from airflow_chronon.airflow_api.errors import AirflowRefused
from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant, iso
from airflow_chronon.core.plan.actions import KeepPaused, Unpause
from airflow_chronon.core.plan.history import as_seen
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.job_runs import JobRun
from tests.reconcile.test_jobs import ID, NEXT, deployed, entry, later, ran
from tests.support.world import NOW, World, job


def schedule(world: World, dag_id: str) -> IntervalSchedule:
    """As the DAG's timetable has it."""
    plan = world.trees["main"].facts().plans[dag_id]
    return as_seen(plan.schedule, entry(world, dag_id))  # type: ignore[union-attr,arg-type]


def following(world: World, dag_id: str, last: Instant | None = None) -> str:
    run: JobRun | None = schedule(world, dag_id).next_run(last, world.now)
    assert run is not None
    return str(run.window)


def hours(start: int, end: int) -> str:
    return f"[{iso(NOW + start * HOUR)}, {iso(NOW + end * HOUR)})"


def is_running(world: World, fire: Instant, *, dag_id: str = ID) -> None:
    start = fire - HOUR
    world.airflow.run_records.append(
        RunRecord(dag_id, f"scheduled__{iso(start)}", "scheduled", "running", iso(start), start, run_after=fire)
    )


class TestABump:
    def test_with_catch_up_does_not_run_again_what_the_old_version_did(self) -> None:
        # H8: the start is five months ago, and the old version got as far as 01:00
        start = {"start_time": "2026-01-01T00:00Z", "catchup": True}
        world = deployed(**start)
        ran(world, NOW + HOUR)
        later(world, 3 * HOUR + 20 * MINUTE, job(version=2, **start))
        of = schedule(world, NEXT)
        assert [str(run.window) for run in of.missed(None, world.now)] == [hours(1, 2), hours(2, 3)]

    def test_of_a_version_that_never_ran_replays_since_the_start(self) -> None:
        # H13
        start = {"start_time": "2026-06-09T22:00Z", "catchup": True}
        world = deployed(**start)
        later(world, 20 * MINUTE, job(version=2, **start))
        assert following(world, NEXT) == hours(-2, -1)

    def test_with_another_cron_begins_where_the_old_version_ended(self) -> None:
        # H2, H8: hourly until 10:00, daily since
        start = {"start_time": "2026-01-01T00:00Z"}
        world = deployed(**start)
        ran(world, NOW + 10 * HOUR)
        later(world, 10 * HOUR + 30 * MINUTE, job(version=2, cron="0 0 * * *", **start))
        assert following(world, NEXT) == hours(10, 24)

    def test_and_a_flip_later_owe_only_what_the_new_version_missed(self) -> None:
        # H8, H13: hourly until 10:00; the first daily interval begins there, and was lost in an outage
        start = {"start_time": "2026-01-01T00:00Z"}
        world = deployed(**start)
        ran(world, NOW + 10 * HOUR)
        later(world, 10 * HOUR + 30 * MINUTE, job(version=2, cron="0 0 * * *", **start))
        midnight = NOW + 2 * DAY
        record = RunRecord(NEXT, "s", "scheduled", "success", iso(midnight - DAY), midnight - DAY, run_after=midnight)
        world.airflow.run_records.append(record)
        later(world, 2 * DAY, job(version=2, cron="0 0 * * *", catchup=True, **start))
        replayed = [run.partition_key for run in world.airflow.run_records if run.run_type != "scheduled"]
        assert replayed == [iso(NOW + 10 * HOUR)]

    def test_of_one_that_was_off_replays_the_pause_with_catch_up_and_no_more(self) -> None:
        # H14
        start = {"start_time": "2026-01-01T00:00Z", "catchup": True}
        world = deployed(**start)
        ran(world, NOW + HOUR)
        later(world, HOUR, job(enabled=False, **start))
        later(world, HOUR, job(version=2, **start))
        assert following(world, NEXT) == hours(1, 2)

    def test_that_was_off_in_between_makes_up_nothing(self) -> None:
        # H14: on, then a version that is off, then one that is on, while the first still has a run in progress
        world = deployed()
        is_running(world, NOW + HOUR)
        later(world, 2 * HOUR, job(version=2, enabled=False))
        later(world, 2 * HOUR, job(version=3))
        assert entry(world, "job.etl.hourly__3").active_since == world.now

    def test_right_after_the_old_version_was_on_again_makes_up_nothing_of_the_pause(self) -> None:
        # H14
        world = deployed()
        ran(world, NOW + HOUR)
        later(world, HOUR, job(enabled=False))
        later(world, 4 * HOUR, job())
        later(world, MINUTE, job(version=2))
        assert entry(world, NEXT).active_since == NOW + 5 * HOUR


class TestARollBack:
    """The old version in the place of the new one (H8): nothing lost, nothing doubled (C28)."""

    def test_after_the_old_version_was_retired_goes_on_after_the_new_ones_last_fire(self) -> None:
        world = deployed()
        ran(world, NOW + HOUR)
        later(world, 2 * HOUR, job(version=2))
        world.pending_ranges()
        assert world.live() == {NEXT}
        ran(world, NOW + 3 * HOUR, dag_id=NEXT)
        ran(world, NOW + 4 * HOUR, dag_id=NEXT)
        later(world, 2 * HOUR + 30 * MINUTE, job())
        assert (entry(world).active_since, entry(world).begins) == (NOW + 4 * HOUR, NOW + 4 * HOUR)
        world.now += HOUR
        assert following(world, ID) == hours(4, 5)

    @pytest.mark.parametrize(
        "of",
        [{}, {"start_time": "2026-06-01T00:00Z"}, {"start_time": "2026-06-01T00:00Z", "catchup": True}],
        ids=["without a start", "with a start", "with catch-up"],
    )
    def test_before_the_old_version_was_retired_does_not_repeat_the_new_ones_runs(self, of: dict[str, object]) -> None:
        world = deployed(**of)
        is_running(world, NOW + 2 * HOUR)
        later(world, 2 * HOUR + 10 * MINUTE, job(version=2, **of))
        ran(world, NOW + 3 * HOUR, dag_id=NEXT)
        ran(world, NOW + 4 * HOUR, dag_id=NEXT)
        later(world, 2 * HOUR + 20 * MINUTE, job(**of))
        assert following(world, ID, NOW + 2 * HOUR) == hours(4, 5)

    def test_does_not_fire_before_a_reconcile_has_seen_it(self) -> None:
        # H14: the new version was there for one reconcile only
        world = deployed()
        later(world, 2 * HOUR, job(version=2))
        world.deploy(job())
        assert not schedule(world, ID).enabled

    def test_of_a_version_that_was_off_makes_up_nothing(self) -> None:
        # H14
        world = deployed()
        is_running(world, NOW + HOUR)
        later(world, 2 * HOUR, job(version=2, enabled=False))
        later(world, 2 * HOUR + 30 * MINUTE, job())
        assert entry(world).active_since == world.now

    def test_and_forth_again_goes_on_after_the_last_fire_of_all(self) -> None:
        world = deployed()
        is_running(world, NOW + HOUR)
        later(world, 2 * HOUR, job(version=2))
        is_running(world, NOW + 3 * HOUR, dag_id=NEXT)
        later(world, 90 * MINUTE, job())
        later(world, MINUTE, job(version=2))
        assert entry(world, NEXT).goes_on_after == NOW + 3 * HOUR

    def test_that_is_bumped_goes_on_after_the_version_that_was_there_last(self) -> None:
        # 1, 2, 3, back to 2, then 4, all with runs in progress
        world = deployed()
        third, fourth = "job.etl.hourly__3", "job.etl.hourly__4"
        is_running(world, NOW + HOUR)
        for version, fire, dag_id in ((2, 2, NEXT), (3, 3, third), (2, 4, NEXT)):
            later(world, HOUR, job(version=version))
            is_running(world, NOW + fire * HOUR, dag_id=dag_id)
        later(world, HOUR, job(version=4))
        assert entry(world, fourth).goes_on_after == NOW + 4 * HOUR


class TestAPausedVersion:
    """H14: a bump is no unpausing."""

    def bumped(self) -> World:
        world = deployed()
        ran(world, NOW + HOUR)
        world.airflow.set_paused(ID, paused=True)
        later(world, 2 * HOUR)
        later(world, HOUR + 10 * MINUTE, job(version=2))
        return world

    def test_leaves_the_new_one_paused_and_says_so(self) -> None:
        world = deployed()
        world.airflow.set_paused(ID, paused=True)
        world.now += HOUR
        world.deploy(job(version=2))
        world.parse()
        plan = world.reconcile().plan
        assert [action.dag_id for action in plan.actions if isinstance(action, KeepPaused)] == [NEXT]
        assert world.airflow.dag_records[NEXT].is_paused
        assert entry(world, NEXT).now.is_paused

    def test_is_paused_once_and_may_be_unpaused(self) -> None:
        world = self.bumped()
        world.airflow.set_paused(NEXT, paused=False)
        world.pending_ranges()
        assert not world.airflow.dag_records[NEXT].is_paused
        assert entry(world, NEXT).active_since == world.now

    def test_gives_the_new_one_a_whole_interval_once_that_is_unpaused(self) -> None:
        # H2, as after any pause
        world = self.bumped()
        world.airflow.set_paused(NEXT, paused=False)
        later(world, 30 * MINUTE)
        assert following(world, NEXT) == hours(3, 4)

    def test_is_not_recorded_before_its_dag_can_be_paused(self) -> None:
        # until then it does not fire
        world = deployed()
        world.airflow.set_paused(ID, paused=True)
        world.deploy(job(version=2))
        world.reconcile()
        assert NEXT not in world.state().journal()
        later(world, MINUTE)
        assert world.airflow.dag_records[NEXT].is_paused and entry(world, NEXT).now.is_paused

    def test_is_not_recorded_when_airflow_refuses_to_pause_it(self) -> None:
        world = deployed()
        world.airflow.set_paused(ID, paused=True)
        world.deploy(job(version=2))
        world.parse()

        def refuse(name: str) -> None:
            if name == "pause":
                raise AirflowRefused("pausing", status=500, detail="not now")

        world.airflow.before = refuse
        world.reconcile()
        assert NEXT not in world.state().journal()

    def test_with_catch_up_the_pause_is_replayed_once_the_new_one_is_unpaused(self) -> None:
        start = {"start_time": "2026-01-01T00:00Z", "catchup": True}
        world = deployed(**start)
        ran(world, NOW + HOUR)
        world.airflow.set_paused(ID, paused=True)
        later(world, 2 * HOUR)
        later(world, HOUR, job(version=2, **start))
        world.airflow.set_paused(NEXT, paused=False)
        later(world, HOUR)
        assert following(world, NEXT) == hours(1, 2)

    def test_is_unpaused_for_its_last_runs_and_then_retired(self) -> None:
        # C23: Airflow does not look at the runs of a paused DAG
        world = deployed()
        is_running(world, NOW + HOUR)
        world.airflow.set_paused(ID, paused=True)
        later(world, HOUR)
        world.deploy(job(version=2))
        world.parse()
        later(world, MINUTE)
        later(world, MINUTE)
        world.pending_ranges()
        assert world.live() == {NEXT}
        assert world.airflow.dag_records[NEXT].is_paused

    def test_that_is_deleted_is_unpaused_for_its_last_runs_too(self) -> None:
        world = deployed()
        is_running(world, NOW + HOUR)
        world.airflow.set_paused(ID, paused=True)
        later(world, HOUR)
        world.deploy(job("other"))
        world.parse()
        assert [each.dag_id for each in world.reconcile().plan.actions if isinstance(each, Unpause)] == [ID]
        world.pending_ranges()
        assert ID not in world.live()
