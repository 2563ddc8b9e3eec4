"""Stand-in clusters: one in memory, and one that is a script over a folder, as a submitter's command line is."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from airflow_chronon.engine.protocol import Log
from airflow_chronon.engine.remote import Answer, JobRecord, JobState
from airflow_chronon.errors import Fault, JobFailed, JobRefused


class Killed(BaseException):
    """The worker is gone."""


@dataclass
class MemoryCluster:
    """A cluster that remembers every submission; ``step`` is called wherever a worker may be killed."""

    can_find: bool = False
    found_with: str = "find"
    is_idempotent: bool = False
    step: Callable[[str], None] = lambda where: None
    jobs: dict[str, JobState] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)  #: job id to its token
    cancelled: list[str] = field(default_factory=list)
    overlaps: list[tuple[str, str]] = field(default_factory=list)  #: jobs that were submitted beside a running one
    is_silent: bool = False
    was_stopped: bool = False
    #: ``start``: the command is not there; ``code``: it fails and submits nothing; ``answer``: it fails and has submitted;
    #: ``late``: it fails after the id; ``stop``: it is stopped before it submits.
    refuses: str = ""
    on_its_way: list[str] = field(default_factory=list)  #: tokens of killed workers' commands that still submit

    def submit(self, token: str, log: Log, on_id: Callable[[str], None]) -> None:
        if self.refuses == "start":
            raise JobRefused(Fault("runner", "argv", "cannot start it"))
        if self.refuses == "stop":
            self.was_stopped = True
        if self.refuses in ("code", "stop"):
            raise JobFailed(Fault("runner", "", "it ended with exit code 1"))
        try:
            self.step("before the cluster has the job")
        except Killed:
            self.on_its_way.append(token)
            raise
        job_id = self.accept(token)
        if self.refuses == "answer":
            raise JobFailed(Fault("runner", "", "it lost its connection"))
        self.step("before the id is printed")
        on_id(job_id)
        self.step("before the command ends")
        if self.refuses == "late":
            raise JobFailed(Fault("runner", "", "it gave up waiting"))

    def accept(self, token: str) -> str:
        if self.is_idempotent and (known := self._job_of(token)):
            return known
        job_id = f"job-{len(self.jobs) + 1}"
        self.overlaps += [(other, job_id) for other, state in self.jobs.items() if state is JobState.RUNNING]
        self.jobs[job_id], self.tokens[job_id] = JobState.RUNNING, token
        return job_id

    def pass_time(self, seconds: float) -> None:
        """What killed workers' commands still submit, they submit now."""
        while self.on_its_way:
            self.accept(self.on_its_way.pop())

    def find(self, token: str) -> str | None:
        self.step("before the search")
        if self.is_silent:
            raise JobFailed(Fault("C28", "runner.find", "it cannot be told"))
        return self._job_of(token)

    def _job_of(self, token: str) -> str | None:
        return next((job_id for job_id, each in self.tokens.items() if each == token), None)

    def status(self, job_id: str) -> Answer:
        self.step("before the status")
        if self.is_silent:
            return Answer(JobState.UNKNOWN, "status does not tell")
        return Answer(self.jobs[job_id], self.jobs[job_id].value.upper())

    def cancel(self, job_id: str) -> str:
        self.step("before the cancel")
        if self.is_silent:
            return "it did not answer"
        self.cancelled.append(job_id)
        return ""

    def end(self, state: JobState) -> None:
        """Every running job ends."""
        for job_id, each in self.jobs.items():
            if each is JobState.RUNNING:
                self.jobs[job_id] = state


@dataclass
class MemoryLedger:
    """What Airflow keeps of a task."""

    step: Callable[[str], None] = lambda where: None
    record: JobRecord | None = None

    def load(self) -> JobRecord | None:
        self.step("before the record is read")
        return self.record

    def store(self, record: JobRecord) -> None:
        self.step("before the record is written")
        self.record = JobRecord.from_json(record.to_json())
        self.step("after the record is written")


_SCRIPT = """#!/bin/sh
# usage: cluster submit TOKEN LABEL | status ID | cancel ID | find TOKEN
cd "$(dirname "$0")"
[ ! -e silent ] || { echo "Connection refused" >&2; exit 255; }
case "$1" in
submit)
  [ ! -e "no-$1" ] || exit 1
  [ ! -e before ] || { touch reached; sleep 60; }
  job="job-$(( $(wc -l < submissions) + 1 ))"
  echo "$job $3 $2" >> submissions
  echo "${REGION:-} ${AIRFLOW__CORE__FERNET_KEY:-none}" > submit.env
  cp first_state "$job"
  [ ! -e accepted ] || { touch reached; sleep 60; }
  echo "warming up"
  echo "Job submitted with ID: $job"
  [ ! -e printed ] || { touch reached; sleep 60; }
  ;;
status)
  echo "${REGION:-} ${AIRFLOW__CORE__FERNET_KEY:-none}" > status.env
  echo "WARNING: an old client" >&2
  cat "$2"
  ;;
cancel) echo "$2" >> cancelled; echo CANCELLED > "$2" ;;
find) grep " $2\\$" submissions | cut -d' ' -f1 ;;
esac
exit 0
"""


@dataclass(frozen=True)
class ScriptCluster:
    """A folder with a script that submits, tells, cancels and finds jobs, each a file with its state."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path) -> ScriptCluster:
        folder.mkdir(parents=True, exist_ok=True)
        cluster = cls(folder)
        cluster.script.write_text(_SCRIPT)
        cluster.script.chmod(cluster.script.stat().st_mode | stat.S_IXUSR)
        (folder / "submissions").touch()
        cluster.every_job_begins_as("RUNNING")
        return cluster

    @property
    def script(self) -> Path:
        return self.folder / "cluster"

    def runner(self, *, finds: bool = False, label: str = "{partition}") -> dict[str, object]:
        """The runner that submits to it."""
        script = str(self.script)
        find = {"find": [script, "find", "{job_token}"]} if finds else {}
        return {
            "kind": "command",
            "argv": [script, "submit", "{job_token}", label],
            "job_id": r"submitted with ID: (\S+)",
            "status": [script, "status", "{job_id}"],
            "cancel": [script, "cancel", "{job_id}"],
            **find,
        }

    def every_job_begins_as(self, state: str) -> None:
        (self.folder / "first_state").write_text(f"{state}\n")

    def becomes(self, job_id: str, state: str) -> None:
        """A job gets another state; nobody reads half of it."""
        unfinished = self.folder / f".{job_id}"
        unfinished.write_text(f"{state}\n")
        unfinished.replace(self.folder / job_id)

    def hold(self, where: str) -> None:
        """From now on a submission stops ``before`` the cluster has the job, when it is ``accepted``, or its id ``printed``."""
        (self.folder / where).touch()

    def let_go(self, where: str) -> None:
        (self.folder / where).unlink()

    @property
    def is_held(self) -> bool:
        return (self.folder / "reached").exists()

    def is_silent(self, yes: bool) -> None:
        (self.folder / "silent").touch() if yes else (self.folder / "silent").unlink()

    @property
    def submissions(self) -> list[str]:
        """The jobs that were submitted, each with its label."""
        return [" ".join(line.split()[:2]) for line in (self.folder / "submissions").read_text().splitlines()]

    @property
    def cancelled(self) -> list[str]:
        file = self.folder / "cancelled"
        return file.read_text().split() if file.exists() else []
