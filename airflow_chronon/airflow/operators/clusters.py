"""The services in which the jobs of Chronon's driver run, asked after these jobs through Airflow's connections.

The hooks are those of the official providers, their triggers and operators are not: those give up after so many questions,
fail when the service does, and take a job that is being cancelled for one that has ended. Here what cannot be told is asked
again, for ever, and never taken for gone (C28).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

import httpx
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_chronon.airflow.clock import moment
from airflow_chronon.engine.remote import Answer, JobState
from airflow_chronon.engine.zipline import Cloud, Place, parts_of
from airflow_chronon.errors import ChrononError, Fault, JobFailed, JobRefused, shown_address
from airflow_chronon.extras import missing_extra

SECONDS = 15.0  #: how long a service may take to answer
#: For how long the client of a connection is used again: to make one takes a tenth of a second, and what a connection says
#: may change. It also keeps a task that is stopped from asking Airflow for the connection in the middle of another question.
_KEPT_SECONDS = 600.0
_CONNECTIONS = {Cloud.AWS: "aws_default", Cloud.GCP: "google_cloud_default", Cloud.AZURE: "kyuubi_default"}
_SHOWN = 300  # characters of what a service says
_UNNAMED = "chronon-job-"  # how EMR Serverless's submitter names a job that it was given no name for

#: The states of a batch of Kyuubi, and of its application as the cluster below sees it.
_KYUUBI_STATES: Mapping[str, JobState] = {
    **dict.fromkeys(("INITIALIZED", "PENDING", "COMPILED", "RUNNING"), JobState.RUNNING),
    "FINISHED": JobState.SUCCEEDED,
    **dict.fromkeys(("TIMEOUT", "CANCELED", "CLOSED", "ERROR"), JobState.FAILED),
}
_KYUUBI_APPLICATION_IS_GONE = ("", "FINISHED", "KILLED", "FAILED", "NOT_FOUND")


@dataclass(frozen=True)
class Seen:
    """What a service says of a job."""

    state: str
    details: str = ""


class Service(Protocol):
    """One service. A job is known there by the parts of its id; every method may raise whatever its client raises."""

    @property
    def states(self) -> Mapping[str, JobState]: ...

    def look(self, parts: tuple[str, ...]) -> Seen: ...

    def cancel(self, parts: tuple[str, ...]) -> None: ...

    def find(self, place: Place, token: str) -> str | None:
        """A job by its token, as the driver would print its id."""

    def check(self, place: Place) -> None:
        """Raises where its jobs could not be asked after."""


@dataclass(frozen=True)
class EmrServerless:
    """Amazon's, by the hook ``EmrServerlessHook``."""

    connection: str

    #: A job that is being cancelled may still write.
    states = {
        **dict.fromkeys(("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING", "CANCELLING"), JobState.RUNNING),
        "SUCCESS": JobState.SUCCEEDED,
        **dict.fromkeys(("FAILED", "CANCELLED"), JobState.FAILED),
    }

    def look(self, parts: tuple[str, ...]) -> Seen:
        region, application, run = parts
        job = self._client(region).get_job_run(applicationId=application, jobRunId=run)["jobRun"]
        return Seen(job["state"], job.get("stateDetails") or "")

    def cancel(self, parts: tuple[str, ...]) -> None:
        region, application, run = parts
        self._client(region).cancel_job_run(applicationId=application, jobRunId=run)

    def find(self, place: Place, token: str) -> str | None:
        client, unnamed = self._client(place.region), []
        for application in self._applications(client, place):
            for page in client.get_paginator("list_job_runs").paginate(applicationId=application):
                for run in page["jobRuns"]:
                    name = run.get("name") or _UNNAMED
                    if name == token:
                        return f"{application}|{run['id']}"
                    if name.startswith(_UNNAMED) and not self.states.get(run["state"], JobState.UNKNOWN).has_ended:
                        unnamed.append(run["id"])
        if unnamed:  # the jars of the driver's first releases give a job no name
            raise LookupError(f"no job has this name, yet {', '.join(unnamed)} have none and may be it")
        return None

    def check(self, place: Place) -> None:
        if not self._applications(self._client(place.region), place):
            raise LookupError(f"there is no application {place.application!r} in {place.region}")

    def _applications(self, client: Any, place: Place) -> list[str]:
        pages = client.get_paginator("list_applications").paginate()
        return [each["id"] for page in pages for each in page["applications"] if each.get("name") == place.application]

    def _client(self, region: str) -> Any:
        return _emr_client(self.connection, region, _epoch())


