"""Schedules of jobs that make earlier intervals due: flips to catch-up, starts, broken files (H13, H14, H20)."""

from __future__ import annotations

import pytest

from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.core.calendar.instants import HOUR, MINUTE, iso
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.jobs.document import Job
from airflow_chronon.core.plan.actions import Report
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.errors import Fault
from tests.support.confs import at
from tests.support.job_world import ID, deployed, entry, later, ran
from tests.support.world import NOW, World, go_on, job


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
