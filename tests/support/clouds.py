"""Stand-ins for the services to which Chronon's driver submits: moto's EMR Serverless and S3, a folder of Dataproc jobs, a
small Kyuubi. Each answers as the hooks of the official providers read it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import boto3
from google.api_core.exceptions import NotFound, ServiceUnavailable
from google.cloud.dataproc_v1 import Job, JobStatus
from moto.backends import get_backend
from moto.server import ThreadedMotoServer

REGION = "eu-west-1"
_ACCOUNT = "123456789012"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


class StandInCloud(Protocol):
    """One service, where jobs are submitted, end and are cancelled."""

    @property
    def variables(self) -> Mapping[str, str]:
        """What the driver needs to submit there."""

    @property
    def jobs(self) -> list[str]:
        """The state of every job that was submitted, oldest first."""

    def end(self, state: str) -> None:
        """Every job gets a state."""


@dataclass
class StandInAws:
    """moto's EMR Serverless, with one application, and S3."""

    url: str
    application: str

    @property
    def variables(self) -> dict[str, str]:
        warehouse = {"ARTIFACT_PREFIX": "s3://artifacts", "WAREHOUSE_PREFIX": "s3://warehouse"}
        return {**KEYS, **warehouse, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": self.url, "CUSTOMER_ID": "acme"}

    @property
    def jobs(self) -> list[str]:
        return [run.state for run in self.runs]

    def end(self, state: str) -> None:
        for run in self.runs:
            run.state = state

    def end_running(self, state: str) -> None:
        """Every job that runs gets a state."""
        for run in self.runs:
            if run.state == "RUNNING":
                run.state = state

    @property
    def runs(self) -> list[Any]:
        backend = get_backend("emr-serverless")[_ACCOUNT][REGION]
        runs: list[Any] = backend.job_runs.get(self.application, [])
        return runs


@contextmanager
def stand_in_aws() -> Iterator[StandInAws]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    begins_as = patch("moto.emrserverless.models.JOB_STATUS", "RUNNING")
    begins_as.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        of = {"endpoint_url": url, "region_name": REGION, "aws_access_key_id": "t", "aws_secret_access_key": "t"}
        emr = boto3.client("emr-serverless", **of)
        made = emr.create_application(name="chronon-serverless-app", releaseLabel="emr-7.1.0", type="SPARK")
        s3 = boto3.client("s3", **of)
        for bucket in ("artifacts", "warehouse"):
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        jars = ("cloud_aws_lib_deploy", "cloud_azure_lib_deploy", "service_assembly_deploy")
        for jar in jars:
            s3.put_object(Bucket="artifacts", Key=f"release/1.28.0/jars/{jar}.jar", Body=b"jar")
        yield StandInAws(url, made["applicationId"])
    finally:
        begins_as.stop()
        server.stop()
        get_backend("emr-serverless").reset()


@dataclass
class FolderDataproc:
    """Dataproc's jobs, each a file ``dataproc-<id>`` with its state; and the client that the official hook asks."""

    folder: Path
    url: str = ""  #: of the storage
    is_silent: bool = False
    cancelled: list[str] = field(default_factory=list)

    @property
    def variables(self) -> dict[str, str]:
        places = {"GCP_PROJECT_ID": "shop", "GCP_REGION": "europe-west1", "GCP_BIGTABLE_INSTANCE_ID": "kv"}
        return {**places, "ARTIFACT_PREFIX": "gs://artifacts", "STORAGE_EMULATOR_HOST": self.url, "CUSTOMER_ID": "acme"}

    @property
    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("dataproc-*"), key=lambda file: file.stat().st_ctime_ns)

    @property
    def jobs(self) -> list[str]:
        return [file.read_text() for file in self._files]

    def end(self, state: str) -> None:
        for file in self._files:
            file.write_text(state)

    def get_job(self, *, request: Mapping[str, str], **_: Any) -> Job:
        return self._job(request)

    def cancel_job(self, *, request: Mapping[str, str], **_: Any) -> Job:
        job = self._job(request)
        self.cancelled.append(request["job_id"])
        (self.folder / f"dataproc-{request['job_id']}").write_text("CANCEL_PENDING")
        return job

    def _job(self, request: Mapping[str, str]) -> Job:
        if self.is_silent:
            raise ServiceUnavailable("the service is currently unavailable")
        assert (request["project_id"], request["region"]) == ("shop", "europe-west1")
        file = self.folder / f"dataproc-{request['job_id']}"
        if not file.exists():
            raise NotFound(f"Not found: Job projects/shop/regions/europe-west1/jobs/{request['job_id']}")
        return Job(status=JobStatus(state=JobStatus.State[file.read_text()]))


@dataclass
class StandInKyuubi:
    """Kyuubi's batches."""

    aws: StandInAws  #: whose S3 holds the jars
    url: str = ""
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked_by: list[str | None] = field(default_factory=list)  #: the header of each question about a batch

    @property
    def variables(self) -> dict[str, str]:
        return {**self.aws.variables, "SPARK_CLUSTER_NAME": self.url}

    @property
    def jobs(self) -> list[str]:
        return [batch["state"] for batch in self.batches.values()]

    def end(self, state: str) -> None:
        for batch in self.batches.values():
            batch.update(state=state, appState="FINISHED" if state == "FINISHED" else "KILLED")

    def answer(self, method: str, path: str, authorization: str | None) -> tuple[int, Any]:
        batch_id = path.partition("?")[0].removeprefix("/api/v1/batches").strip("/")
        if method == "POST":
            batch_id = f"batch-{len(self.batches) + 1}"
            self.batches[batch_id] = {"id": batch_id, "state": "RUNNING", "appState": "RUNNING"}
            return 200, self.batches[batch_id]
        self.asked_by.append(authorization)
        if not batch_id:
            return 200, {"batches": []}
        if batch_id not in self.batches:
            return 404, {"message": f"Invalid batchId: {batch_id}"}
        if method == "DELETE":
            self.batches[batch_id]["state"] = "CANCELED"  # the application is told, and ends in a while
            return 200, {"success": True, "msg": None}
        return 200, self.batches[batch_id]


@contextmanager
def stand_in_kyuubi(aws: StandInAws) -> Iterator[StandInKyuubi]:
    kyuubi = StandInKyuubi(aws)

    def answer(method: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        status, value = kyuubi.answer(method, path, headers.get("Authorization"))
        return status, json.dumps(value).encode()

    with _served(answer) as kyuubi.url:
        yield kyuubi


@contextmanager
def stand_in_storage() -> Iterator[str]:
    """Google's storage, where every object is there: its address."""

    def answer(method: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        if method == "GET" and "alt=media" in path:
            return 200, b"jar"
        return 200, json.dumps({"name": "an object", "bucket": "a bucket", "crc32c": "AAAAAA=="}).encode()

    with _served(answer) as url:
        yield url


@contextmanager
def _served(answer: Callable[[str, str, Mapping[str, str]], tuple[int, bytes]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = answer(self.command, self.path, dict(self.headers))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        log_message: Callable[..., None] = lambda *_: None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
