"""The commands that ask after jobs elsewhere: ``status``, ``cancel`` and ``find`` of a ``command`` runner."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_chronon.core.settings.runners import JOB_ID, JOB_TOKEN
from airflow_chronon.core.settings.variables import Secrets
from airflow_chronon.engine.argv import filled_argv
from airflow_chronon.engine.command import Command, CommandRunner
from airflow_chronon.engine.protocol import Log
from airflow_chronon.engine.questions import SECONDS, ask
from airflow_chronon.engine.remote import Answer, JobState
from airflow_chronon.errors import Fault, JobFailed

#: Seconds that a cancel may take where Airflow kills the worker of a stopped task after five.
HURRY_SECONDS = 4.0

#: The words of the usual clusters. What is not among them is not guessed at.
WORDS: Mapping[str, JobState] = {
    word: state
    for state, words in {
        JobState.RUNNING: "accepted active blocked cancel_pending cancel_started canceling cancelling containercreating "
        "created failing initializing invalidating new new_saving pending pending_rerun queued requested running scheduled "
        "setup_done starting stopping submitted submitting succeeding terminating undefined attempt_failure",
        JobState.SUCCEEDED: "complete completed done finished succeeded success successful",
        JobState.FAILED: "aborted cancelled canceled dead error errored failed failure interrupted killed stopped "
        "submission_failed timed_out timedout timeout",
    }.items()
    for word in words.split()
}
_LONGEST_WORD = 100


def state_of(said: str, *, further: Mapping[str, str]) -> Answer:
    """What a command's last line says of a job: a word of ``further``, else of :data:`WORDS`; in any case, with or without
    quotes."""
    word = said.strip().strip("\"'").strip()[:_LONGEST_WORD]
    own = {name.casefold(): JobState(state) for name, state in further.items()}
    state = own.get(word.casefold()) or WORDS.get(word.casefold())
    if state is not None:
        return Answer(state, word)
    shown = f"status says {word!r}, which is not a word that is known" if word else "status says nothing"
    return Answer(JobState.UNKNOWN, f"{shown}: name it under runner.states, or let status print the state alone")


@dataclass(frozen=True)
class JobCommands:
    """The commands for the jobs of one run, filled in."""

    status_argv: Sequence[str] = field(repr=False)
    cancel_argv: Sequence[str] = field(repr=False)
    find_argv: Sequence[str] | None = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)  #: the whole of it (S5)
    placeholders: Mapping[str, str]
    states: Mapping[str, str]
    cwd: str | None = field(default=None, repr=False)
    secrets: Secrets = field(default=Secrets())
    conf: str = ""

    def status(self, job_id: str) -> Answer:
        """What is known of a job; raises nothing."""
        said, problem = self._ask(self.status_argv, {JOB_ID: job_id})
        if problem:
            return Answer(JobState.UNKNOWN, f"status does not tell: {problem}")
        return state_of(said, further=self.states)

    def cancel(self, job_id: str, *, seconds: float = SECONDS) -> str:
        """Ask for the end of a job; returns what went wrong, or nothing."""
        return self._ask(self.cancel_argv, {JOB_ID: job_id}, seconds=seconds)[1]

    def find(self, token: str) -> str | None:
        """The id of the job with a token; None when there is none. Raises ``JobFailed`` when it cannot be told."""
        said, problem = self._ask(self.find_argv or (), {JOB_TOKEN: token})
        if problem:
            fault = Fault(
                "C28", "runner.find", f"whether there is a job {token} is not known: {problem}", "it is asked again"
            )
            raise JobFailed(fault, conf=self.conf)
        return said.strip("\"'") or None

    def _ask(self, template: Sequence[str], more: Mapping[str, str], *, seconds: float = SECONDS) -> tuple[str, str]:
        argv = filled_argv(template, {**self.placeholders, **more})
        reply = ask(argv, environment=self.environment, cwd=self.cwd, seconds=seconds)
        return reply.said, self.secrets.hidden(reply.problem)


@dataclass
class CommandJobs:
    """Jobs that a command submits and whose ids it prints."""

    runner: CommandRunner
    commands: JobCommands
    pattern: str  #: a regular expression over a line, whose one group is the id
    submitting: Callable[[str], Command]  #: the command that submits a job with a token
    is_idempotent: bool = False  #: whether the token keeps a second submission from starting a second job
    found_with: ClassVar[str] = "find"

    @property
    def can_find(self) -> bool:
        return self.commands.find_argv is not None

    @property
    def was_stopped(self) -> bool:
        return self.runner.was_stopped

    def submit(self, token: str, log: Log, on_id: Callable[[str], None]) -> None:
        run_for_id(self.runner, self.submitting(token), self.pattern, log, on_id)

    def find(self, token: str) -> str | None:
        return self.commands.find(token)

    def status(self, job_id: str) -> Answer:
        return self.commands.status(job_id)

    def cancel(self, job_id: str) -> str:
        return self.commands.cancel(job_id)


def run_for_id(runner: CommandRunner, command: Command, pattern: str, log: Log, on_id: Callable[[str], None]) -> None:
    """Run a command to its end; ``on_id`` is called once, with the group of the first line in which ``pattern`` is found."""
    sought, is_known = re.compile(pattern), False

    def tell(line: str) -> None:
        nonlocal is_known
        log(line)
        if not is_known and (match := sought.search(line)) and match[1]:
            is_known = True
            on_id(match[1].strip())

    runner.run_command(command, tell)
