"""A job elsewhere is submitted once, whatever happens to its workers (C28)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from airflow_chronon.engine.remote import Attempt, JobRecord, JobState, RemoteRun
from airflow_chronon.errors import JobFailed, JobRefused
from tests.support.cluster import Killed, MemoryCluster, MemoryLedger

TASK = ("staging_query.t.s.x__1", "run-1", "backfill")


@dataclass
class World:
    """One task, its cluster and what Airflow keeps of it."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    clear: int = 0
    attempt: int = 1
    log: list[str] = field(default_factory=list)

    def advance(self, *, before: Callable[[], None] = lambda: None) -> str | None:
        """What a worker does when the task begins, is resumed or is tried again."""
        attempt = Attempt("staging_query/t.s.x__1", TASK, self.clear, self.attempt)
        run = RemoteRun(self.cluster, self.ledger, attempt, before, pause=self.cluster.pass_time)
        return run.advance(self.log.append)

    def retry(self) -> str | None:
        self.attempt += 1
        return self.advance()

    def cleared(self) -> str | None:
        self.clear, self.attempt = self.clear + 1, self.attempt + 1
        return self.advance()

    def killed(self, where: str, *, times: int = 1) -> None:
        """A worker that is killed when it comes to a step, for the ``times``-th time."""
        seen = 0

        def step(at: str) -> None:
            nonlocal seen
            seen += at == where
            if seen >= times:  # the dead do nothing more
                raise Killed

        self.cluster.step = self.ledger.step = step
        with pytest.raises(Killed):
            self.advance()
        self.cluster.step = self.ledger.step = lambda at: None

    @property
    def submitted(self) -> int:
        return len(self.cluster.jobs)


@pytest.fixture
def world() -> World:
    return World()


class TestAJob:
    def test_is_submitted_and_waited_for(self, world):
        assert world.advance() == "job-1"
        assert world.advance() == "job-1"  # woken up too early
        world.cluster.end(JobState.SUCCEEDED)
        assert world.advance() is None
        assert world.submitted == 1

    def test_that_fails_fails_its_try_and_the_next_one_submits_anew(self, world):
        world.advance()
        world.cluster.end(JobState.FAILED)
        with pytest.raises(JobFailed, match="the job job-1 has ended: FAILED"):
            world.advance()
        assert world.retry() == "job-2"

    def test_that_is_submitted_anew_has_another_token_and_a_retry_before_that_the_same(self, world):
        # an idempotency token that is used again would give the failed job back
        world.advance()
        world.retry()
        world.cluster.end(JobState.FAILED)
        world.retry()
        assert len(set(world.cluster.tokens.values())) == 2 == world.submitted

    def test_counts_for_the_try_that_waits_for_it(self, world):
        world.advance()
        world.retry()
        world.cluster.end(JobState.FAILED)
        with pytest.raises(JobFailed, match="has ended"):
            world.advance()

    def test_whose_end_cannot_be_told_is_waited_for(self, world):
        world.advance()
        world.cluster.is_silent = True
        assert {world.advance(), world.retry(), world.retry()} == {"job-1"}
        world.cluster.is_silent = False
        world.cluster.end(JobState.SUCCEEDED)
        assert world.advance() is None
        assert world.submitted == 1

    def test_that_has_ended_well_is_not_asked_after_again(self, world):
        # clusters forget
        world.advance()
        world.cluster.end(JobState.SUCCEEDED)
        world.advance()
        world.cluster.is_silent = True
        assert world.retry() is None

    def test_is_not_submitted_before_its_turn(self, world):
        def not_yet() -> None:
            raise Killed

        with pytest.raises(Killed):
            world.advance(before=not_yet)
        assert world.ledger.record is None
        assert world.advance() == "job-1"

    def test_under_way_is_followed_without_a_turn(self, world):
        # whoever has the turn waits for this job
        world.advance()

        def not_yet() -> None:
            raise AssertionError

        assert world.advance(before=not_yet) == "job-1"


