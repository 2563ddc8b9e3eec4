"""Jobs that a command submits: its own commands ask after them, and a worker that is killed leaves one job (C28, S5, S8)."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_chronon.engine.build import build_command_runner, jobs_elsewhere
from airflow_chronon.engine.command import Command
from airflow_chronon.engine.job_commands import CommandJobs, state_of
from airflow_chronon.engine.questions import ask
from airflow_chronon.engine.remote import Attempt, JobRecord, JobState, RemoteRun
from airflow_chronon.errors import JobRefused
from tests.support.checkout import ROOT
from tests.support.cluster import ScriptCluster

TASK = ("staging_query.t.s.x__1", "run-1", "backfill")
#: A worker's try, in a process of its own: the cluster's folder, whether it finds, the number of the try.
WORKER = """
import sys
from pathlib import Path
from tests.engine.test_job_commands import FileLedger, tried
print(tried(Path(sys.argv[1]), finds=sys.argv[2] == "finds", attempt=int(sys.argv[3])))
"""


@dataclass(frozen=True)
class FileLedger:
    """The record of a job, in a file."""

    file: Path

    def load(self) -> JobRecord | None:
        return JobRecord.from_json(json.loads(self.file.read_text())) if self.file.exists() else None

    def store(self, record: JobRecord) -> None:
        unfinished = self.file.with_suffix(".new")
        unfinished.write_text(json.dumps(record.to_json()))
        unfinished.replace(self.file)


def jobs_of(settings: dict[str, Any], *, given: dict[str, str] | None = None) -> CommandJobs:
    """The jobs of one run for the label ``2026-06-01``."""
    elsewhere = jobs_elsewhere(settings, os.environ)
    assert elsewhere is not None
    runner = build_command_runner(settings, os.environ)
    commands = elsewhere.commands(os.environ, given=given or {}, placeholders={"partition": "2026-06-01"})

    def submitting(token: str) -> Command:
        argv = [each.format(job_token=token, partition="2026-06-01") for each in runner.argv or ()]
        return Command("staging_query/t.s.x__1", argv, given or {})

    return CommandJobs(runner, commands, elsewhere.pattern, submitting)


def tried(folder: Path, *, finds: bool, attempt: int, log: Callable[[str], None] = print) -> str | None:
    """One try of the task."""
    cluster = ScriptCluster(folder)
    jobs, ledger = jobs_of(cluster.runner(finds=finds)), FileLedger(folder / "record.json")
    return RemoteRun(jobs, ledger, Attempt("staging_query/t.s.x__1", TASK, 0, attempt)).advance(log)


@pytest.fixture
def cluster(tmp_path: Path) -> ScriptCluster:
    return ScriptCluster.in_folder(tmp_path / "cluster")


@pytest.fixture
def killed_worker(cluster: ScriptCluster) -> Iterator[Callable[..., None]]:
    """Kills a worker when its submission is at a place, and waits until the command has gone too."""
    started: list[subprocess.Popen[bytes]] = []

    def kill(where: str, *, finds: bool = False) -> None:
        cluster.hold(where)
        arguments = [str(cluster.folder), "finds" if finds else "does not", "1"]
        worker = subprocess.Popen([sys.executable, "-c", WORKER, *arguments], cwd=ROOT, stdout=subprocess.PIPE)
        started.append(worker)
        _await(lambda: cluster.is_held and (where != "printed" or _is_recorded(cluster)))
        os.kill(worker.pid, signal.SIGKILL)
        worker.communicate()  # the end of its output, which its command holds too
        cluster.let_go(where)

    yield kill
    for each in started:
        each.kill()
        each.wait()


def _is_recorded(cluster: ScriptCluster) -> bool:
    record = FileLedger(cluster.folder / "record.json").load()
    return record is not None and record.job_id is not None


def _await(condition: Callable[[], bool], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class TestAWorkerThatIsKilled:
    def test_after_the_id_is_printed_is_followed_by_one_that_waits(self, cluster, killed_worker):
        killed_worker("printed")
        assert tried(cluster.folder, finds=False, attempt=2) == "job-1"
        cluster.becomes("job-1", "SUCCESS")
        assert tried(cluster.folder, finds=False, attempt=3) is None
        assert cluster.submissions == ["job-1 2026-06-01"]

    @pytest.mark.parametrize("where", ["before", "accepted"])
    def test_before_that_leaves_a_task_that_names_its_job_and_never_submits(self, cluster, killed_worker, where):
        killed_worker(where)
        for attempt in (2, 3):
            with pytest.raises(JobRefused, match=r"nobody knows the id of that job .* by its token chronon-"):
                tried(cluster.folder, finds=False, attempt=attempt)
        assert cluster.submissions == (["job-1 2026-06-01"] if where == "accepted" else [])

    def test_before_that_is_followed_by_one_that_finds_the_job(self, cluster, killed_worker):
        killed_worker("accepted", finds=True)
        assert tried(cluster.folder, finds=True, attempt=2) == "job-1"
        assert cluster.submissions == ["job-1 2026-06-01"]


class TestStatus:
    def test_of_a_silent_cluster_is_no_end(self, cluster):
        jobs = jobs_of(cluster.runner())
        cluster.is_silent(True)
        answer = jobs.status("job-1")
        assert (answer.state, answer.said) == (
            JobState.UNKNOWN,
            "status does not tell: it ended with exit code 255: Connection refused",
        )

    def test_of_a_job_that_the_cluster_does_not_know_is_no_end(self, cluster):
        settings = {**cluster.runner(), "status": ["sh", "-c", 'cat "$1"', "sh", "/nothing/{job_id}"]}
        answer = jobs_of(settings).status("job-1")
        assert answer.state is JobState.UNKNOWN and "No such file" in answer.said

    def test_of_a_program_that_is_not_there_is_no_end(self, cluster):
        answer = jobs_of({**cluster.runner(), "status": ["no-such-program", "{job_id}"]}).status("job-1")
        assert answer.state is JobState.UNKNOWN and "cannot be started: No such file" in answer.said

    @pytest.mark.parametrize(
        "word", ["PENDING", "Running", "ACCEPTED", "SCHEDULED", '"RUNNING"', "CANCELLING", "UNDEFINED"]
    )
    def test_words_of_a_job_that_may_write(self, word):
        assert state_of(word, further={}).state is JobState.RUNNING

    @pytest.mark.parametrize("word", ["SUCCESS", "SUCCEEDED", "DONE", "COMPLETED", "Succeeded", "'FINISHED'"])
    def test_words_of_a_job_that_ended_well(self, word):
        assert state_of(word, further={}).state is JobState.SUCCEEDED

    @pytest.mark.parametrize("word", ["FAILED", "ERROR", "KILLED", "CANCELLED"])
    def test_words_of_a_job_that_did_not(self, word):
        assert state_of(word, further={}).state is JobState.FAILED

    @pytest.mark.parametrize("word", ["", "UNKNOWN", "None", "the job is RUNNING", "NOT_FOUND"])
    def test_any_other_word_is_no_end(self, word):
        assert state_of(word, further={}).state is JobState.UNKNOWN

    def test_words_of_the_settings_go_before_the_known_ones(self):
        further = {"Terminated": "succeeded", "done": "failed"}
        assert state_of("TERMINATED", further=further).state is JobState.SUCCEEDED
        assert state_of("DONE", further=further).state is JobState.FAILED

    def test_is_the_last_line_of_the_standard_output(self, cluster):
        script = "echo 'RUNNING'; echo DONE; echo; echo FAILED >&2"
        settings = {**cluster.runner(), "status": ["sh", "-c", script, "{job_id}"]}
        assert jobs_of(settings).status("job-1").state is JobState.SUCCEEDED


class TestTheEnvironment:
    def test_of_every_command_lacks_airflows_own_secrets_and_has_the_runs_variables(self, cluster, monkeypatch):
        # S5
        monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "f3rnet")
        jobs = jobs_of(cluster.runner(), given={"REGION": "eu"})
        jobs.submit("t", print, lambda job_id: None)
        jobs.status("job-1")
        assert [(cluster.folder / f"{each}.env").read_text() for each in ("submit", "status")] == ["eu none\n"] * 2

    def test_has_what_pass_env_names(self, cluster, monkeypatch):
        # S5
        monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "f3rnet")
        jobs = jobs_of({**cluster.runner(), "pass_env": ["AIRFLOW__CORE__*"]})
        jobs.submit("t", print, lambda job_id: None)
        jobs.status("job-1")
        assert (cluster.folder / "status.env").read_text() == " f3rnet\n"

    def test_shows_no_secret_in_what_status_says(self, cluster, monkeypatch):
        # S4
        monkeypatch.setenv("PW", "hunter-two-three")
        settings = {**cluster.runner(), "status": ["sh", "-c", 'echo "no $1" >&2; exit 1', "{job_id}", "${PW}"]}
        said = jobs_of(settings).status("job-1").said
        assert "hunter" not in said and "exit code 1" in said


class TestAQuestion:
    """Bounded in time and output (S8)."""

    def test_that_is_not_answered_is_given_up_with_all_that_it_started(self, tmp_path):
        script = f"sleep 1000 & echo $! > {tmp_path}/child; wait"
        reply = ask(["sh", "-c", script], environment=dict(os.environ), seconds=0.5)
        assert reply.problem == "it did not answer within 0.5 seconds"
        child = int((tmp_path / "child").read_text())
        _await(lambda: not Path(f"/proc/{child}").exists() or " Z " in Path(f"/proc/{child}/stat").read_text())

    def test_that_is_answered_without_end_is_given_up(self):
        assert "more than 1,000,000 bytes" in ask(["yes"], environment=dict(os.environ)).problem

    def test_that_finds_no_room_for_its_answer_is_not_answered(self, monkeypatch):
        def full() -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("tempfile.TemporaryFile", full)
        assert "No space left" in ask(["true"], environment=dict(os.environ)).problem
