"""Jobs elsewhere, each submitted once: intent, id, status, cancel, result (C28).

What does the work of a partition may outlive the worker that asked for it. So a record is kept with the task, over retries,
restarts and clears: that a job is about to be submitted, then its id, then how it ended. Whoever comes next goes on from there.
A new job is submitted only when the one before has certainly ended, or certainly never came to be. What cannot be told
is never taken for gone, and spends no try.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from typing import Any, Protocol

from airflow_chronon.engine.protocol import Log
from airflow_chronon.errors import Fault, JobFailed, JobRefused

KEY = "chronon_job"  #: of a record in what Airflow keeps of a task
#: Seconds before a job that cannot be found counts as never submitted: longer than a submitting command outlives the worker
#: that started it, without the grace of that command, and than a cluster takes to list a job.
SETTLING_SECONDS = 15.0
#: Seconds between the tries to record an id when Airflow does not take it.
_RECORDING_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0)


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


class NotTold(JobFailed):
    """Whether there is a job cannot be told now: it is asked again, and no try is spent."""


class RemoteJobs(Protocol):
    """Where jobs are submitted."""

    @property
    def can_find(self) -> bool:
        """Whether a job can be found by its token."""

    @property
    def found_with(self) -> str:
        """The setting with which jobs would be found by their tokens; empty where there is none."""

    @property
    def is_idempotent(self) -> bool:
        """Whether a second submission with a token gives the job of the first one, and starts none."""

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


class JobQuestions(Protocol):
    """Asks after jobs elsewhere by their ids."""

    def status(self, job_id: str) -> Answer:
        """As :meth:`RemoteJobs.status`."""

    def cancel(self, job_id: str, *, seconds: float = ...) -> str:
        """As :meth:`RemoteJobs.cancel`, within some seconds."""


@dataclass(frozen=True)
class JobRecord:
    """What is kept of the newest job of one task."""

    token: str
    number: int  #: how many jobs of the same clear ended badly before it
    clear: int  #: how often its run had been cleared when the job was last looked at
    attempt: int  #: the try that it counts for
    most_tries: int = 0  #: how many retries the task may have had by then; see :class:`Attempt`
    job_id: str | None = None  #: None as long as nobody knows whether it was submitted, and when it certainly was not
    ended: str = ""  #: the value of a :class:`JobState` that has ended
    told: int | None = None  #: the ``most_tries`` at which a user was told to look for a job whose id is not known

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> JobRecord:
        """Raises ``JobRefused`` for what is no record: anybody may have changed it, with Airflow's API."""
        known = {each.name: each.type for each in fields(cls)}
        try:
            found = cls(**{name: value for name, value in data.items() if name in known})
        except (AttributeError, TypeError):
            raise _unreadable(data) from None
        for name, of in known.items():
            if not isinstance(getattr(found, name), _TYPES[str(of)]):
                raise _unreadable(data)
        if found.ended not in ("", *(each.value for each in JobState if each.has_ended)):
            raise _unreadable(data)
        return found

    @property
    def is_open(self) -> bool:
        """Whether its job may be running."""
        return not self.ended

    @property
    def has_no_job(self) -> bool:
        """Whether its job certainly never came to be."""
        return not self.is_open and self.job_id is None


_TYPES: dict[str, Any] = {"str": str, "int": int, "str | None": str | None, "int | None": int | None}


def _unreadable(data: Any) -> JobRefused:
    problem = f"what is kept of the job of an earlier try cannot be read: {data!r}"
    remedy = (
        f"see that no job of this task runs, then delete the key {KEY} of its state with Airflow's API and clear it"
    )
    return JobRefused(Fault("C28", KEY, problem, remedy))


class Ledger(Protocol):
    """Where the record of a task's job is kept: over retries, restarts and clears."""

    def load(self) -> JobRecord | None: ...

    def store(self, record: JobRecord) -> None: ...


@dataclass(frozen=True)
class Attempt:
    """One try of one task.

    Airflow counts the clears of a run, whichever task was cleared, or none of them at the wish of whoever clears. The number
    of tries that it grants a task grows when that very task is cleared, unless it was running then.
    """

    conf: str  #: the conf or job, as people write it
    task: tuple[str, str, str]  #: DAG, run and task
    clear: int  #: how often the run was cleared
    number: int  #: of the try
    most_tries: int = 0  #: the number of the try after which there is no retry, less one

    def token(self, number: int) -> str:
        """A token for those who keep none: the same for every try, and over clears of other tasks; new after a clear of this
        one, unless it was running then."""
        text = "\0".join((*self.task, str(self.most_tries), str(number)))
        return f"chronon-{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    def is_after_clear_of(self, record: JobRecord) -> bool:
        """Whether the task was cleared since: it is to write again, whatever the job wrote.

        A try goes on while other tasks of its run are cleared. Of a later try it cannot always be told: then it writes again.
        """
        is_later = self.number != record.attempt
        return is_later and (self.clear, self.most_tries) != (record.clear, record.most_tries)


