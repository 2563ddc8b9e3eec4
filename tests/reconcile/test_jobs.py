"""The reconciler and jobs: activation, pauses, edits, flips, retirements (H8, H13 to H16, C23)."""

from __future__ import annotations

import contextlib

import pytest

from airflow_chronon.core.calendar.instants import HOUR, MINUTE, iso
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.plan.actions import Report, Unpause
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.errors import Fault
from tests.support.job_world import ID, deployed, entry, later, ran
from tests.support.world import NOW, Killed, World, conf, job


class TestActivation:
    def test_a_job_is_active_since_it_was_first_seen(self) -> None:
        # H14
        world = deployed()
        assert (entry(world).active_since, entry(world).begins, entry(world).first_seen) == (NOW, NOW, NOW)

    def test_a_conf_needs_none(self) -> None:
        world = World()
        world.deploy(conf("t.a__1"))
        world.converge()
        assert entry(world, "staging_query.t.a__1").active_since is None

    def test_it_is_active_anew_since_it_was_seen_to_be_on_again(self) -> None:
        # H14
        world = deployed()
        later(world, HOUR, job(enabled=False))
        later(world, HOUR, job(enabled=False))
        assert entry(world).active_since == NOW
        later(world, HOUR, job())
        assert entry(world).active_since == NOW + 3 * HOUR
        assert [revision.fires for revision in entry(world).revisions] == [True, False, True]

    def test_a_schedule_that_a_job_gets_later_is_active_from_then_on(self) -> None:
        world = deployed(cron=None)
        later(world, HOUR, job())
        assert entry(world).active_since == NOW + HOUR

    def test_nothing_else_changes_that(self) -> None:
        world = deployed()
        later(world, HOUR, job(cron="5 * * * *", max_active_runs=2))
        assert entry(world).active_since == NOW
        assert len(entry(world).revisions) == 2

    def test_its_record_survives_being_written_and_read(self) -> None:
        world = deployed()
        later(world, HOUR, job(enabled=False))
        assert DeploymentRecord.from_json(entry(world).to_json(), dag_id=ID) == entry(world)

    def test_an_unchanged_tree_changes_nothing(self) -> None:
        world = deployed()
        world.now += HOUR
        assert world.reconcile().plan.is_up_to_date


class TestPauses:
    def paused(self) -> World:
        world = deployed()
        world.airflow.set_paused(ID, paused=True)
        later(world, HOUR)
        return world

    def test_a_paused_job_stays_paused_and_is_noted(self) -> None:
        # H14, C25
        world = self.paused()
        plan = world.reconcile().plan
        assert world.airflow.dag_records[ID].is_paused
        assert not [action for action in plan.actions if isinstance(action, Unpause)]
        assert any(isinstance(action, Report) and action.conf == ID for action in plan.actions)

    @pytest.mark.parametrize(
        ("ran_until", "since"),
        [(2, 3), (5, 5), (None, 1)],
        ids=["seen late", "seen at once", "before its first run"],
    )
    def test_a_pause_that_is_seen_late_is_one_since_the_first_fire_that_did_not_come(
        self, ran_until: int | None, since: int
    ) -> None:
        # H20: it fires at every full hour
        world = deployed()
        for hour in range(1, 1 + (ran_until or 0)):
            ran(world, NOW + hour * HOUR)
        world.airflow.set_paused(ID, paused=True)
        later(world, 5 * HOUR)
        revision = entry(world).now
        assert revision is not None and revision.is_paused
        assert revision.since == NOW + since * HOUR

    def test_its_record_has_the_pause_and_its_end(self) -> None:
        # H20
        world = self.paused()
        assert [revision.is_paused for revision in entry(world).revisions] == [False, True]
        world.airflow.set_paused(ID, paused=False)
        later(world, HOUR)
        assert [revision.is_paused for revision in entry(world).revisions] == [False, True, False]
        assert entry(world).active_since == NOW + 2 * HOUR

    def test_a_replay_waits_until_someone_unpauses_the_job(self) -> None:
        # H13
        world = deployed(start_time="2026-06-09T12:00Z")
        ran(world, NOW - HOUR)
        world.airflow.set_paused(ID, paused=True)
        later(world, MINUTE, job(start_time="2026-06-09T12:00Z", catchup=True))
        assert len(world.airflow.run_records) == 1
        world.airflow.set_paused(ID, paused=False)
        later(world, MINUTE)
        assert len(world.airflow.run_records) == 11


