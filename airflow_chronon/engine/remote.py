"""Jobs elsewhere, each submitted once: intent, id, status, cancel, result (C28).

What does the work of a partition may outlive the worker that asked for it. So a record is kept with the task, over retries,
restarts and clears: that a job is about to be submitted, then its id, then how it ended. Whoever comes next goes on from there.
A new job is submitted only when the one before has certainly ended, or certainly never came to be. What cannot be told
is never taken for gone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from typing import Any, Protocol

from airflow_chronon.engine.protocol import Log
from airflow_chronon.errors import Fault, JobFailed, JobRefused

#: Seconds before a job that cannot be found counts as never submitted: longer than a submitting command outlives the worker
#: that started it.
SETTLING_SECONDS = 15.0


class JobState(Enum):
    """What is known of a job elsewhere."""

    RUNNING = "running"  #: it has been submitted and may write
    SUCCEEDED = "succeeded"
    FAILED = "failed"  #: it has ended in another way, by a cancel too
    UNKNOWN = "unknown"  #: it cannot be told: it may be running

    @property
    def has_ended(self) -> bool:
        return self in (JobState.SUCCEEDED, JobState.FAILED)


@dataclass(frozen=True)
class Answer:
    """A job's state, and what was said of it."""

    state: JobState
    said: str


class RemoteJobs(Protocol):
    """Where jobs are submitted."""

    @property
    def can_find(self) -> bool:
        """Whether a job can be found by its token."""

    @property
    def was_stopped(self) -> bool:
        """Whether the task was told to stop."""

    def submit(self, token: str, log: Log, on_id: Callable[[str], None]) -> None:
        """Submit a job; ``on_id`` is called once, as soon as its id is known.

        Raises ``JobRefused`` when certainly no job was submitted, and ``JobFailed`` when one may have been.
        """

    def find(self, token: str) -> str | None:
        """The id of the job that was submitted with a token; None when there is none. Raises ``JobFailed`` when it cannot be
        told."""

    def status(self, job_id: str) -> Answer:
        """What is known of a job; raises nothing."""

    def cancel(self, job_id: str) -> str:
        """Ask for the end of a job; returns what went wrong, or nothing. That it has ended only its status tells."""


@dataclass(frozen=True)
class JobRecord:
    """What is kept of the newest job of one task."""

    token: str
    number: int  #: how many jobs of the same clear ended badly before it
    clear: int  #: how often its run had been cleared when it was submitted
    attempt: int  #: the try that it counts for
    job_id: str | None = None  #: None as long as nobody knows whether it was submitted
    ended: str = ""  #: the value of a :class:`JobState` that has ended
    told: int | None = None  #: at which clear a user was told to look for a job whose id is not known

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> JobRecord:
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})

    @property
    def is_open(self) -> bool:
        """Whether its job may be running."""
        return not self.ended


class Ledger(Protocol):
    """Where the record of a task's job is kept: over retries, restarts and clears."""

    def load(self) -> JobRecord | None: ...

    def store(self, record: JobRecord) -> None: ...


@dataclass(frozen=True)
class Attempt:
    """One try of one task."""

    conf: str  #: the conf or job, as people write it
    task: tuple[str, str, str]  #: DAG, run and task
    clear: int  #: how often the run was cleared
    number: int  #: of the try

    def token(self, number: int) -> str:
        """The token of its job: the same for every try, until that job has ended badly or the run is cleared."""
        text = "\0".join((*self.task, str(self.clear), str(number)))
        return f"chronon-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