@dataclass
class RemoteRun:
    """Brings the job of one task one step further."""

    jobs: RemoteJobs
    ledger: Ledger
    attempt: Attempt
    before_submitting: Callable[[], None] = lambda: None  #: may raise, so that nothing is submitted yet
    pause: Callable[[float], None] = time.sleep
    settling_seconds: float = SETTLING_SECONDS
    job_id: str | None = field(default=None, init=False)  #: what a stop of the task has to cancel

    def advance(self, log: Log) -> str | None:
        """The id of the job whose end is to be waited for, without a worker; None when it has ended well.

        Raises ``JobFailed`` when the job of this try failed, ``NotTold`` when it is to be asked again whether there is one, and
        ``JobRefused`` when nobody can know.
        """
        record = self.ledger.load()
        if record is None:
            return self._submit_anew(log)
        if record.is_open and record.job_id is None:
            record = self._identified(record, log)
        if record.is_open:
            return self._follow(record, log)
        return self._after(record, log)

    def _identified(self, record: JobRecord, log: Log) -> JobRecord:
        """The record of a job that may have been submitted, with its id, or ended where there certainly is none."""
        if self.jobs.can_find:
            return self._looked_for(record, log)
        if self.jobs.is_idempotent:
            log(f"an earlier try was submitting a job: submitting it again, with the same token {record.token}")
            return self._submit(record, log, is_again=True)
        if record.told is not None and record.told != self.attempt.most_tries:
            log("the task was cleared after it had said that a job may be left: it is taken that somebody looked")
            return replace(record, ended=JobState.FAILED.value)
        problem = "an earlier try was submitting a job when its worker was lost, and nobody knows the id of that job"
        raise self._lost(record, problem, log)

    def _looked_for(self, record: JobRecord, log: Log) -> JobRecord:
        job_id = find_settled(self.jobs, record.token, log, pause=self.pause, seconds=self.settling_seconds)
        if job_id is None:
            return replace(record, ended=JobState.FAILED.value)
        log(f"found the job {job_id}, which was submitted with the token {record.token}")
        record = replace(record, job_id=job_id)
        self.ledger.store(record)
        return record

    def _follow(self, record: JobRecord, log: Log) -> str | None:
        job_id = str(record.job_id)
        is_outdated = self.attempt.is_after_clear_of(record)
        if not is_outdated:
            self.job_id = job_id
        answer = self.jobs.status(job_id)
        if answer.state.has_ended:
            record = replace(record, ended=answer.state.value)
            self.ledger.store(record)
            return self._after(record, log, said=answer.said)
        if is_outdated:
            log(f"the job {job_id} is of the time before the task was cleared, and may still be running: cancelling it")
            problem = self.jobs.cancel(job_id)
            if problem:
                log(f"it may not be cancelled: {problem}")
            return job_id
        log(f"waiting for the job {job_id}: {answer.said}")
        of = self.attempt
        now = replace(record, attempt=of.number, clear=of.clear, most_tries=of.most_tries)
        if now != record:
            self.ledger.store(now)
        return job_id

    def _after(self, record: JobRecord, log: Log, *, said: str = "") -> str | None:
        """What follows from a job that has ended, or that never came to be."""
        is_outdated = self.attempt.is_after_clear_of(record)
        if record.has_no_job:
            log(f"there is no job with the token {record.token}")
            return self._submit_anew(log) if is_outdated else self._submit_anew(log, record.number, record.token)
        shown = f"the job {record.job_id} has ended: {said or record.ended}"
        if is_outdated:
            log(f"{shown}; the task was cleared since")
            return self._submit_anew(log)
        if record.ended == JobState.SUCCEEDED.value:
            log(shown)
            return None
        if record.attempt == self.attempt.number:
            raise JobFailed(Fault("runner", "", shown, "see the job's own log"), conf=self.attempt.conf)
        log(f"{shown}; that was in an earlier try")
        return self._submit_anew(log, record.number + 1)

    def _submit_anew(self, log: Log, number: int = 0, token: str | None = None) -> str | None:
        """Submit a job where there is none."""
        of = self.attempt
        record = JobRecord(token or new_token(), number, of.clear, of.number, of.most_tries)
        return self._submit(record, log, is_again=False).job_id

    def _submit(self, record: JobRecord, log: Log, *, is_again: bool) -> JobRecord:
        """The record with the id of its job. ``is_again`` when the same submission may have been made before."""
        self.before_submitting()
        if self.jobs.was_stopped:
            raise JobFailed(Fault("runner", "", "it was stopped before it submitted a job"), conf=self.attempt.conf)
        self.ledger.store(record)  # whoever comes after a crash knows that there may be a job
        submission = _Submission(self, record, log)
        error: JobFailed | None = None
        try:
            self.jobs.submit(record.token, log, submission.keep)
        except JobRefused:
            if not is_again:
                self.ledger.store(replace(record, ended=JobState.FAILED.value))
            raise
        except JobFailed as failed:
            error = failed
        submission.settle()
        if error is not None and self.jobs.was_stopped:
            raise error  # whoever comes next follows its job, or looks for it
        if submission.record.job_id is None:
            problem = "the command ended well, and no line of its output matches job_id"
            fault = Fault("runner", "runner.job_id", problem, "see the log above")
            return self._after_failure(record, log, error or JobFailed(fault, conf=self.attempt.conf))
        if error is not None:
            log(f"{error}; its job {submission.record.job_id} goes on")
        return submission.record

    def _after_failure(self, record: JobRecord, log: Log, error: JobFailed) -> JobRecord:
        """The record of a submission that failed without an id, where a job came of it all the same. Raises ``error`` where
        none did."""
        if self.jobs.can_find:
            log(f"{error}; looking for its job")
            found = self._looked_for(record, log)
            if not found.has_no_job:
                self.job_id = None if self.attempt.is_after_clear_of(found) else found.job_id
                return found
            self.ledger.store(found)
            raise error
        if self.jobs.is_idempotent:
            problem = f"{error.fault.message}; whether it submitted a job is not known"
            remedy = f"the next try submits it again, with the same token {record.token}"
            raise JobFailed(replace(error.fault, message=problem, remedy=remedy), conf=self.attempt.conf)
        problem = f"{error.fault.message}; whether it submitted a job is not known"
        raise self._lost(record, problem, log) from None

    def _lost(self, record: JobRecord, problem: str, log: Log) -> JobRefused:
        dag_id, run_id, task_id = self.attempt.task
        which = f"look for a job of {task_id} of {dag_id} {run_id}, by its token {record.token} where the command gives it on"
        setting = self.jobs.found_with
        later = f"; with {setting} set, the task looks itself" if setting else ""
        field = f"runner.{setting}" if setting else "runner"
        error = JobRefused(
            Fault("C28", field, problem, f"{which}; end it, then clear the task{later}"), conf=self.attempt.conf
        )
        log(str(error))  # before it counts as told: this worker may be lost too
        self.ledger.store(replace(record, told=self.attempt.most_tries))
        return error