@dataclass(frozen=True)
class Dataproc:
    """Google's, by the hook ``DataprocHook``."""

    connection: str

    #: A job whose attempt failed is started again by the service itself.
    states = {
        **dict.fromkeys(
            ("PENDING", "SETUP_DONE", "RUNNING", "CANCEL_PENDING", "CANCEL_STARTED", "ATTEMPT_FAILURE"),
            JobState.RUNNING,
        ),
        "DONE": JobState.SUCCEEDED,
        **dict.fromkeys(("CANCELLED", "ERROR"), JobState.FAILED),
    }

    def look(self, parts: tuple[str, ...]) -> Seen:
        project, region, job_id = parts
        hook = self._hook()
        status = hook.get_job(job_id=job_id, project_id=project, region=region, retry=None, timeout=SECONDS).status
        return Seen(status.state.name, status.details)

    def cancel(self, parts: tuple[str, ...]) -> None:
        project, region, job_id = parts
        self._hook().cancel_job(job_id=job_id, project_id=project, region=region, retry=None, timeout=SECONDS)

    def find(self, place: Place, token: str) -> str | None:
        self._hook()  # says what is missing where the provider is
        not_found = import_module("google.api_core.exceptions").NotFound
        try:
            self.look((place.project, place.region, token))
        except not_found:
            return None
        return token

    def check(self, place: Place) -> None:
        self.find(place, "chronon-none")  # no job has this id; whether it may be asked after is told all the same

    def _hook(self) -> Any:
        return _dataproc_hook(self.connection, _epoch())


@dataclass(frozen=True)
class Kyuubi:
    """Kyuubi's batches, by its REST API: no provider has a hook for it."""

    connection: str
    states = _KYUUBI_STATES

    def look(self, parts: tuple[str, ...]) -> Seen:
        batch = self._asked("GET", f"batches/{parts[0]}")
        state, application = str(batch.get("state")), str(batch.get("appState") or "")
        if application not in _KYUUBI_APPLICATION_IS_GONE:
            state = application  # whatever has become of the batch
        return Seen(state, str(batch.get("appDiagnostic") or ""))

    def cancel(self, parts: tuple[str, ...]) -> None:
        closed = self._asked("DELETE", f"batches/{parts[0]}")
        if not closed.get("success", True):
            raise LookupError(str(closed.get("msg")))

    def find(self, place: Place, token: str) -> str | None:
        raise LookupError("Kyuubi's batches have no name of ours")

    def check(self, place: Place) -> None:
        self._asked("GET", "batches?size=1")

    def _asked(self, method: str, path: str) -> Mapping[str, Any]:
        of = BaseHook.get_connection(self.connection)
        host = (of.host or "").rstrip("/")
        address = host if "://" in host else f"{of.schema or 'http'}://{host}"
        address = address if of.port is None else f"{address}:{of.port}"
        auth = None if not of.login else (of.login, of.password or "")
        reply = httpx.request(method, f"{address}/api/v1/{path}", auth=auth, timeout=SECONDS)
        reply.raise_for_status()
        found: Mapping[str, Any] = reply.json()
        return found


