"""The section ``runner``: who does the work, one model per kind of runner."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from airflow_chronon.core.bounds import MAX_INTEGER, MAX_NAME
from airflow_chronon.core.settings.argument_templates import template_problem
from airflow_chronon.core.settings.kinds import Kinds, KindSettings, Section
from airflow_chronon.core.settings.values import (
    VALUE,
    Amount,
    Duration,
    Text,
    is_filled_text,
    is_number,
    is_text,
    is_whole_number,
    judged,
    refusal,
)

#: What an argument of a command may have in braces.
PLACEHOLDERS = ("conf_path", "mode", "start_ds", "end_ds", "partition", "table", "name", "conf_type")
#: The token of a job elsewhere: the same for every try until that job has certainly ended badly, and new after a clear.
JOB_TOKEN = "job_token"  # noqa: S105 - a placeholder
JOB_ID = "job_id"  #: what the submitting command printed
#: What an argument of an operator may have in braces beside those of a command: texts, whole mappings and lists.
OPERATOR_TEXTS = ("partition_key", "partitions", "start", "end", "conf_file", "conf_file_name", JOB_TOKEN)
OPERATOR_MAPPINGS = ("env", "spark_conf")
OPERATOR_LISTS = ("driver_args", "zipline_args")

_NAMES = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*")
_LOCAL_SCHEMES = ("file://", "local://")


def _folder(value: Any) -> str:
    if not is_filled_text(value):
        raise refusal(f"{VALUE} is not a folder", "give the root folder of the tables")
    path: str = value
    for scheme in _LOCAL_SCHEMES:
        path = path.removeprefix(scheme)
    if "://" in path:
        message = f"the embedded engine writes to folders of this machine only, not to {VALUE}"
        raise refusal(message, "give a local folder, or use the command runner")
    return path


def _is_local_file(value: object) -> bool:
    return is_filled_text(value) and "://" not in str(value)


def _is_argv(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(is_text, value)) and value[0] != ""


def _arguments_of(*more: str) -> AfterValidator:
    """Refuses an argument with other placeholders than :data:`PLACEHOLDERS` and ``more``."""

    def judge(argument: str) -> str:
        fault = placeholder_fault(argument, known=(*PLACEHOLDERS, *more))
        if fault is not None:
            raise refusal(*fault)
        return argument

    return AfterValidator(judge)


def placeholder_fault(argument: str, *, known: Collection[str] = (*PLACEHOLDERS, JOB_TOKEN)) -> tuple[str, str] | None:
    """What is wrong with the braces of an argument, and the remedy; None for a good one.

    :data:`VALUE` stands for the argument.
    """
    try:
        pieces = list(Formatter().parse(argument))
    except ValueError as error:
        return f"{VALUE}: {error}", "write {{ and }} for braces"
    unknown = [
        f"{{{name}}}"
        for _, name, specification, conversion in pieces
        if name is not None and (name not in known or specification or conversion)
    ]
    if not unknown:
        return None
    shown = " and ".join(unknown)
    which = f"the placeholder {shown} of {VALUE} is" if len(unknown) == 1 else f"{shown} of {VALUE} are"
    return f"{which} not known", f"use {', '.join(known)}"


def _names(argv: Collection[str], placeholder: str) -> bool:
    """Whether an argument list has a placeholder."""
    return any(name == placeholder for argument in argv for _, name, _, _ in Formatter().parse(argument))


def _job_id_pattern(value: Any) -> str:
    if not is_filled_text(value):
        raise refusal(f"{VALUE} is not a regular expression", _JOB_ID_REMEDY)
    try:
        groups = re.compile(value).groups
    except (re.error, OverflowError, RecursionError) as error:
        raise refusal(f"{VALUE} is not a regular expression: {error}", _JOB_ID_REMEDY) from None
    if groups != 1:
        raise refusal(f"{VALUE} has {groups} groups, not one", _JOB_ID_REMEDY)
    pattern: str = value
    return pattern


#: Options of ``zipline run`` that say what a run writes, or that make of it several jobs or none.
_OF_THE_RUN = (
    "-m",
    "--mode",
    "--ds",
    "--start-ds",
    "--end-ds",
    "--parallelism",
    "--job-id",
    "--no-cloud-logging",
    "--sub-help",
)


def _driver_argument(argument: str) -> str:
    if argument.partition("=")[0] in _OF_THE_RUN:
        raise refusal(f"{VALUE} is not for the settings to say: the runner gives it for each run", "leave it out")
    return argument


_JOB_ID_REMEDY = (
    "put what the id looks like in one pair of brackets, such as 'submitted with ID: (\\S+)'; others begin with (?:"
)


_Warehouse = Annotated[str, BeforeValidator(_folder)]
_Threads = Annotated[
    int,
    judged(
        lambda value: is_whole_number(value) and value >= 1, "is not a number of threads", "give a whole number from 1"
    ),
    WithJsonSchema({"type": "integer", "minimum": 1}),
]
_LocalFile = Annotated[str, judged(_is_local_file, "is not a file of this machine", "give the path of an SQLite file")]
_IS_ARGV = judged(_is_argv, "is not a list of arguments", 'write ["program", "--option", "{conf_path}"]')
_Argv = Annotated[list[Annotated[str, _arguments_of(JOB_TOKEN)]], _IS_ARGV]
_JobArgv = Annotated[list[Annotated[str, _arguments_of(JOB_ID, JOB_TOKEN)]], _IS_ARGV]
_JobIdPattern = Annotated[str, BeforeValidator(_job_id_pattern)]
_StateWord = Annotated[
    Literal["running", "succeeded", "failed"],
    judged(
        lambda value: value in ("running", "succeeded", "failed"),
        "is no state of a job",
        "write running, succeeded or failed",
    ),
]
_Program = Annotated[
    str, judged(is_filled_text, "is not a program", "give a name or a path, such as /opt/chronon/bin/zipline")
]
_ConnectionId = Annotated[
    str, judged(is_filled_text, "is not a connection", "give the id of an Airflow connection, such as aws_default")
]
_DriverArguments = Annotated[
    list[Annotated[str, _arguments_of(), AfterValidator(_driver_argument)]],
    judged(
        lambda value: isinstance(value, list | tuple) and all(map(is_text, value)),
        "is not a list of arguments",
        'write ["--version", "1.28.0"]',
    ),
]
_Folder = Annotated[str, judged(lambda value: isinstance(value, str), "is not a folder", "give a path")]
_Seconds = Annotated[
    float,
    judged(
        lambda value: is_number(value) and 0 <= value <= MAX_INTEGER,  # YAML knows .inf and .nan
        "is not a number of seconds",
        f"give a number from 0 to {MAX_INTEGER}",
    ),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": MAX_INTEGER}),
]


_Pattern = Annotated[
    str,
    judged(
        lambda value: isinstance(value, str) and _NAMES.fullmatch(value) is not None,
        "is not the name of a variable",
        "write a name such as AIRFLOW_CONN_WAREHOUSE, or names with * such as AIRFLOW__CHRONON__*",
    ),
]


class LocalRunnerSettings(KindSettings):
    """The embedded engine."""

    kind: Literal["local"] = "local"
    warehouse: _Warehouse  #: by default the root of the catalog
    memory_limit: Amount | None = None
    spill_limit: Amount | None = None
    timeout: Duration | None = None
    threads: _Threads | None = None
    kv_store: _LocalFile | None = None


class CommandRunnerSettings(KindSettings):
    """A command that does the work."""

    templates: ClassVar[frozenset[str]] = frozenset({"argv", "status", "cancel", "find"})

    kind: Literal["command"] = "command"
    argv: _Argv | None = None
    env: dict[Text, Text] | None = Field(default=None, repr=False)
    pass_env: list[_Pattern] | None = None
    cwd: _Folder | None = None
    grace_seconds: _Seconds | None = None
    timeout: Duration | None = None
    job_id: _JobIdPattern | None = Field(
        default=None,
        description="The command submits a job elsewhere and prints its id: a regular expression over its lines, with one group.",
    )
    status: _JobArgv | None = Field(
        default=None, description="A command whose last line is the state of the job {job_id}; with job_id."
    )
    cancel: _JobArgv | None = Field(default=None, description="A command that ends the job {job_id}; with job_id.")
    find: _Argv | None = Field(
        default=None, description="A command that prints the id of the job submitted with {job_token}, or nothing."
    )
    idempotent: bool | None = Field(
        default=None,
        description="true: a second submission with one {job_token} starts no second job, and prints the id of the first.",
    )
    states: dict[Text, _StateWord] | None = Field(
        default=None, description="What further words of status mean: running, succeeded or failed."
    )

    @model_validator(mode="after")
    def _is_whole(self) -> CommandRunnerSettings:
        """A job elsewhere is found, followed and ended, or it is none."""
        if self.job_id is None:
            self._says_nothing_of_jobs()
        else:
            self._says_which_job()
        return self

    def _says_nothing_of_jobs(self) -> None:
        for name in ("status", "cancel", "find", "idempotent", "states"):
            if getattr(self, name) is not None:
                raise refusal(f"{name} is about a job elsewhere, whose id nothing tells", "add job_id, or leave it out")
        if _names(self.argv or (), JOB_TOKEN):
            problem = "{job_token} of argv is the token of a job elsewhere, whose id nothing tells"
            raise refusal(problem, "add job_id")

    def _says_which_job(self) -> None:
        for name, argv, placeholder in (
            ("status", self.status, JOB_ID),
            ("cancel", self.cancel, JOB_ID),
            ("find", self.find or (f"{{{JOB_TOKEN}}}",), JOB_TOKEN),
        ):
            if argv is None:
                remedy = f"add {name}: [program, '{{{placeholder}}}']"
                raise refusal(f"a job that is known by its job_id has no {name}", remedy)
            if not _names(argv, placeholder):
                raise refusal(f"{name} does not say which job", f"give it '{{{placeholder}}}' as an argument")
        if not _names(self.argv or (), JOB_TOKEN):
            remedy = "put '{job_token}' into argv: a name, a tag or an idempotency token"
            if self.find is not None:
                raise refusal("find looks for a token that argv gives to no job", remedy)
            if self.idempotent:
                raise refusal("idempotent is about a token that argv gives to no job", remedy)


class ZiplineRunnerSettings(KindSettings):
    """Chronon's own driver, which submits to a cloud; the task follows the job."""

    templates: ClassVar[frozenset[str]] = frozenset({"arguments"})

    kind: Literal["zipline"] = "zipline"
    program: _Program | None = Field(default=None, description="The driver; by default zipline, on the worker's PATH.")
    arguments: _DriverArguments | None = Field(
        default=None, description="Further arguments of zipline run, such as [--version, 1.28.0]."
    )
    connection: _ConnectionId | None = Field(
        default=None,
        description="The Airflow connection by which its jobs are asked after; by default that of the cloud's provider.",
    )
    env: dict[Text, Text] | None = Field(default=None, repr=False)
    pass_env: list[_Pattern] | None = None
    cwd: _Folder | None = None
    grace_seconds: _Seconds | None = None
    timeout: Duration | None = Field(
        default=None, description="When a driver that does not return is given up; its job is looked for then."
    )