@dataclass
class _Submission:
    """What comes of one submission. An outage of Airflow must not end its command: then the id is recorded afterwards."""

    run: RemoteRun
    record: JobRecord
    log: Log
    is_recorded: bool = True

    def keep(self, job_id: str) -> None:
        """Take the id of its job, as soon as it is known."""
        self.record = replace(self.record, job_id=job_id)
        if not self.run.attempt.is_after_clear_of(self.record):
            self.run.job_id = job_id
        self.log(f"submitted the job {job_id}")
        self.is_recorded = self._is_taken()

    def settle(self) -> None:
        """See that the id is recorded, when the command has ended."""
        for seconds in () if self.run.jobs.was_stopped else _RECORDING_SECONDS:
            if self.is_recorded:
                return
            self.run.pause(seconds)
            self.is_recorded = self._is_taken()
        if not self.is_recorded:
            self.run.ledger.store(self.record)

    def _is_taken(self) -> bool:
        try:
            self.run.ledger.store(self.record)
        except Exception as error:
            self.log(f"the id of the job {self.record.job_id} could not be recorded yet: {error}")
            return False
        return True


def new_token() -> str:
    """The token of a job that is to be submitted. It is recorded first, so that every later try knows it."""
    return f"chronon-{secrets.token_hex(16)}"


def find_settled(
    jobs: RemoteJobs,
    token: str,
    log: Log,
    *,
    pause: Callable[[float], None] = time.sleep,
    seconds: float = SETTLING_SECONDS,
) -> str | None:
    """The id of the job that was submitted with a token; None when there is none, and none comes any more.

    Raises ``NotTold`` when it cannot be told.
    """
    try:
        job_id = jobs.find(token)
        if job_id is None:
            log(f"no job with the token {token} is there yet")
            pause(seconds)  # the command of a worker that was killed may just be submitting it
            job_id = jobs.find(token)
    except JobFailed as error:
        raise NotTold(error.fault, conf=error.conf) from None
    return job_id


def begin_beside(ledger: Ledger, attempt: Attempt, log: Log) -> None:
    """For a task whose work is done without a job elsewhere: raises ``JobRefused`` while a job may be running that an earlier
    try submitted, by the runner that was set then. Once that was said, a clear is taken for the word that it has ended."""
    record = ledger.load()
    if record is None or not record.is_open:
        return
    if record.told is not None and record.told != attempt.most_tries:
        log("the task was cleared after it had said that a job may be left: it is taken that somebody looked")
        ledger.store(replace(record, ended=JobState.FAILED.value))
        return
    which = record.job_id or f"with the token {record.token}"
    problem = f"an earlier try left the job {which}, and the runner that is set now cannot ask after it"
    error = JobRefused(Fault("C28", "runner", problem, "end that job, then clear the task"), conf=attempt.conf)
    log(str(error))
    ledger.store(replace(record, told=attempt.most_tries))
    raise error
