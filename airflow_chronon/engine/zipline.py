"""Chronon's own driver: how it is called to submit one job and return, where that job then runs, and what its id is.

Read from zipline-ai 1.28 and the submitters that it starts. With ``--no-cloud-logging`` it returns as soon as it has submitted.
An option that it does not know, such as ``--job-id``, it hands on to the submitter: Dataproc takes it for the id of the job, EMR
Serverless for its name, so that a job whose id was never printed is found by its token. Kyuubi makes nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.settings.environment import passed_on
from airflow_chronon.core.settings.runners import JOB_TOKEN, RUNNERS
from airflow_chronon.core.settings.variables import filled
from airflow_chronon.engine.argv import driver_template, filled_argv, placeholders_of
from airflow_chronon.engine.command import Command, CommandRunner
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import Fault, JobRefused

#: The line in which each submitter says what it submitted: ``EmrServerlessSubmitter``, ``DataprocSubmitter``, ``KyuubiSubmitter``.
PRINTED_ID = (
    r"(?:Job submitted with ID: *(?=\S+\|\S)|Dataproc submitter job id: *|Kyuubi batch job submitted\. ID: *)(\S+)"
)
#: The EMR Serverless application that its submitter takes where none is named.
DEFAULT_APPLICATION = "chronon-serverless-app"
_DEFAULT_AWS_REGION = "us-west-2"
_MODES = ("backfill", "upload", "upload-to-kv", "metadata-upload")


class Cloud(Enum):
    """Where the driver can submit a job."""

    AWS = "aws"  #: EMR Serverless
    GCP = "gcp"  #: Dataproc
    AZURE = "azure"  #: Kyuubi

    @property
    def service(self) -> str:
        """What runs its jobs; an id begins with it."""
        return {Cloud.AWS: "emr-serverless", Cloud.GCP: "dataproc", Cloud.AZURE: "kyuubi"}[self]

    @property
    def extra(self) -> str | None:
        """The extra that brings the provider through which its jobs are asked after; it is named like the provider."""
        return {Cloud.AWS: "amazon", Cloud.GCP: "google"}.get(self)


@dataclass(frozen=True)
class Place:
    """Where a job runs. Its job ids say so, that a job is found whatever the settings have become since."""

    cloud: Cloud
    project: str = ""  #: of Google Cloud
    region: str = ""
    application: str = ""  #: the name of an application of EMR Serverless

    def job_id(self, printed: str) -> str:
        """The whole id of a job, from what the driver printed."""
        parts = {
            Cloud.AWS: (self.region, *printed.split("|")),
            Cloud.GCP: (self.project, self.region, printed),
            Cloud.AZURE: (printed,),
        }[self.cloud]
        return "/".join((self.cloud.service, *parts))


def parts_of(job_id: str) -> tuple[Cloud, tuple[str, ...]] | None:
    """The cloud of a whole id, and the parts that its service knows the job by; None for an id of another kind."""
    service, *parts = job_id.split("/")
    for cloud, number in ((Cloud.AWS, 3), (Cloud.GCP, 3), (Cloud.AZURE, 1)):
        if service == cloud.service and len(parts) == number and all(parts):
            return cloud, tuple(parts)
    return None


def driver_variables(document: Mapping[str, Any], *, mode: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """What the driver reads its variables from: its environment, then what the compiled conf has for a mode, else for all."""
    metadata = document.get("metaData") or document
    env = _mapping(_mapping(metadata.get("executionInfo")).get("env"))
    of_conf = _mapping(_mapping(env.get("modeEnvironments")).get(mode)) or _mapping(env.get("common"))
    return {**{name: str(value) for name, value in of_conf.items() if value is not None}, **environment}


def place_of(variables: Mapping[str, str], *, conf: str) -> Place:
    """Where the driver submits with these variables. Raises ``JobRefused`` where it would not submit to a cloud."""
    named = variables.get("CLOUD_PROVIDER", "")
    remedy = "set CLOUD_PROVIDER to aws, gcp or azure, in the team's env or in runner.env; for Spark of your own, use the command runner"
    if not named:
        raise _refused("the driver is told of no cloud to submit to", remedy, conf=conf)
    try:
        cloud = Cloud(named.lower())
    except ValueError:
        raise _refused(f"CLOUD_PROVIDER is {named!r}, which is no cloud of the driver", remedy, conf=conf) from None
    if cloud is Cloud.AWS:
        region = variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION") or _DEFAULT_AWS_REGION
        return Place(cloud, region=region, application=variables.get("SPARK_CLUSTER_NAME") or DEFAULT_APPLICATION)
    if cloud is Cloud.GCP:
        missing = [name for name in ("GCP_PROJECT_ID", "GCP_REGION") if not variables.get(name)]
        if missing:
            problem = f"{' and '.join(missing)} of the driver {'is' if len(missing) == 1 else 'are'} not set"
            raise _refused(problem, "set it in the team's env or in runner.env", conf=conf)
        return Place(cloud, project=variables["GCP_PROJECT_ID"], region=variables["GCP_REGION"])
    return Place(cloud)


@dataclass
class ZiplineRunner(CommandRunner):
    """Starts the driver, which submits a job and prints its id."""

    program: str = "zipline"
    arguments: Sequence[str] = field(default=(), repr=False)  #: further ones, each a template
    unfilled_arguments: Sequence[str] | None = None  #: as the settings have them, for messages; by default themselves

    def command_of(self, job: JobRequest) -> Command:
        """The command that submits the job of a conf, with the token of ``job`` as its name."""
        shown = self.arguments if self.unfilled_arguments is None else self.unfilled_arguments
        argv, unfilled_argv = (self._argv(job, further) for further in (self.arguments, shown))
        return Command(job.conf, argv, self.variables_for_driver(job), unfilled_argv)

    def _argv(self, job: JobRequest, further: Sequence[str]) -> list[str]:
        values = placeholders_of(job)
        token = (f"--job-id={{{JOB_TOKEN}}}",) if job.token else ()
        template = (*driver_template(job)[1:], "--no-cloud-logging", *token, *further)
        return [self.program, *filled_argv(template, values)]


def driver_warnings(plans: Iterable[ConfPlan], environ: Mapping[str, str]) -> Iterator[Fault]:
    """What is odd about how confs are submitted to a cloud, as far as that can be told from here."""
    found = {each for plan in plans for each in _submissions_of(plan, environ)}
    for kind, cloud in sorted(found, key=lambda each: (each[0], each[1].value)):
        package = f"apache-airflow-providers-{cloud.extra}"
        if kind == "command":
            problem = (
                f"the driver submits jobs to {cloud.service}, and a plain command loses sight of them with its worker"
            )
            yield Fault("C28", "runner.kind", problem, "use kind: zipline")
        elif cloud.extra is not None and not _is_installed(package):
            problem = f"jobs in {cloud.service} are asked after through {package}, which is not installed here"
            remedy = f"where workers and triggerers run: pip install 'airflow-chronon[{cloud.extra}]'"
            yield Fault("runner", "runner.kind", problem, remedy)


def _submissions_of(plan: ConfPlan, environ: Mapping[str, str]) -> Iterator[tuple[str, Cloud]]:
    """The kind of runner by which the driver is started for a conf, and each cloud to which it submits."""
    section = plan.settings.runner.model_dump()
    kind = section.get("kind")
    if kind not in ("zipline", "command") or section.get("argv") is not None or RUNNERS.problems(section, environ):
        return
    environment = {**passed_on(environ), **(filled(section.get("env"), environ) or {})}
    for mode in _MODES:
        named = driver_variables(plan.conf.raw, mode=mode, environment=environment).get("CLOUD_PROVIDER", "").lower()
        if named in (cloud.value for cloud in Cloud):
            yield str(kind), Cloud(named)


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _refused(problem: str, remedy: str, *, conf: str) -> JobRefused:
    return JobRefused(Fault("runner", "env", problem, remedy), conf=conf)
