"""The reconciler and jobs: activation, pauses, edits, flips, retirements (H8, H13 to H16, C23)."""

from __future__ import annotations

import contextlib

import pytest

from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.core.calendar.instants import HOUR, MINUTE, iso
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.jobs.document import Job
from airflow_chronon.core.plan.actions import Report, Unpause
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.errors import Fault
from tests.support.confs import at
from tests.support.world import NOW, Killed, World, conf, go_on, job

ID = "job.etl.hourly"


def entry(world: World, dag_id: str = ID) -> DeploymentRecord:
    return world.records()[dag_id]


def ran(world: World, fire: int, *, dag_id: str = ID, kind: str = "scheduled", state: str = "success") -> None:
    """The run of an hourly fire."""
    start = fire - HOUR
    world.airflow.run_records.append(
        RunRecord(dag_id, f"{kind}__{iso(start)}", kind, state, iso(start), start, run_after=fire)
    )


def later(world: World, seconds: int, *confs: object, **settings: object) -> None:
    """Time passes, and the tree changes."""
    world.now += seconds
    if confs:
        world.deploy(*confs, **settings)  # type: ignore[arg-type]
    world.parse()
    world.reconcile()


def deployed(**schedule: object) -> World:
    world = World()
    world.deploy(job(**schedule))  # type: ignore[arg-type]
    world.converge()
    return world


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


class TestASchedule:
    """One that a job loses and gets again (H13, H16, H19)."""

    START = "2026-06-09T12:00Z"

    def again(self, *, before: bool = False, **schedule: object) -> World:
        world = deployed(start_time=self.START, catchup=before)
        ran(world, at("2026-06-09 12:00") + 3 * HOUR)
        ran(world, NOW)
        later(world, MINUTE, job(cron=None))
        later(world, MINUTE, job(**schedule))  # type: ignore[arg-type]
        return world

    @pytest.mark.parametrize("before", [False, True], ids=["had no catch-up before", "had catch-up before"])
    def test_with_catch_up_replays_everything_since_its_start(self, before: bool) -> None:
        # H16: it is new, as if the job were, and what ran before does not count
        world = self.again(before=before, start_time=self.START, catchup=True)
        go_on(world)
        keys = [str(run.partition_key)[11:13] for run in world.airflow.run_records if run.run_type != "scheduled"]
        assert keys == [str(hour) for hour in range(12, 24)]
        assert entry(world).pending is None

    def test_with_a_cap_replays_the_newest_of_it(self) -> None:
        # H10, H16
        world = self.again(start_time=self.START, catchup=True, max_catchup_runs=2)
        go_on(world)
        keys = [str(run.partition_key)[11:13] for run in world.airflow.run_records if run.run_type != "scheduled"]
        assert keys == ["22", "23"]

    def test_without_catch_up_waits_for_its_next_fire(self) -> None:
        # H8, H16
        world = self.again(start_time=self.START)
        world.parse()
        following = world.airflow.jobs[ID].next_run(NOW, world.now + HOUR)
        assert following is not None and following.fire == NOW + HOUR
        assert entry(world).pending is None

    def test_without_a_start_begins_when_it_is_seen(self) -> None:
        # H15
        world = self.again()
        assert (entry(world).active_since, entry(world).begins) == (NOW + 2 * MINUTE, NOW + 2 * MINUTE)


