"""Random lives of a task whose job runs elsewhere: never are two jobs alive at a time (C28).

A worker may be killed at every step, the command that it had started may still submit, answers get lost, the cluster and Airflow
fall silent; people clear the task or another one of its run, mark it failed, and look for the jobs that they are told of.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from airflow_chronon.engine.remote import Attempt, JobState, NotTold, RemoteRun
from airflow_chronon.errors import JobFailed, JobRefused
from tests.support.cluster import Killed, MemoryCluster, MemoryLedger

TASK = ("staging_query.t.s.x__1", "run-1", "backfill")
RETRIES = 2
SUBMITTERS = {"finds": {"can_find": True}, "idempotent": {"is_idempotent": True}, "neither": {}}


class Outage(Exception):
    """Airflow does not take or give a record."""


@dataclass
class Life:
    """One task as Airflow keeps it, and all that may happen to it."""

    chance: random.Random
    cluster: MemoryCluster
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    state: str = "scheduled"  #: or ``deferred``, ``success``, ``failed``, ``told``: failed, with a job to look for
    clear: int = 0
    number: int = 1  #: of the try
    most_tries: int = RETRIES
    first_job: int = 0  #: how many jobs there were when the task was last cleared
    is_calm: bool = False  #: nothing goes wrong any more
    is_dead: bool = False
    log: list[str] = field(default_factory=list)
    may_have_left: bool = False  #: the task ended without a word of its job: by a kill, or by hand

    def __post_init__(self) -> None:
        self.cluster.step, self.ledger.step = self._step, self._step_of_ledger

    def _step(self, where: str) -> None:
        if self.is_calm:
            return
        self.is_dead = self.is_dead or self.chance.random() < 0.06
        if self.is_dead:  # the dead do nothing more
            raise Killed

    def _step_of_ledger(self, where: str) -> None:
        self._step(where)
        if not self.is_calm and self.chance.random() < 0.03:
            raise Outage

    def work(self) -> None:
        """A worker begins the task, or goes on with it."""
        self.is_dead, self.cluster.was_stopped = False, False
        self.cluster.refuses = (
            "" if self.is_calm else self.chance.choices(["", "code", "answer", "late"], [9, 1, 1, 1])[0]
        )
        attempt = Attempt("staging_query/t.s.x__1", TASK, self.clear, self.number, self.most_tries)
        run = RemoteRun(self.cluster, self.ledger, attempt, pause=self.cluster.pass_time)
        self.log.append(f"try {self.number}")
        try:
            self.state = "deferred" if run.advance(self.log.append) else "success"
        except NotTold:
            self.state = "deferred"
        except JobRefused as error:
            self.log.append(str(error))
            self.state = "told"
        except (JobFailed, Outage, Killed) as error:
            self.log.append(repr(error))
            if self.number <= self.most_tries:
                self.number, self.state = self.number + 1, "scheduled"
            else:
                self.state = "failed"
                self.may_have_left = not isinstance(error, JobFailed) or "not known" in str(error)
        if self.chance.random() < 0.7:
            self.cluster.pass_time(5)  # else the next try is quicker than the end of the command

    # what people do

    def clear_task(self) -> None:
        self._cancel_if_waiting()
        self.log.append("cleared")
        self.first_job = len(self.cluster.jobs)
        self.clear += self.chance.random() < 0.8  # people may leave the run as it is
        self.most_tries, self.number, self.state = self.number + RETRIES, self.number + 1, "scheduled"
        self.may_have_left = False

    def clear_another(self) -> None:
        self.log.append("another task was cleared")
        self.clear += 1

    def mark_failed(self) -> None:
        if self.state == "deferred":
            self._cancel_if_waiting()
            self.log.append("marked failed")
            self.state, self.may_have_left = "failed", True

    def _cancel_if_waiting(self) -> None:
        """What the trigger does; a triggerer that is away does nothing."""
        record = self.ledger.record
        if self.state == "deferred" and record is not None and record.job_id and self.chance.random() < 0.7:
            step, self.cluster.step = self.cluster.step, lambda where: None
            self.cluster.cancel(record.job_id)
            self.cluster.step = step

    def look_for_the_job(self) -> None:
        """What somebody does who was told: the remedy of the message."""
        self.log.append("somebody looks")
        self.cluster.pass_time(5)
        self.cluster.end(JobState.FAILED)
        self.clear_task()

    # what the cluster does

    def end_jobs(self) -> None:
        for job_id, state in list(self.cluster.jobs.items()):
            if state is JobState.RUNNING and self.chance.random() < 0.6:
                ends_well = job_id not in self.cluster.cancelled and self.chance.random() < 0.6
                self.cluster.jobs[job_id] = JobState.SUCCEEDED if ends_well else JobState.FAILED

    def go_on(self) -> None:
        """One thing that happens."""
        self.cluster.is_silent = not self.is_calm and self.chance.random() < 0.2
        if self.chance.random() < 0.3:
            self.end_jobs()
        if self.state in ("scheduled", "deferred"):
            self.work()
        elif self.was_told:
            self.look_for_the_job()
        if not self.is_calm:
            acts = [lambda: None, self.clear_task, self.clear_another, self.mark_failed]
            self.chance.choices(acts, [20, 0 if self.was_told else 2, 1, 1])[0]()

    @property
    def was_told(self) -> bool:
        """Whether the log says which job to look for: nobody clears the task without a look then."""
        record = self.ledger.record
        return self.state == "told" or (record is not None and record.is_open and record.told == self.most_tries)

    @property
    def running(self) -> list[str]:
        return [job_id for job_id, state in self.cluster.jobs.items() if state is JobState.RUNNING]


def _play(submitter: str, seed: int) -> None:
    chance = random.Random(f"{submitter} {seed}")
    life = Life(chance, MemoryCluster(**SUBMITTERS[submitter]))
    for _ in range(40):
        life.go_on()
        assert life.cluster.overlaps == [], life.log
    life.is_calm, life.cluster.is_silent = True, False
    for _ in range(200):
        if life.state in ("success", "failed"):
            break
        life.go_on()
    assert life.state in ("success", "failed"), life.log
    assert life.cluster.overlaps == [], life.log
    if life.state == "success":  # by a job of the last clear, and by none before
        assert JobState.SUCCEEDED in list(life.cluster.jobs.values())[life.first_job :], life.log
        assert life.running == [], life.log
    elif not life.may_have_left:
        assert life.running == [], life.log


@pytest.mark.parametrize("submitter", SUBMITTERS)
def test_one_job_at_a_time_in_random_schedules_of_kills(submitter: str) -> None:
    for seed in range(200):
        _play(submitter, seed)


@pytest.mark.soak
@pytest.mark.parametrize("submitter", SUBMITTERS)
def test_one_job_at_a_time_in_many_more_random_schedules_of_kills(submitter: str) -> None:
    for seed in range(200, 10_000):
        _play(submitter, seed)
