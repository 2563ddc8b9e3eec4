"""Tasks whose job runs elsewhere: one is submitted, then the task waits for its end without a worker (C28).

The record of the job lies in Airflow's store of the task's state, which outlives retries and clears. When the wait is over
the task asks once more itself, so that a resumed task, a retry and a cleared one go the same way.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk.execution_time.context import NEVER_EXPIRE
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_chronon.airflow.clock import moment
from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.airflow.masking import amask_filled
from airflow_chronon.airflow.operators.clusters import Clusters
from airflow_chronon.airflow.operators.write_order import LEAVING_SECONDS
from airflow_chronon.airflow_api.errors import NotThere
from airflow_chronon.core.settings.variables import filled
from airflow_chronon.engine.build import JobsElsewhere
from airflow_chronon.engine.command import Command, CommandRunner
from airflow_chronon.engine.job_commands import HURRY_SECONDS, CommandJobs
from airflow_chronon.engine.remote import (
    KEY,
    SETTLING_SECONDS,
    Answer,
    Attempt,
    JobQuestions,
    JobRecord,
    JobState,
    NotTold,
    RemoteJobs,
    RemoteRun,
    begin_beside,
    find_settled,
)
from airflow_chronon.errors import ChrononError, Fault, JobFailed

#: Seconds between two questions: a twentieth of the time that the job has run, within these bounds.
SHORTEST_POLL, LONGEST_POLL = 5.0, 60.0
ASKING_AGAIN = timedelta(minutes=1)  #: until a task asks again whether there is a job, when that could not be told
#: How many questions a triggerer asks at a time, in threads of their own: a cluster that hangs holds up no other trigger.
_ASKING = ThreadPoolExecutor(max_workers=4, thread_name_prefix="chronon-status")


@dataclass(frozen=True)
class TaskLedger:
    """The record of a task's job, in Airflow's store of the task's state."""

    store_of_task: Any

    def load(self) -> JobRecord | None:
        data = self.store_of_task.get(KEY)
        return None if data is None else JobRecord.from_json(data)

    def store(self, record: JobRecord) -> None:
        self.store_of_task.set(KEY, record.to_json(), retention=NEVER_EXPIRE)


def attempt_of(context: Mapping[str, Any], *, conf: str) -> Attempt:
    """The try that a context is for."""
    ti, run = context["ti"], context["dag_run"]
    task = (ti.dag_id, context["run_id"], ti.task_id)
    return Attempt(conf, task, run.clear_number or 0, ti.try_number, ti.max_tries)


def check_no_job_is_left(context: Mapping[str, Any], log: Callable[[str], None], *, conf: str) -> None:
    """Raises ``JobRefused`` where an earlier try of a task, with another runner, left a job that may be running."""
    kept = context.get("task_state_store")  # whoever calls a task by hand keeps nothing
    if kept is not None and kept.get(KEY) is not None:
        begin_beside(TaskLedger(kept), attempt_of(context, conf=conf), log)


@dataclass
class RemoteTask:
    """The job elsewhere of one try of one task."""

    elsewhere: JobsElsewhere
    runner: CommandRunner
    attempt: Attempt
    submitting: Callable[[str], Command]  #: the command that submits a job with a token
    placeholders: Mapping[str, str]
    variables: Mapping[str, str]  #: those of the run
    _run: RemoteRun | None = None
    _is_cancelled: bool = False
    _asked_to_end: str | None = None

    def advance(
        self, context: Mapping[str, Any], log: Callable[[str], None], *, before_submitting: Callable[[], None]
    ) -> BaseTrigger | None:
        """What to wait for without a worker; None when the job has ended well. Raises as
        :meth:`airflow_chronon.engine.remote.RemoteRun.advance`, but for what is to be asked again."""
        ledger = TaskLedger(context["task_state_store"])
        self._run = RemoteRun(
            self._jobs(), ledger, self.attempt, before_submitting, settling_seconds=self._settling_seconds
        )
        try:
            job_id = self._run.advance(log)
        except NotTold as error:
            return self._to_ask_again(error, log)
        finally:
            if self._is_cancelled:
                self.cancel()  # its id may have come after the stop
        if job_id is None:
            return None
        return RemoteTrigger(**self._to_wait_for(job_id))

    def job_left_by(self, run_id: str, data: Any, log: Callable[[str], None]) -> BaseTrigger | None:
        """What to wait for when the same task of another run has left a job that may still write; None for a job that has
        ended. ``data`` is the record of that job. Raises ``JobFailed`` when nobody knows."""
        record = JobRecord.from_json(data)
        if not record.is_open:
            return None
        job_id = record.job_id
        if job_id is None:
            jobs = self._jobs()
            if not jobs.can_find:
                token = f"token {record.token}"
                problem = f"{run_id} may have submitted a job for these partitions, {token}, and nobody knows its id"
                remedy = f"see that no such job runs, then clear {run_id} or delete it"
                raise JobFailed(Fault("C28", "", problem, remedy), conf=self.attempt.conf)
            try:
                job_id = find_settled(jobs, record.token, log, seconds=self._settling_seconds)
            except NotTold as error:
                return self._to_ask_again(error, log)
            if job_id is None:
                return None
        answer = self.commands.status(job_id)
        if answer.state.has_ended:
            return None
        what = f"the job {job_id}, which {run_id} has left and which writes the same partitions"
        log(f"waiting for {what}: {answer.said}")
        return JobLeftTrigger(**self._to_wait_for(job_id))

    def _jobs(self) -> RemoteJobs:
        of = self.elsewhere
        commands = of.commands(os.environ, given=self._given, placeholders=self.placeholders, conf=self.attempt.conf)
        return CommandJobs(self.runner, commands, of.pattern, self.submitting, is_idempotent=of.is_idempotent)

    @property
    def _settling_seconds(self) -> float:
        return SETTLING_SECONDS + self.runner.grace_seconds

    @staticmethod
    def _to_ask_again(error: NotTold, log: Callable[[str], None]) -> BaseTrigger:
        log(str(error))
        trigger: BaseTrigger = TimeDeltaTrigger(ASKING_AGAIN)
        return trigger

    @cached_property
    def commands(self) -> JobQuestions:
        """What asks after jobs. Raises :class:`airflow_chronon.errors.Rejected` for settings that are wrong once filled in."""
        return questions(
            dict(self.elsewhere.settings), conf=self.attempt.conf, given=self._given, placeholders=self.placeholders
        )

    @property
    def _given(self) -> dict[str, str]:
        """The variables of the run without those of the runner, which a trigger fills in itself (S4)."""
        own = filled(dict(self.elsewhere.settings), os.environ).get("env") or {}
        return {name: value for name, value in self.variables.items() if own.get(name) != value}

    def _to_wait_for(self, job_id: str) -> dict[str, Any]:
        """The arguments of a trigger."""
        placeholders, variables = dict(self.placeholders), self._given
        return {
            "runner": dict(self.elsewhere.settings),
            "job": {"id": job_id, "conf": self.attempt.conf, "placeholders": placeholders, "variables": variables},
            "task_of": list(self.attempt.task),
        }

    def stop(self) -> None:
        """End a submission that is under way; its job goes on, and the next try finds it."""
        self.runner.stop()

    def cancel(self) -> None:
        """Ask for the end of the job: somebody stopped the task."""
        self._is_cancelled = True
        job_id = None if self._run is None else self._run.job_id
        if job_id not in (None, self._asked_to_end):
            self._asked_to_end = job_id
            # it goes on in a session of its own should Airflow kill the worker meanwhile
            self.commands.cancel(str(job_id), seconds=HURRY_SECONDS)