class TestAnEditOfTheVersion:
    """A job is one thing that is edited: it keeps its DAG, its history, its pause and its place (H21)."""

    def test_keeps_the_dag_its_runs_and_since_when_it_counts(self) -> None:
        world = deployed()
        ran(world, NOW + HOUR)
        later(world, 2 * HOUR + 20 * MINUTE, job(version=2))
        assert world.live() == {ID} and world.reconcile().plan.is_up_to_date
        assert "version:2" in world.airflow.dag_records[ID].tags
        assert len(world.history(ID)) == 1 and not world.state().archives(ID)
        assert (entry(world).active_since, len(entry(world).revisions)) == (NOW, 1)

    def test_goes_on_after_its_last_interval(self) -> None:
        # H8: it last fired at 01:00, and the edit is seen at 03:20
        world = deployed()
        ran(world, NOW + HOUR)
        later(world, 3 * HOUR + 20 * MINUTE, job(version=2))
        following = world.airflow.jobs[ID].next_run(NOW + HOUR, world.now)
        assert following is not None and following.fire == NOW + 3 * HOUR

    def test_keeps_its_place_in_catch_up(self) -> None:
        # H9: the start is five months ago, and the old version got as far as 01:00
        start = {"start_time": "2026-01-01T00:00Z", "catchup": True}
        world = deployed(**start)
        ran(world, NOW + HOUR)
        later(world, 3 * HOUR + 20 * MINUTE, job(version=2, **start))
        fires = [run.fire for run in world.airflow.jobs[ID].missed(NOW + HOUR, world.now)]
        assert fires == [NOW + 2 * HOUR, NOW + 3 * HOUR]

    def test_that_switches_catch_up_on_too_replays_what_was_missed(self) -> None:
        # H13
        world = deployed(start_time="2026-06-09T20:00Z")
        ran(world, NOW)
        later(world, MINUTE, job(version=2, start_time="2026-06-09T20:00Z", catchup=True))
        replayed = [run.partition_key for run in world.airflow.run_records if run.run_type != "scheduled"]
        assert replayed == [iso(NOW - hours * HOUR) for hours in (4, 3, 2)]

    def test_unpauses_nothing(self) -> None:
        # H14
        world = deployed()
        world.airflow.set_paused(ID, paused=True)
        later(world, 2 * HOUR)
        later(world, HOUR, job(version=2))
        assert world.airflow.dag_records[ID].is_paused and entry(world).now.is_paused

    def test_after_a_retirement_is_a_new_job(self) -> None:
        # H16
        world = deployed()
        ran(world, NOW)
        world.deploy(job("other"))
        world.converge()
        later(world, HOUR, job("other"), job(version=2))
        assert entry(world).active_since == world.now


class TestRetirement:
    def test_a_job_that_is_gone_is_drained_archived_and_deleted(self) -> None:
        # C23
        world = deployed()
        world.parse()
        world.fire(ID)
        world.deploy(job("other"))
        world.converge()
        assert world.live() == {"job.etl.other"}
        assert world.history(ID) == {"scheduled__1"}
        assert "jobs/etl/hourly.yaml" in str(world.state().read_archive(world.state().archives(ID)[0]))

    def test_a_broken_job_file_retires_nothing(self) -> None:
        # C23
        world = deployed()
        bad = RejectedConf("job/etl.hourly", "jobs/etl/hourly.yaml", (Fault("settings", "", "it is not YAML"),))
        world.deploy(job("other"), bad)
        world.converge()
        assert ID in world.live()

    def test_deleted_and_created_again_it_forgets(self) -> None:
        # H16
        world = deployed()
        world.deploy(job("other"))
        world.converge()
        later(world, 5 * HOUR, job("other"), job())
        assert (entry(world).active_since, entry(world).begins) == (world.now, world.now)
        assert entry(world).retirement is None

    def test_back_before_it_was_deleted_it_goes_on(self) -> None:
        world = deployed()
        later(world, HOUR, job("other"))
        later(world, HOUR, job("other"), job())
        assert entry(world).active_since == NOW


def test_two_branches_with_one_job_do_not_meet() -> None:
    # C24: a job has no table that both could write
    world = deployed()
    world.deploy(job(), branch="try")
    world.converge("try")
    assert world.live("try") == {"try--job.etl.hourly"}
    assert not world.reconcile("try").plan.findings
    assert entry(world).manifest.table == ""


@pytest.mark.parametrize("number", range(12))
def test_a_job_that_is_back_after_its_retirement_is_new_whenever_the_reconciler_is_killed(
    number: int,
) -> None:  # H8, H16
    world, kept = World(), conf("t.s.kept__1")
    world.deploy(kept, job())
    world.converge()
    world.deploy(kept)
    world.converge()
    assert ID not in world.airflow.dag_records
    world.now += 5 * HOUR
    world.deploy(kept, job())
    world.parse()
    calm = world.kill_at(number)
    with contextlib.suppress(Killed):
        world.reconcile()
    calm()
    world.converge()
    assert (entry(world).first_seen, entry(world).active_since) == (NOW + 5 * HOUR, NOW + 5 * HOUR)