class TestAWorkerThatIsKilled:
    def test_before_the_intent_is_recorded_leaves_nothing(self, world):
        world.killed("before the record is written")
        assert world.submitted == 0
        assert world.retry() == "job-1"

    @pytest.mark.parametrize(
        ("where", "jobs"),
        [
            ("after the record is written", 0),
            ("before the cluster has the job", 1),  # its command lives a moment longer
            ("before the id is printed", 1),
        ],
    )
    def test_before_the_id_is_known_leaves_a_task_that_never_submits(self, world, where, jobs):
        world.killed(where)
        world.cluster.pass_time(5)
        with pytest.raises(
            JobRefused, match=r"nobody knows the id .* backfill of staging_query\.t\.s\.x__1 run-1, by its token"
        ):
            world.retry()
        with pytest.raises(JobRefused, match="nobody knows"):
            world.retry()
        assert world.submitted == jobs

    @pytest.mark.parametrize(
        "where", ["after the record is written", "before the cluster has the job", "before the id is printed"]
    )
    def test_before_the_id_is_known_is_followed_by_one_that_finds_the_job(self, world, where):
        world.cluster.can_find = True
        world.killed(where)
        assert world.retry() == "job-1"
        assert world.submitted == 1

    @pytest.mark.parametrize(
        ("where", "times"),
        [
            ("after the record is written", 2),
            ("before the command ends", 1),
        ],
    )
    def test_after_the_id_is_recorded_is_followed_by_one_that_waits(self, world, where, times):
        world.killed(where, times=times)
        assert world.retry() == "job-1"
        assert world.submitted == 1

    def test_before_the_id_is_recorded_says_which_job_to_look_for(self, world):
        world.killed("before the record is written", times=2)
        assert "submitted the job job-1" in world.log
        with pytest.raises(JobRefused, match=world.cluster.tokens["job-1"]):
            world.retry()

    @pytest.mark.parametrize(
        "where", ["before the status", "before the record is written", "after the record is written"]
    )
    def test_when_the_job_ends_takes_its_result(self, world, where):
        world.advance()
        world.cluster.end(JobState.SUCCEEDED)
        world.killed(where)
        assert world.retry() is None
        assert world.submitted == 1

    def test_after_a_search_that_cannot_be_answered_is_asked_again(self, world):
        world.cluster.can_find = True
        world.killed("before the id is printed")
        world.cluster.is_silent = True
        with pytest.raises(JobFailed) as failed:
            world.retry()
        assert not isinstance(failed.value, JobRefused)
        world.cluster.is_silent = False
        assert world.retry() == "job-1"


class TestAClear:
    def test_of_a_done_task_writes_again(self, world):
        world.advance()
        world.cluster.end(JobState.SUCCEEDED)
        world.advance()
        assert world.cleared() == "job-2"
        assert len(set(world.cluster.tokens.values())) == 2

    def test_of_a_running_one_cancels_its_job_and_waits_for_its_end(self, world):
        world.advance()
        assert world.cleared() == "job-1"
        assert (world.cluster.cancelled, world.submitted) == (["job-1"], 1)
        world.cluster.end(JobState.FAILED)
        assert world.advance() == "job-2"
        assert world.cluster.overlaps == []

    def test_of_one_whose_cluster_is_silent_waits(self, world):
        world.advance()
        world.cluster.is_silent = True
        assert world.cleared() == "job-1"
        assert world.submitted == 1

    def test_in_the_middle_of_a_submission_needs_a_second_one_by_somebody_who_was_told(self, world):
        world.killed("before the id is printed")
        with pytest.raises(JobRefused, match="end it, then clear the task"):
            world.cleared()
        world.cluster.end(JobState.FAILED)
        assert world.cleared() == "job-2"

    def test_in_the_middle_of_a_submission_cancels_the_job_that_is_found(self, world):
        world.cluster.can_find = True
        world.killed("before the id is printed")
        assert world.cleared() == "job-1"
        assert world.cluster.cancelled == ["job-1"]