@dataclass(frozen=True)
class Clusters:
    """Asks after the jobs of Chronon's driver, wherever they run: their ids say it."""

    connection: str | None = None  #: by default that of each service
    conf: str = ""

    def status(self, job_id: str) -> Answer:
        """What is known of a job; raises nothing."""
        found = parts_of(job_id)
        if found is None:
            return Answer(JobState.UNKNOWN, f"{job_id} is no id of a job that the driver submitted")
        service = self._service(found[0])
        try:
            seen = service.look(found[1])
        except Exception as error:
            return Answer(JobState.UNKNOWN, f"{found[0].service} does not tell: {_said(error)}")
        shown = f"{seen.state}: {_one_line(seen.details)}" if seen.details else seen.state
        return Answer(service.states.get(seen.state, JobState.UNKNOWN), shown)

    def cancel(self, job_id: str, *, seconds: float = SECONDS) -> str:
        """Ask for the end of a job, which takes no longer than any question; returns what went wrong, or nothing."""
        found = parts_of(job_id)
        if found is None:
            return f"{job_id} is no id of a job that the driver submitted"
        try:
            self._service(found[0]).cancel(found[1])
        except Exception as error:
            return _said(error)
        return ""

    def find(self, place: Place, token: str) -> str | None:
        """The id of the job with a token; None when there is none. Raises ``JobFailed`` when it cannot be told."""
        try:
            printed = self._service(place.cloud).find(place, token)
        except Exception as error:
            problem = f"whether there is a job {token} is not known: {_said(error)}"
            raise JobFailed(Fault("C28", "runner.connection", problem, "it is asked again"), conf=self.conf) from None
        return None if printed is None else place.job_id(printed)

    def check(self, place: Place) -> None:
        """Raises ``JobFailed`` where a job at this place could not be asked after, before there is one; ``JobRefused`` where
        that needs a package or a connection that is not there."""
        service = self._service(place.cloud)
        try:
            service.check(place)
        except (ChrononError, AirflowNotFoundException) as error:
            raise JobRefused(self._unreachable(place, service, error), conf=self.conf) from None
        except Exception as error:
            raise JobFailed(self._unreachable(place, service, error), conf=self.conf) from None

    def _service(self, cloud: Cloud) -> EmrServerless | Dataproc | Kyuubi:
        connection = self.connection or _CONNECTIONS[cloud]
        if cloud is Cloud.AWS:
            return EmrServerless(connection)
        return Dataproc(connection) if cloud is Cloud.GCP else Kyuubi(connection)

    @staticmethod
    def _unreachable(place: Place, service: EmrServerless | Dataproc | Kyuubi, error: Exception) -> Fault:
        if isinstance(error, ChrononError):
            return error.fault
        problem = f"a job in {place.cloud.service} could not be asked after, so none is submitted: {_said(error)}"
        return Fault("C28", "runner.connection", problem, f"see the Airflow connection {service.connection!r}")


def _epoch() -> int:
    return int(moment() // _KEPT_SECONDS)


@lru_cache(maxsize=32)
def _emr_client(connection: str, region: str, _epoch: int) -> Any:
    hooks = _provider("airflow.providers.amazon.aws.hooks.emr", extra="amazon", needed_for="a job in EMR Serverless")
    patience = {"connect_timeout": SECONDS, "read_timeout": SECONDS, "retries": {"total_max_attempts": 2}}
    return hooks.EmrServerlessHook(aws_conn_id=connection, region_name=region, config=patience).conn


@lru_cache(maxsize=32)
def _dataproc_hook(connection: str, _epoch: int) -> Any:
    hooks = _provider("airflow.providers.google.cloud.hooks.dataproc", extra="google", needed_for="a job in Dataproc")
    return hooks.DataprocHook(gcp_conn_id=connection)


def _provider(module: str, *, extra: str, needed_for: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = f"apache-airflow-providers-{extra}"
        raise missing_extra(package=package, extra=extra, needed_for=needed_for, rule="runner") from None


def _said(error: Exception) -> str:
    return _one_line(
        shown_address(str(error))
        if isinstance(error, ChrononError)
        else shown_address(f"{type(error).__name__}: {error}")
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