def _are_operator_arguments(value: dict[str, Any]) -> dict[str, Any]:
    texts = (*PLACEHOLDERS, *OPERATOR_TEXTS)
    problem = template_problem(value, texts=texts, mappings=OPERATOR_MAPPINGS, lists=OPERATOR_LISTS, place="arguments")
    if problem is not None:
        raise refusal(*problem)
    return value


class OperatorRunnerSettings(KindSettings):
    """An operator of Airflow that does the work."""

    templates: ClassVar[frozenset[str]] = frozenset({"arguments"})

    kind: Literal["operator"] = "operator"
    class_path: str = Field(
        alias="class",
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$",
        max_length=MAX_NAME,
        description="The operator's class: a dotted path such as package.module.SparkOperator.",
    )
    arguments: Annotated[dict[str, Any], AfterValidator(_are_operator_arguments)] = Field(
        default_factory=dict, description="What the class is given, with placeholders in its texts."
    )
    env: dict[Text, Text] | None = Field(
        default=None, repr=False, description="Variables for {env}, over those of the conf and under those of the run."
    )
    pass_env: list[_Pattern] | None = Field(
        default=None,
        description="Variables of Airflow's own that processes which the operator starts get all the same.",
    )


OPERATOR: str = OperatorRunnerSettings.model_fields["kind"].default

RUNNERS: Kinds[LocalRunnerSettings | CommandRunnerSettings | ZiplineRunnerSettings | OperatorRunnerSettings] = Kinds(
    "runner", LocalRunnerSettings, CommandRunnerSettings, ZiplineRunnerSettings, OperatorRunnerSettings
)


class RunnerSection(Section):
    """The runner as it was written."""

    kinds: ClassVar[Kinds[Any]] = RUNNERS

    kind: str = "local"


def with_warehouse(section: Mapping[str, Any], root: object) -> dict[str, Any]:
    """A runner's section with its warehouse: ``root``, that of the catalog, where a kind that has one is given none."""
    default = {"warehouse": root} if root is not None and RUNNERS.takes(section, "warehouse") else {}
    return {**default, **section}
