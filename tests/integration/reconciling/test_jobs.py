"""Jobs on a real Airflow: an outage and what else keeps them from firing, and what comes afterwards (H4 to H18).

One story for all: every job is there and has run; then the scheduler goes, some jobs are paused, switched off or deleted,
two fires pass, everything is undone, and the scheduler comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from airflow_api import ApiError
from local_airflow import Component

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.deployment import utc_now
from tests.support.integration.job_lab import JobLab
from tests.support.integration.real_airflow import RealAirflow

pytestmark = pytest.mark.soak

MINUTE = timedelta(minutes=1)
KEY = "%Y-%m-%dT%H:%M:00Z"
EVERY_MINUTE = {"cron_expression": "* * * * *"}

OFF, ON, CAPPED, BUMPED = "without_catch_up", "with_catch_up", "capped", "next_version"
PAUSED, PAUSED_ON, NEVER_RAN = "paused", "paused_with_catch_up", "paused_before_its_first_run"
SWITCHED, SWITCHED_ON, AGAIN, FLIPPED = "switched_off", "switched_off_with_catch_up", "created_again", "flipped"
PAST, LIMITED, ONE_BY_ONE = "past_start", "skip_date_and_cap", "one_by_one"
FAILING, SHOWN = "failing", "shown"


def minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def hour(moment: datetime) -> datetime:
    return minute(moment).replace(minute=0)


def key(moment: datetime) -> str:
    return f"{moment:{KEY}}"


@pytest.fixture(scope="module")
def jobs(reconciled_airflow: RealAirflow) -> JobLab:
    return JobLab.set_up(reconciled_airflow, branch="jobs")


@dataclass
class Story:
    """When it happened, and which runs there were before."""

    start: datetime  #: of the schedules that have one: three hours ago, less five minutes
    down: datetime = field(default_factory=utc_now)  #: when the scheduler went
    back: datetime = field(default_factory=utc_now)  #: when everything was undone; the scheduler came after that
    before: dict[str, list[str]] = field(default_factory=dict)

    @property
    def missed(self) -> list[str]:
        """The logical dates whose fires came while the scheduler was down and jobs were held."""
        fire, found = minute(self.down) + MINUTE, []
        while fire <= self.back:
            found.append(key(fire - MINUTE))
            fire += MINUTE
        return found


@pytest.fixture(scope="module")
def story(jobs: JobLab) -> Iterator[Story]:
    now = utc_now()
    recent = {"start_time": key(minute(now) - 2 * MINUTE)}
    story = Story(start=hour(now) - timedelta(hours=3) + timedelta(minutes=5))
    for name in (OFF, BUMPED, PAUSED, SWITCHED, AGAIN):
        jobs.write(name, schedule=EVERY_MINUTE)
    for name in (ON, PAUSED_ON, SWITCHED_ON):
        jobs.write(name, schedule={**EVERY_MINUTE, **recent, "catchup": True})
    jobs.write(CAPPED, schedule={**EVERY_MINUTE, **recent, "catchup": True, "max_catchup_runs": 1})
    past = {"cron_expression": "0 0 * ? * *", "start_time": story.start.isoformat(), "catchup": True}
    jobs.write(PAST, schedule={**past, "max_active_runs": 5})
    skip_to = (hour(now) - timedelta(hours=2)).isoformat()
    jobs.write(LIMITED, schedule={**past, "skip_to_date": skip_to, "max_catchup_runs": 1})
    jobs.write(ONE_BY_ONE, works=3, schedule=past)
    jobs.write(FLIPPED, schedule={**past, "catchup": False})
    jobs.write(FAILING, schedule={"cron_expression": "0 * * * *"}, retries=3, fails=3)
    jobs.write(SHOWN, env={"REGION": "eu"}, legacy_start_time_arg=True)
    jobs.write(NEVER_RAN, schedule={"cron_expression": "0 0 1 1 *"})
    jobs.seen_since(int((now - timedelta(minutes=90)).timestamp()))
    jobs.reconcile()
    _happen(jobs, story)
    yield story
    jobs.here.loader.unlink()


def _happen(jobs: JobLab, story: Story) -> None:
    server, api = jobs.airflow.server, jobs.airflow.api
    every_minute = (OFF, ON, CAPPED, BUMPED, PAUSED, PAUSED_ON, SWITCHED, SWITCHED_ON, AGAIN)
    for name in (*every_minute, FLIPPED):
        jobs.wait_for_runs(name)
    jobs.here.wait_for(jobs.dag_id(NEVER_RAN))
    api.pause(jobs.dag_id(NEVER_RAN))
    jobs.wait_for_told(ONE_BY_ONE, 3, timeout=400)  # what is stopped with the scheduler would fail
    for name in (AGAIN, PAST, LIMITED):
        wait_until(
            lambda name=name: not any(api.runs(jobs.dag_id(name), state=state) for state in ("queued", "running")),
            timeout=400,
            why=f"the runs of {name} have ended",
        )
    server.stop_component(Component.SCHEDULER)
    story.down = utc_now()
    story.before = {name: jobs.scheduled(name) for name in (*every_minute, FLIPPED)}
    for name in (PAUSED, PAUSED_ON):
        api.pause(jobs.dag_id(name))
    for name, more in ((SWITCHED, {}), (SWITCHED_ON, {"catchup": True, "start_time": story.before[SWITCHED_ON][0]})):
        jobs.write(name, schedule={**EVERY_MINUTE, **more, "enabled": False})
    jobs.remove(AGAIN)
    jobs.write(BUMPED, version=2, schedule=EVERY_MINUTE)
    past = {"cron_expression": "0 0 * ? * *", "start_time": story.start.isoformat(), "catchup": True}
    jobs.write(FLIPPED, schedule=past)
    jobs.here.reconciled_until(lambda: jobs.here.is_gone(jobs.dag_id(AGAIN)), why="the deleted job is gone")
    end = minute(story.down) + 2 * MINUTE + timedelta(seconds=3)
    wait_until(lambda: utc_now() > end, timeout=130, why="two fires pass")
    for name, more in ((SWITCHED, {}), (SWITCHED_ON, {"catchup": True, "start_time": story.before[SWITCHED_ON][0]})):
        jobs.write(name, schedule={**EVERY_MINUTE, **more})
    jobs.write(AGAIN, schedule=EVERY_MINUTE)
    for name in (PAUSED, PAUSED_ON):
        api.unpause(jobs.dag_id(name))
    jobs.reconcile()
    story.back = utc_now()
    _wait_for_a_parse(jobs)
    server.start_component(Component.SCHEDULER)
    server.wait_until_healthy(timeout=120)
    jobs.wait_for_runs(OFF, len(story.before[OFF]) + 1)


def _wait_for_a_parse(jobs: JobLab) -> None:
    """The loader file is read once more, from its beginning to its end."""
    for _ in range(2):
        now = utc_now().isoformat()
        jobs.airflow.parse_soon()
        wait_until(
            lambda now=now: ((jobs.airflow.api.dag(jobs.dag_id(OFF)) or {}).get("last_parsed_time") or "") > now,
            timeout=60,
            why="the loader file is parsed again",
        )


def since(jobs: JobLab, story: Story, name: str) -> list[str]:
    """The logical dates that came after the scheduler had gone."""
    return [each for each in jobs.scheduled(name) if each not in story.before.get(name, [])]


class TestAnOutage:
    def test_without_catch_up_leaves_the_newest_run_alone(self, jobs: JobLab, story: Story) -> None:
        # H8
        first, *rest = since(jobs, story, OFF)
        assert first >= story.missed[-1]
        assert all(each > first for each in rest)

    def test_with_catch_up_leaves_no_hole(self, jobs: JobLab, story: Story) -> None:
        # H9
        wait_until(lambda: set(story.missed) <= set(jobs.scheduled(ON)), timeout=60, why="the outage is caught up")
        found = [datetime.strptime(each, KEY).replace(tzinfo=UTC) for each in jobs.scheduled(ON)]
        assert {later - earlier for earlier, later in pairwise(found)} == {MINUTE}

    def test_with_a_cap_keeps_the_newest(self, jobs: JobLab, story: Story) -> None:
        # H10
        first, *_ = wait_until(lambda: since(jobs, story, CAPPED), timeout=60, why="it runs again")
        assert first >= story.missed[-1]


def test_a_new_version_goes_on_in_its_dag(jobs: JobLab, story: Story) -> None:
    # H8, H21: a new job would have waited for its first fire after it was seen
    found = wait_until(lambda: since(jobs, story, BUMPED), timeout=60, why="the new version runs")
    assert found[0] >= story.missed[-1]
    assert "version:2" in str(jobs.airflow.api.dag(jobs.dag_id(BUMPED)))


class TestAPause:
    def test_without_catch_up_is_not_made_up(self, jobs: JobLab, story: Story) -> None:
        # H14
        found = wait_until(lambda: since(jobs, story, PAUSED), timeout=90, why="it runs again")
        assert not set(found) & set(story.missed)

    def test_with_catch_up_is_replayed(self, jobs: JobLab, story: Story) -> None:
        # H14
        wait_until(lambda: set(story.missed) <= set(jobs.scheduled(PAUSED_ON)), timeout=60, why="the pause is replayed")

    def test_is_kept_by_the_reconciler(self, jobs: JobLab, story: Story) -> None:
        # H14, C25: it pauses nothing and unpauses no job
        assert (jobs.airflow.api.dag(jobs.dag_id(NEVER_RAN)) or {})["is_paused"]
        assert jobs.state().read_record(jobs.dag_id(NEVER_RAN)).is_paused

    def test_is_the_reason_why_nothing_ran(self, jobs: JobLab, story: Story) -> None:
        # H20
        arguments = ("--root", str(jobs.here.root), "--start-ds", story.missed[-1])
        done = jobs.here.command("partitions", jobs.dag_id(PAUSED), *arguments)
        assert "skipped" in done.stdout and "paused: since" in done.stdout, done.stdout + done.stderr


class TestAScheduleThatWasOff:
    def test_without_catch_up_is_not_made_up(self, jobs: JobLab, story: Story) -> None:
        # H14
        found = wait_until(lambda: since(jobs, story, SWITCHED), timeout=90, why="it runs again")
        assert not set(found) & set(story.missed)

    def test_with_catch_up_is_replayed(self, jobs: JobLab, story: Story) -> None:
        # H14
        wait_until(
            lambda: set(story.missed) <= set(jobs.scheduled(SWITCHED_ON)), timeout=60, why="what was missed is replayed"
        )


class TestANewJob:
    def test_with_a_past_start_replays_what_was_missed_from_a_short_first_interval_on(
        self, jobs: JobLab, story: Story
    ) -> None:
        # H4, H9, H13
        runs = jobs.airflow.api.runs(jobs.dag_id(PAST), run_type="scheduled")
        assert [run.partition_key for run in runs][:3] == [
            key(story.start),
            *(key(hour(story.start) + timedelta(hours=hours)) for hours in (1, 2)),
        ]
        assert runs[0].data_interval_end == hour(story.start) + timedelta(hours=1)

    def test_keeps_the_skip_date_and_then_the_cap(self, jobs: JobLab, story: Story) -> None:
        # H10, H11: two intervals are left after the skip date, and the newer one is kept
        assert jobs.scheduled(LIMITED)[0] >= key(hour(story.start) + timedelta(hours=2))

    def test_works_on_one_run_at_a_time_and_drops_none(self, jobs: JobLab, story: Story) -> None:
        # H12
        told = jobs.wait_for_told(ONE_BY_ONE, 3)
        assert len({line["HOPS_LOGICAL_DATE"] for line in told[:3]}) == 3
        assert all(one["ended"] <= other["begun"] for one, other in pairwise(told))

    def test_created_again_forgets_what_was_before(self, jobs: JobLab, story: Story) -> None:
        # H16
        found = jobs.wait_for_runs(AGAIN, timeout=90)
        assert found[0] > story.missed[-1]
        assert not set(found) & set(story.before[AGAIN])


def test_a_flip_to_catch_up_replays_what_was_missed_since_the_start(jobs: JobLab, story: Story) -> None:
    # H13
    def replayed() -> set[str]:
        runs = jobs.airflow.api.runs(jobs.dag_id(FLIPPED))
        return {run.partition_key or "" for run in runs if run.run_type == "backfill"}

    pending = {key(story.start), key(hour(story.start) + timedelta(hours=1))}
    wait_until(lambda: replayed() == pending, timeout=60, why="the earlier intervals are replayed")


def test_three_retries_and_two_reruns_share_one_logical_date_and_one_window(jobs: JobLab, story: Story) -> None:
    # H18
    jobs.wait_for_told(FAILING, 4)
    scheduled = jobs.scheduled(FAILING)[0]
    for _ in range(2):
        jobs.ended(jobs.airflow.api.trigger(jobs.dag_id(FAILING), partition_key=scheduled))
    told = [line for line in jobs.told(FAILING) if line["HOPS_LOGICAL_DATE"] == scheduled]
    assert len(told) == 6
    assert len({(line["HOPS_START_TIME"], line["HOPS_END_TIME"]) for line in told}) == 1
    assert len({line["CHRONON_RUN_ID"] for line in told}) == 3


class TestByHand:
    """H5 to H7."""

    def command(self, jobs: JobLab, *arguments: str) -> dict[str, Any]:
        before = len(jobs.told(SHOWN))
        done = jobs.here.command("run", "etl.shown", "--root", str(jobs.here.root), *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(jobs.wait_for_told(SHOWN, before + 1)[-1])

    def test_a_run_without_a_window_has_none(self, jobs: JobLab, story: Story) -> None:
        line = self.command(jobs)
        assert not [name for name in line if name.startswith("HOPS_")]
        assert (line["CHRONON_CONF"], line["REGION"], line["arguments"]) == ("job/etl.shown", "eu", [])

    def test_a_run_with_a_window_has_that(self, jobs: JobLab, story: Story) -> None:
        start, end = "2026-06-01T09:15:00Z", "2026-06-01T10:00:00Z"
        line = self.command(jobs, "--start", start, "--end", end)
        assert (line["HOPS_START_TIME"], line["HOPS_END_TIME"], line["HOPS_LOGICAL_DATE"]) == (start, end, start)
        assert line["arguments"] == ["-start_time", start]

    def test_what_is_set_on_the_run_wins(self, jobs: JobLab, story: Story) -> None:
        before = len(jobs.told(SHOWN))
        jobs.airflow.api.trigger(jobs.dag_id(SHOWN), params={"env": {"REGION": "us"}})
        assert jobs.wait_for_told(SHOWN, before + 1)[-1]["REGION"] == "us"

    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ("2026-06-01T09:30:00Z", "Use 2026-06-01T09:00:00Z or 2026-06-01T10:00:00Z"),
            ("2199-06-01T09:00:00Z", "not come"),
        ],
    )
    def test_a_key_that_is_none_is_refused_at_once(self, jobs: JobLab, story: Story, wrong: str, says: str) -> None:
        # C27
        with pytest.raises(ApiError, match=says):
            jobs.airflow.api.trigger(jobs.dag_id(PAST), partition_key=wrong)

    def test_half_a_window_fails_in_one_sentence(self, jobs: JobLab, story: Story) -> None:
        run = jobs.ended(jobs.airflow.api.trigger(jobs.dag_id(SHOWN), params={"end_time": "2026-06-01T10:00:00Z"}))
        assert run.state == "failed"
        (task,) = jobs.airflow.api.tasks(run.dag_id, run.run_id)
        assert "an end without a start" in jobs.airflow.api.log_text(task)


def test_backfill_runs_exactly_the_intervals_without_a_good_run(jobs: JobLab, story: Story) -> None:
    first, last = key(hour(story.start) - timedelta(hours=2)), key(hour(story.start) + timedelta(hours=1))
    arguments = ("--root", str(jobs.here.root), "--start-ds", first, "--end-ds", last)
    done = jobs.here.command("backfill", jobs.dag_id(PAST), *arguments, "--wait")
    assert done.returncode == 0, done.stdout + done.stderr
    runs = [run for run in jobs.airflow.api.runs(jobs.dag_id(PAST)) if run.run_type == "backfill"]
    assert {run.partition_key for run in runs} == {first, key(hour(story.start) - timedelta(hours=1))}
