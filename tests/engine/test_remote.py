"""A job elsewhere is submitted once, whatever happens to its workers (C28)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from airflow_chronon.engine.remote import KEY, Attempt, JobRecord, JobState, NotTold, RemoteRun, begin_beside
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
    most_tries: int = 3
    log: list[str] = field(default_factory=list)

    def advance(self, *, before: Callable[[], None] = lambda: None) -> str | None:
        """What a worker does when the task begins, is resumed or is tried again."""
        run = RemoteRun(self.cluster, self.ledger, self.of_try, before, pause=self.cluster.pass_time)
        return run.advance(self.log.append)

    @property
    def of_try(self) -> Attempt:
        return Attempt("staging_query/t.s.x__1", TASK, self.clear, self.attempt, self.most_tries)

    def retry(self) -> str | None:
        self.attempt += 1
        return self.advance()

    def cleared(self) -> str | None:
        self.most_tries = self.attempt + 3
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

    def test_before_it_can_fail_has_already_said_which_job_to_look_for(self, world):
        # or a clear would be taken for the word of somebody who was told nothing
        world.killed("before the id is printed")
        world.killed("after the record is written")
        assert any(world.cluster.tokens["job-1"] in line for line in world.log)

    @pytest.mark.parametrize(
        "where", ["before the status", "before the record is written", "after the record is written"]
    )
    def test_when_the_job_ends_takes_its_result(self, world, where):
        world.advance()
        world.cluster.end(JobState.SUCCEEDED)
        world.killed(where)
        assert world.retry() is None
        assert world.submitted == 1

    def test_and_whose_job_cannot_be_looked_for_is_followed_by_one_that_waits_for_an_answer(self, world):
        # what cannot be told spends no try
        world.cluster.can_find = True
        world.killed("before the id is printed")
        world.cluster.is_silent = True
        with pytest.raises(NotTold):
            world.retry()
        world.cluster.is_silent = False
        assert world.advance() == "job-1"
        assert world.submitted == 1

    @pytest.mark.parametrize(
        "where", ["after the record is written", "before the cluster has the job", "before the id is printed"]
    )
    def test_before_the_id_is_known_is_followed_by_one_that_submits_it_again_where_that_is_harmless(self, world, where):
        world.cluster.is_idempotent = True
        world.killed(where)
        assert world.retry() == "job-1"
        world.cluster.pass_time(5)
        assert world.submitted == 1

    def test_before_the_command_ends_with_a_failure_still_ends_with_one_job(self, world):
        world.cluster.can_find, world.cluster.refuses = True, "answer"
        world.killed("before the search")
        assert world.retry() == "job-1"
        assert world.submitted == 1


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

    @pytest.mark.parametrize("submitter", ["can_find", "is_idempotent"])
    def test_in_the_middle_of_a_submission_cancels_the_job_that_came_of_it(self, world, submitter):
        setattr(world.cluster, submitter, True)
        world.killed("before the id is printed")
        assert world.cleared() == "job-1"
        assert (world.cluster.cancelled, world.submitted) == (["job-1"], 1)
        world.cluster.end(JobState.FAILED)
        assert world.advance() == "job-2"

    def test_of_the_task_alone_writes_again(self, world):
        # with "reset_dag_runs": false the run keeps its count
        world.advance()
        world.cluster.end(JobState.SUCCEEDED)
        world.advance()
        world.most_tries, world.attempt = world.attempt + 3, world.attempt + 1
        assert world.advance() == "job-2"

    def test_of_another_task_of_the_run_ends_no_job_and_starts_none(self, world):
        world.advance()
        world.clear += 1  # such as the one that checks what has landed
        assert world.advance() == "job-1"
        world.cluster.end(JobState.SUCCEEDED)
        assert world.advance() is None
        assert (world.submitted, world.cluster.cancelled) == (1, [])

    def test_of_another_task_is_no_word_that_a_lost_job_has_ended(self, world):
        world.killed("before the id is printed")
        with pytest.raises(JobRefused):
            world.retry()
        world.clear += 1
        with pytest.raises(JobRefused):
            world.retry()
        assert world.submitted == 1


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
        with pytest.raises(JobFailed, match="exit code 1") as failed:
            world.advance()
        assert not isinstance(failed.value, JobRefused)
        world.cluster.refuses = ""
        assert world.retry() == "job-1"

    def test_before_the_id_is_followed_at_once_where_its_job_is_found(self, world):
        world.cluster.can_find, world.cluster.refuses = True, "answer"
        assert world.advance() == "job-1"

    def test_before_the_id_spends_no_try_while_the_cluster_is_silent(self, world):
        world.cluster.can_find, world.cluster.refuses, world.cluster.is_silent = True, "code", True
        with pytest.raises(NotTold):
            world.advance()
        world.cluster.refuses, world.cluster.is_silent = "", False
        assert world.advance() == "job-1"

    def test_keeps_its_token_until_there_was_a_job(self, world):
        world.cluster.can_find, world.cluster.refuses = True, "code"
        with pytest.raises(JobFailed):
            world.advance()
        token = world.ledger.record.token
        world.cluster.refuses = ""
        world.retry()
        assert world.cluster.tokens == {"job-1": token}

    def test_before_the_id_may_be_made_again_where_that_is_harmless(self, world):
        world.cluster.is_idempotent, world.cluster.refuses = True, "answer"
        with pytest.raises(
            JobFailed, match=r"not known .* The next try submits it again, with the same token"
        ) as failed:
            world.advance()
        assert not isinstance(failed.value, JobRefused)
        world.cluster.refuses = ""
        assert world.retry() == "job-1"
        assert world.submitted == 1

    def test_is_not_made_by_a_task_that_is_stopped(self, world):
        world.cluster.was_stopped = True
        with pytest.raises(JobFailed, match="stopped before it submitted"):
            world.advance()
        assert (world.ledger.record, world.submitted) == (None, 0)

    def test_before_it_starts_leaves_nothing(self, world):
        world.cluster.refuses = "start"
        with pytest.raises(JobRefused, match="cannot start"):
            world.advance()
        world.cluster.refuses = ""
        assert world.retry() == "job-1"

    def test_by_a_stop_is_not_told_to_anybody_yet(self, world):
        # who clears a running task was told of nothing
        world.cluster.refuses = "stop"
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
        outages = iter([False, True, True, True, False])

        def store(record: JobRecord) -> None:
            if next(outages, False):
                raise RuntimeError("Airflow does not answer")
            stored(record)

        world.ledger.store = store
        assert world.advance() == "job-1"
        assert world.retry() == "job-1"
        assert world.submitted == 1


class TestARecord:
    @pytest.mark.parametrize(
        "data",
        [
            "job-1",
            {},
            {"token": "t", "number": 0, "clear": 0},
            {"token": "t", "number": "0", "clear": 0, "attempt": 1},
            {"token": "t", "number": 0, "clear": 0, "attempt": 1, "ended": "perhaps"},
        ],
    )
    def test_that_cannot_be_read_is_never_taken_for_none(self, data):
        # anybody may change it, with Airflow's API
        with pytest.raises(
            JobRefused, match=rf"cannot be read: .*that no job of this task runs, then delete the key {KEY}"
        ):
            JobRecord.from_json(data)

    def test_of_a_later_release_is_read(self):
        record = JobRecord("t", 0, 0, 1)
        assert JobRecord.from_json({**record.to_json(), "colour": "red"}) == record


class TestWorkWithoutAJobElsewhere:
    """The runner was changed since, to one that does the work itself."""

    def begins(self, world: World) -> None:
        begin_beside(world.ledger, world.of_try, world.log.append)

    def test_begins_where_no_job_is_left(self, world):
        self.begins(world)
        world.advance()
        world.cluster.end(JobState.SUCCEEDED)
        world.advance()
        self.begins(world)

    def test_does_not_begin_beside_a_job_that_may_be_running(self, world):
        world.advance()
        with pytest.raises(
            JobRefused, match=r"left the job job-1, and the runner .* End that job, then clear the task"
        ):
            self.begins(world)
        world.attempt += 1
        with pytest.raises(JobRefused):
            self.begins(world)

    def test_begins_when_somebody_who_was_told_has_cleared_the_task(self, world):
        world.advance()
        with pytest.raises(JobRefused):
            self.begins(world)
        world.most_tries, world.attempt = world.attempt + 3, world.attempt + 1
        self.begins(world)
        assert not world.ledger.record.is_open