class TestASubmissionThatGoesWrong:
    def test_after_the_id_is_followed_all_the_same(self, world):
        # zipline gives up waiting after an hour; the job goes on
        world.cluster.refuses = "late"
        assert world.advance() == "job-1"

    def test_before_the_id_is_final(self, world):
        world.cluster.refuses = "code"
        with pytest.raises(JobRefused, match="exit code 1; whether it submitted a job is not known"):
            world.advance()
        world.cluster.refuses = ""
        assert world.cleared() == "job-1"

    def test_before_the_id_is_looked_for_where_it_can_be_found(self, world):
        world.cluster.can_find, world.cluster.refuses = True, "code"
        with pytest.raises(JobFailed) as failed:
            world.advance()
        assert not isinstance(failed.value, JobRefused)
        world.cluster.refuses = ""
        assert world.retry() == "job-1"
        assert any("is there yet" in line for line in world.log)

    def test_before_it_starts_leaves_nothing(self, world):
        world.cluster.refuses = "start"
        with pytest.raises(JobRefused, match="cannot start"):
            world.advance()
        world.cluster.refuses = ""
        assert world.retry() == "job-1"

    def test_by_a_stop_is_not_told_to_anybody_yet(self, world):
        # who clears a running task was told of nothing
        world.cluster.refuses, world.cluster.was_stopped = "code", True
        with pytest.raises(JobFailed):
            world.advance()
        world.cluster.refuses, world.cluster.was_stopped = "", False
        with pytest.raises(JobRefused, match="nobody knows"):
            world.cleared()
        assert world.submitted == 0

    def test_without_a_line_that_matches_is_final(self, world, mocker):
        mocker.patch.object(world.cluster, "submit")
        with pytest.raises(JobRefused, match="no line of its output matches job_id"):
            world.advance()

    def test_of_the_record_is_made_up_for_when_the_command_has_ended(self, world):
        stored = world.ledger.store
        outages = iter([False, True, False])

        def store(record: JobRecord) -> None:
            if next(outages, False):
                raise RuntimeError("Airflow does not answer")
            stored(record)

        world.ledger.store = store
        assert world.advance() == "job-1"
        assert world.retry() == "job-1"
        assert world.submitted == 1


def _play(seed: int) -> None:
    """A random life of one task: kills at any step, retries, clears, silence; never two jobs at a time."""
    chance = random.Random(seed)
    world = World(MemoryCluster(can_find=chance.random() < 0.5))
    most_ended_badly = 0

    is_dead = False

    def step(where: str) -> None:
        nonlocal is_dead
        is_dead = is_dead or chance.random() < 0.08
        if is_dead:  # the dead do nothing more
            raise Killed

    for _ in range(40):
        is_dead = False
        world.cluster.step = world.ledger.step = step
        world.cluster.is_silent = chance.random() < 0.2
        if chance.random() < 0.15:
            most_ended_badly += any(state is JobState.RUNNING for state in world.cluster.jobs.values())
            world.cluster.end(JobState.FAILED)
        if chance.random() < 0.1:
            world.cluster.end(JobState.SUCCEEDED)
        act = chance.choices([world.advance, world.retry, world.cleared], [5, 5, 0.5])[0]
        try:
            act()
        except (Killed, JobFailed):
            if chance.random() < 0.7:
                world.cluster.pass_time(5)  # else the retry is quicker than the end of the command
        finals = [job for job in world.cluster.jobs.values() if job is JobState.RUNNING]
        # without a way to find it, somebody who is told of a job and clears without a look may have two
        if world.cluster.can_find:
            assert len(finals) <= 1, seed
        assert world.clear or len(world.cluster.jobs) <= 1 + most_ended_badly, seed
    if world.cluster.can_find:
        assert world.cluster.overlaps == [], seed


@pytest.mark.parametrize("seed", range(50))
def test_one_job_at_a_time_in_random_schedules_of_kills(seed: int) -> None:
    _play(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(50, 250))
def test_one_job_at_a_time_in_more_random_schedules_of_kills(seed: int) -> None:
    _play(seed)