def questions(
    runner: Mapping[str, Any], *, conf: str, given: Mapping[str, str], placeholders: Mapping[str, str]
) -> JobQuestions:
    """What asks after the jobs of a runner, whose section is given as it is written.

    Raises :class:`airflow_chronon.errors.Rejected` for settings that are wrong once filled in.
    """
    if runner.get("kind") == "zipline":
        return Clusters(filled(runner.get("connection"), os.environ), conf=conf)
    return JobsElsewhere(runner, "").commands(os.environ, given=given, placeholders=placeholders, conf=conf)


class RemoteTrigger(BaseTrigger):
    """Fires when a job elsewhere has ended; what cannot be told is asked again, for as long as it takes.

    ``runner`` is the runner's section as it is written: it is filled in here, and stands so in no database (S4).
    """

    def __init__(self, *, runner: dict[str, Any], job: dict[str, Any], task_of: list[str], **_later: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.runner, self.job, self.task_of = runner, job, task_of

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.{type(self).__name__}", {"runner": self.runner, "job": self.job, "task_of": self.task_of}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await amask_filled(self.runner)
        await asyncio.sleep(LEAVING_SECONDS)
        began, said = moment(), ""
        while True:
            answer = await asyncio.get_running_loop().run_in_executor(_ASKING, self._status)
            if answer.state.has_ended:
                break
            if answer.said != said:  # once, however often it says so
                said = answer.said
                self.log.info("the job %s: %s", self.job["id"], said)
            await asyncio.sleep(min(LONGEST_POLL, max(SHORTEST_POLL, (moment() - began) / 20)))
        yield TriggerEvent(answer.state.value)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Somebody marked the task or cleared it. Airflow calls it too where another triggerer has taken the task over."""
        problem = await asyncio.to_thread(self._cancel)
        if problem:
            self.log.warning("the job %s may not be cancelled: %s", self.job["id"], problem)
        else:
            self.log.info("asked for the end of the job %s", self.job["id"])

    def _status(self) -> Answer:
        try:
            return self._commands().status(self.job["id"])
        except ChrononError as error:  # a variable that only workers have, perhaps: that is no end of the job
            return Answer(JobState.UNKNOWN, f"status cannot be asked: {error}")

    def _cancel(self) -> str:
        try:
            if self._is_waited_for():
                return "Airflow says that the task still waits for it"
            return self._commands().cancel(self.job["id"], seconds=20)  # Airflow gives it 30
        except ChrononError as error:
            return str(error)

    def _is_waited_for(self) -> bool:
        """Whether the task is deferred all the same: then it was not a user who ended this trigger."""
        server = find_airflow()
        if server is None:
            return False
        dag_id, run_id, task_id = self.task_of
        try:
            return bool(server.tasks(dag_id, run_id, task_id=task_id, states=("deferred",)))
        except NotThere:  # the run was deleted
            return False

    def _commands(self) -> JobQuestions:
        of = self.job
        return questions(self.runner, conf=of["conf"], given=of["variables"], placeholders=of["placeholders"])


class JobLeftTrigger(RemoteTrigger):
    """Fires when the job of another run has ended; whoever ends this wait does not end that job."""

    async def on_kill(self) -> None:
        pass