class TestABrokenFile:
    """A typo switches nothing off that someone meant to be on (C23, H8)."""

    BAD = RejectedConf("job/etl.hourly", "jobs/etl/hourly.yaml", (Fault("settings", "", "it is not YAML"),))

    def broken(self, *mended: Job) -> World:
        world = deployed()
        ran(world, NOW + HOUR)
        later(world, HOUR + 10 * MINUTE, self.BAD)
        later(world, HOUR, *mended)
        return world

    def test_that_is_mended_was_an_outage_and_no_pause(self) -> None:
        # H8: the newest interval that ended meanwhile is made up
        world = self.broken(job())
        assert [revision.is_broken for revision in entry(world).revisions] == [False, True, False]
        assert entry(world).active_since == NOW

    def test_that_is_mended_as_switched_off_and_on_again_was_a_pause(self) -> None:
        # H14
        world = self.broken(job(enabled=False))
        later(world, HOUR, self.BAD)
        later(world, HOUR, job(version=2))
        assert entry(world).active_since == world.now

    def test_stays_paused_if_it_was(self) -> None:
        # H14, C25
        world = deployed()
        world.airflow.set_paused(ID, paused=True)
        later(world, HOUR, self.BAD)
        plan = world.reconcile().plan
        assert world.airflow.dag_records[ID].is_paused
        assert any(
            isinstance(action, Report) and action.conf == ID and action.fault.rule == "C25" for action in plan.actions
        )

    def test_fires_no_more_until_it_is_good_again(self) -> None:
        world = self.broken()
        assert not entry(world).now.fires
        assert DeploymentRecord.from_json(entry(world).to_json(), dag_id=ID) == entry(world)


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


class TestAFlipToCatchUp:
    """H13: what was missed since the start is replayed, neighbours through one backfill, a single one by its key."""

    START = "2026-06-09T12:00Z"

    def flipped(self, *hours: int, **more: object) -> World:
        world = deployed(start_time=self.START)
        for hour in hours:
            ran(world, at("2026-06-09 12:00") + hour * HOUR)
        later(world, MINUTE, job(start_time=self.START, catchup=True, **more))  # type: ignore[arg-type]
        return world

    def replayed(self, world: World) -> list[str]:
        return [str(run.partition_key)[11:13] for run in world.airflow.run_records if run.run_type != "scheduled"]

    def test_neighbours_and_single_ones(self) -> None:
        world = self.flipped(3, 5, 12)
        calls = [call[0] for call in world.airflow.calls if call[0] in ("create_backfill", "trigger")]
        assert calls == ["create_backfill", "trigger"]
        assert self.replayed(world) == ["12", "13", "15"]
        go_on(world)
        assert self.replayed(world) == ["12", "13", "15", "17", "18", "19", "20", "21", "22"]

    def test_the_skip_date_first_and_then_the_cap(self) -> None:
        # H10, H11
        world = self.flipped(12, max_catchup_runs=2, skip_to_date="2026-06-09T15:00Z")
        assert self.replayed(world) == ["21", "22"]

    def test_a_window_that_was_run_by_hand_counts_as_none(self) -> None:
        # H7: it is not an interval of the schedule, whatever its window
        world = deployed(start_time=self.START)
        ran(world, at("2026-06-09 12:00") + 12 * HOUR)
        given = {"start_time": "2026-06-09T12:00:00Z", "end_time": "2026-06-09T13:00:00Z"}
        by_hand = RunRecord(ID, "manual__x", "manual", "success", conf=given, run_after=at("2026-06-09 12:30"))
        world.airflow.run_records.append(by_hand)
        later(world, MINUTE, job(start_time=self.START, catchup=True))
        assert self.replayed(world)[1:] == [str(hour) for hour in range(12, 23)]

    def test_an_irregular_cron_is_fine(self) -> None:
        world = World()
        schedule = {"cron": "0 9 * * 1-5", "start_time": "2026-06-01T00:00Z"}
        world.deploy(job(**schedule))  # type: ignore[arg-type]
        world.converge()
        start = at("2026-06-08 09:00")
        record = RunRecord(ID, "s", "scheduled", "success", iso(start), start, run_after=at("2026-06-09 09:00"))
        world.airflow.run_records.append(record)
        later(world, MINUTE, job(**schedule, catchup=True))  # type: ignore[arg-type]
        keys = [run.partition_key for run in world.airflow.run_records if run.run_type == "backfill"]
        assert keys == [
            "2026-06-01T00:00:00Z",
            *(f"2026-06-0{day}T09:00:00Z" for day in (1, 2, 3, 4, 5)),
        ]


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
