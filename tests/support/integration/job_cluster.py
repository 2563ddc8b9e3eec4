"""A cluster of the tests behind HTTP: it runs jobs until a test ends them, and keeps a log of when each was alive.

Its command line is a script, as submitters have one. Tests hold it at the steps at which a worker may be lost.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil

from tests.support.integration.airflow_client import wait_until

#: ``submit TOKEN LABEL``, ``status ID``, ``cancel ID`` and ``find TOKEN``; a submission prints the id, and stays while it is held.
_CLIENT = """
import json, os, sys, time, urllib.request
url, folder, what, *of = sys.argv[1:]
def ask(path):
    request = urllib.request.Request(f"{url}/{path}&pid={os.getpid()}")
    return json.load(urllib.request.urlopen(request, timeout=300))
if what == "submit":
    print("connecting", flush=True)
    print("Job submitted with ID:", ask(f"submit?token={of[0]}&label={of[1]}"), flush=True)
    while os.path.exists(f"{folder}/printed {of[1]}"):
        open(f"{folder}/pid {of[1]}", "w").write(str(os.getpid()))
        time.sleep(0.1)
else:
    said = ask(f"{what}?of={of[0]}")
    if said:
        print(said)
"""


@dataclass
class Job:
    """One job: the partition that it writes, and what became of it."""

    job_id: str
    label: str
    token: str
    state: str = "RUNNING"
    was_cancelled: bool = False

    @property
    def is_alive(self) -> bool:
        return self.state in ("RUNNING", "CANCELLING")


@dataclass
class JobCluster:
    """The cluster's memory. Everything that is asked of it is asked over HTTP; tests reach in to end jobs and to hold it."""

    folder: Path
    land: Callable[[str], None]  #: writes a partition
    jobs: dict[str, Job] = field(default_factory=dict)
    overlaps: list[tuple[str, str]] = field(default_factory=list)  #: jobs of one partition that were alive together
    held: dict[tuple[str, str], int] = field(
        default_factory=dict
    )  #: step and label to the process that is held there, or 0
    is_silent: bool = False
    refused: int = 0  #: questions that it did not answer
    url: str = ""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def runner(self, *, finds: bool = True, **more: Any) -> dict[str, Any]:
        """The section ``runner`` for it."""
        client = self.folder / "client.py"
        client.write_text(_CLIENT)
        argv = [sys.executable, str(client), self.url, str(self.folder)]
        find = {"find": [*argv, "find", "{job_token}"]} if finds else {}
        return {
            "kind": "command",
            "argv": [*argv, "submit", "{job_token}", "{partition}"],
            "job_id": r"submitted with ID: (\S+)",
            "status": [*argv, "status", "{job_id}"],
            "cancel": [*argv, "cancel", "{job_id}"],
            **find,
            **more,
        }

    def of(self, label: str) -> list[Job]:
        """The jobs of a partition, oldest first."""
        return [job for job in self.jobs.values() if job.label == label]

    def running(self, label: str, *, timeout: float = 120) -> Job:
        """The one job of a partition that is alive, once there is one."""
        alive = wait_until(
            lambda: [job for job in self.of(label) if job.is_alive], timeout=timeout, why=f"a job writes {label}"
        )
        (job,) = alive
        return job

    def end(self, job: Job, state: str = "SUCCESS") -> None:
        if state == "SUCCESS":
            self.land(job.label)
        job.state = state

    @contextmanager
    def holding(self, step: str, label: str) -> Iterator[Callable[[], psutil.Process]]:
        """Hold whoever comes to a step for a partition: ``asked``, ``accepted``, ``printed`` or ``ended``; gives a function that
        waits for it and returns its process."""

        def reached() -> int:
            pid = self.folder / f"pid {label}"
            return int(pid.read_text() or 0) if step == "printed" and pid.exists() else self.held.get((step, label), 0)

        self.held[step, label] = 0
        (self.folder / f"{step} {label}").touch()
        try:
            yield lambda: psutil.Process(wait_until(reached, timeout=120, why=f"{label} comes to {step}"))
        finally:
            (self.folder / f"{step} {label}").unlink()
            with self._changed:
                del self.held[step, label]
                self._changed.notify_all()

    # what is asked over HTTP

    def answer(self, path: str, query: dict[str, str]) -> Any:
        pid = int(query["pid"])
        if path == "submit":
            self._wait("asked", query["label"], pid)
            job = Job(f"job-{len(self.jobs) + 1}", query["label"], query["token"])
            self.overlaps += [(other.job_id, job.job_id) for other in self.of(job.label) if other.is_alive]
            self.jobs[job.job_id] = job
            self._wait("accepted", job.label, pid)
            return job.job_id
        if path == "find":
            return next((job.job_id for job in self.jobs.values() if job.token == query["of"]), "")
        job = self.jobs[query["of"]]
        if path == "cancel":
            job.was_cancelled = True
            job.state = "CANCELLING" if job.is_alive else job.state
            return "OK"
        if not job.is_alive and psutil.Process(pid).environ().get("AIRFLOW_CTX_DAG_ID"):  # not the triggerer's question
            self._wait("ended", job.label, pid)
        return job.state

    def _wait(self, step: str, label: str, pid: int) -> None:
        with self._changed:
            if (step, label) in self.held:
                self.held[step, label] = pid
            self._changed.wait_for(lambda: (step, label) not in self.held)


@contextmanager
def run_job_cluster(folder: Path, *, land: Callable[[str], None]) -> Iterator[JobCluster]:
    """Serve a cluster on 127.0.0.1."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = JobCluster(folder, land)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if cluster.is_silent:
                cluster.refused += 1
                self.send_error(503)
                return
            at = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(at.query).items()}
            said = json.dumps(cluster.answer(at.path.strip("/"), query)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    cluster.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