@dataclass
class RemoteRun:
    """Brings the job of one task one step further."""

    jobs: RemoteJobs
    ledger: Ledger
    attempt: Attempt
    before_submitting: Callable[[], None] = lambda: None  #: may raise, so that nothing is submitted yet
    pause: Callable[[float], None] = time.sleep
    job_id: str | None = field(default=None, init=False)  #: what a stop of the task has to cancel

    def advance(self, log: Log) -> str | None:
        """The id of the job whose end is to be waited for, without a worker; None when it has ended well.

        Raises ``JobFailed`` when the job of this try failed, and ``JobRefused`` when nobody knows whether there is one.
        """
        record = self.ledger.load()
        if record is None:
            return self._submit(log, number=0)
        if record.is_open and record.job_id is None:
            record = self._found(record, log)
            if record is None:
                return self._submit(log, number=0)
            if record.job_id is None:
                return self._submit(log, number=record.number)
        if record.is_open:
            return self._follow(record, log)
        return self._after(record, log)

    def _found(self, record: JobRecord, log: Log) -> JobRecord | None:
        """The record of a job that may have been submitted, with its id, and without where there certainly is none.

        None when a user who was told of it has cleared the task since. Raises ``JobRefused`` where nobody can know.
        """
        if self.jobs.can_find:
            job_id = self.jobs.find(record.token)
            if job_id is None:
                log(f"no job with the token {record.token} is there yet")
                self.pause(SETTLING_SECONDS)  # the command of a worker that was killed may just be submitting it
                job_id = self.jobs.find(record.token)
            if job_id is None:
                # of an earlier clear: the token of this one is another
                return record if record.clear == self.attempt.clear else None
            log(f"found the job {job_id}, which an earlier try submitted")
            record = replace(record, job_id=job_id)
            self.ledger.store(record)
            return record
        if record.told is not None and record.told < self.attempt.clear:
            log("the task was cleared after it had said that a job may be left: it is taken that somebody looked")
            return None
        self.ledger.store(replace(record, told=self.attempt.clear))
        problem = "an earlier try was submitting a job when its worker was lost, and nobody knows the id of that job"
        raise self._lost(record, problem)

    def _follow(self, record: JobRecord, log: Log) -> str | None:
        job_id = str(record.job_id)
        if not self._is_outdated(record):
            self.job_id = job_id
        answer = self.jobs.status(job_id)
        if answer.state.has_ended:
            record = replace(record, ended=answer.state.value)
            self.ledger.store(record)
            return self._after(record, log, said=answer.said)
        if self._is_outdated(record):
            log(f"the job {job_id} is of the time before the task was cleared, and may still be running: cancelling it")
            problem = self.jobs.cancel(job_id)
            if problem:
                log(f"it may not be cancelled: {problem}")
        else:
            log(f"waiting for the job {job_id}: {answer.said}")
            if record.attempt != self.attempt.number:
                self.ledger.store(replace(record, attempt=self.attempt.number))
        return job_id

    def _after(self, record: JobRecord, log: Log, *, said: str = "") -> str | None:
        """What follows from a job that has ended."""
        shown = f"the job {record.job_id} has ended: {said or record.ended}"
        if self._is_outdated(record):
            log(f"{shown}; the task was cleared since")
            return self._submit(log, number=0)
        if record.ended == JobState.SUCCEEDED.value:
            log(shown)
            return None
        if record.attempt == self.attempt.number:
            raise JobFailed(Fault("runner", "", shown, "see the job's own log"), conf=self.attempt.conf)
        log(f"{shown}; that was in an earlier try")
        return self._submit(log, number=record.number + 1)

    def _is_outdated(self, record: JobRecord) -> bool:
        """Whether the task was cleared since: it is to write again, whatever the job wrote."""
        return record.clear != self.attempt.clear

    def _submit(self, log: Log, *, number: int) -> str:
        self.before_submitting()
        before, of = self.ledger.load(), self.attempt
        record = JobRecord(of.token(number), number, of.clear, of.number)
        self.ledger.store(record)  # whoever comes after a crash knows that there may be a job

        is_kept = False

        def keep(job_id: str) -> None:
            nonlocal is_kept
            self.job_id = job_id
            log(f"submitted the job {job_id}")
            try:
                self.ledger.store(replace(record, job_id=job_id))
                is_kept = True
            except Exception as error:  # an outage must not end the command: it is tried again when that has ended
                log(f"the id could not be recorded yet: {error}")

        try:
            self.jobs.submit(record.token, log, keep)
        except JobRefused:
            if before is None:
                before = replace(record, job_id="none", ended=JobState.FAILED.value)
            self.ledger.store(before)
            raise
        except JobFailed as error:
            if self.jobs.was_stopped:
                raise  # whoever comes next looks for the job
            if self.job_id is None:
                raise self._unknown(record, str(error.fault.message)) from None
            log(f"{error}; its job {self.job_id} goes on")
        finally:
            if self.job_id is not None and not is_kept:
                self.ledger.store(replace(record, job_id=self.job_id))
        if self.job_id is None:
            raise self._unknown(record, "the command ended well, and no line of its output matches job_id")
        return self.job_id

    def _unknown(self, record: JobRecord, problem: str) -> JobFailed:
        """A submission after which nobody knows of a job; another try may find it where there is a way."""
        if self.jobs.can_find:
            return JobFailed(Fault("C28", "", problem, "the next try looks for its job"), conf=self.attempt.conf)
        self.ledger.store(replace(record, told=self.attempt.clear))
        return self._lost(record, f"{problem}; whether it submitted a job is not known")

    def _lost(self, record: JobRecord, problem: str) -> JobRefused:
        dag_id, run_id, task_id = self.attempt.task
        which = f"look for a job of {task_id} of {dag_id} {run_id}, by its token {record.token} where the command gives it on"
        remedy = f"{which}; end it, then clear the task; with find set, the task looks itself"
        return JobRefused(Fault("C28", "runner.find", problem, remedy), conf=self.attempt.conf)
