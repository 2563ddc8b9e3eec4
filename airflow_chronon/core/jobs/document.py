"""The job file: what ``jobs/<team>/<name>.yaml`` may say, and its schedule."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, WithJsonSchema

from airflow_chronon.core.bounds import MAX_INTEGER, MAX_RETRIES
from airflow_chronon.core.calendar.instants import Instant, parse_instant
from airflow_chronon.core.settings.environment import VARIABLE
from airflow_chronon.core.settings.model import OnRetire, TaskDefaults
from airflow_chronon.core.settings.runners import RunnerSection
from airflow_chronon.core.settings.values import CronText, Owner, Strict, Text
from airflow_chronon.core.settings.variables import REFERENCE_SCHEMA
from airflow_chronon.core.settings.yaml import StrictText, read_strictly
from airflow_chronon.errors import ChrononError, Fault, Rejected

_VERSION = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_HOURS_AND_MINUTES = re.compile(r"([0-9]{1,5}):([0-5][0-9])")  #: as the UI of Hopsworks writes an offset
_T = TypeVar("_T")


def _instant(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # YAML reads an unquoted 20260101 as a number
    try:
        return parse_instant(value)
    except (ValueError, TypeError, AttributeError):
        raise ValueError("an instant is text such as 2026-01-15 or 2026-01-15T03:00:00Z, of 1970 to 2199") from None


def _version(value: Any) -> Any:
    if isinstance(value, str | int) and not isinstance(value, bool) and _VERSION.fullmatch(str(value)):
        return str(value)
    raise ValueError("a version is a whole number, or text of letters, digits, dots, dashes and underscores")


def _variable(value: Any) -> Any:
    if isinstance(value, str) and VARIABLE.fullmatch(value):
        return value
    raise ValueError("a variable's name is text without =")


def _seconds(value: Any) -> Any:
    match = _HOURS_AND_MINUTES.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return value
    raise ValueError(f"write it in seconds: {int(match[1]) * 3600 + int(match[2]) * 60}")


#: A length of time; one in hours and minutes is refused with the number to write.
_Seconds: TypeAlias = Annotated[StrictInt, BeforeValidator(_seconds)]
#: Seconds since the epoch, written as ISO-8601; without an offset it is UTC.
InstantText: TypeAlias = Annotated[Instant, BeforeValidator(_instant), WithJsonSchema({"type": ["string", "integer"]})]
_Limit: TypeAlias = Annotated[StrictInt, Field(ge=1, le=MAX_INTEGER)]


class ScheduleDocument(Strict):
    """The section ``schedule``: Hopsworks' fields by their names in its Python API (H2, H3, H8 to H15)."""

    cron_expression: CronText = Field(description="Five fields are Unix cron, six or seven Quartz.")
    start_time: InstantText | None = Field(
        default=None, description="By default when the deployment first saw the job."
    )
    end_time: InstantText | None = Field(default=None, description="No fire after it.")
    start_time_offset_seconds: _Seconds | None = Field(default=None, description="Moves the window back; at least 0.")
    end_time_offset_seconds: _Seconds | None = Field(default=None, description="Accepted and ignored (H2).")
    lookback_seconds: _Seconds | None = Field(default=None, description="Widens the window: so far back from the fire.")
    catchup: StrictBool = Field(default=False, description="true: one run per missed interval, oldest first.")
    max_active_runs: _Limit = Field(default=1, description="Runs at a time; a due run waits, it is never dropped.")
    max_catchup_runs: _Limit | None = Field(
        default=None, description="Keeps only the newest so many of what was missed."
    )
    skip_to_date: InstantText | None = Field(default=None, description="Drops the intervals that begin before it.")
    enabled: StrictBool = Field(default=True, description="false: no fires.")


class JobDocument(Strict):
    """One job file. Without ``schedule`` the job runs by hand only."""

    version: Annotated[
        str,
        BeforeValidator(_version),
        WithJsonSchema(
            {"type": ["string", "integer"], "pattern": f"^{_VERSION.pattern}$|{REFERENCE_SCHEMA['pattern']}"}
        ),
    ] = Field(description="A whole number or a short text; a tag of the DAG.")
    runner: RunnerSection | None = Field(
        default=None, description="Who does the work; laid over the runner of chronon.yaml."
    )
    env: Mapping[Annotated[str, BeforeValidator(_variable)], Text] = Field(
        default_factory=dict, repr=False, description="Variables of the command."
    )
    schedule: ScheduleDocument | None = Field(default=None, description="Without it the job runs by hand only.")
    legacy_start_time_arg: StrictBool = Field(
        default=False, description="true: appends -start_time and the logical date to the command."
    )
    retries: Annotated[StrictInt, Field(ge=0, le=MAX_RETRIES)] | None = Field(
        default=None, description="By default those of chronon.yaml."
    )
    owner: Owner | None = Field(default=None, description="By default the team.")
    task_defaults: TaskDefaults | None = Field(
        default=None, description="What Airflow's tasks get; laid over those of chronon.yaml."
    )
    max_pending_runs: _Limit | None = Field(default=None, description="Unfinished runs of the job.")
    on_retire: OnRetire | None = Field(
        default=None, description="What becomes of the work in progress of a job that is gone."
    )


@dataclass(frozen=True)
class Job:
    """One job file that could be read."""

    team: str
    name: str  #: the file's name
    file: str
    document: JobDocument
    text: StrictText

    @property
    def key(self) -> str:
        """``job/team.name``."""
        return job_key(self.team, self.name)

    def at(self, key: str, build: Callable[[], _T], faults: list[Fault]) -> _T | None:
        """Run ``build``; the fault that it raises is put to ``faults``, where the key of the schedule stands."""
        try:
            return build()
        except ChrononError as error:
            faults.append(self.placed(error.fault, key))
            return None

    def placed(self, fault: Fault, key: str = "") -> Fault:
        """A fault of the section ``schedule`` with the line and the path of its key, or of the fault's own."""
        where = self.text.where(("schedule", key or fault.field))
        return Fault(fault.rule, where, fault.message, fault.remedy)


def job_key(team: str, name: str) -> str:
    """What a job is known by, whatever its version (H21): ``job/team.name``."""
    return f"job/{team}.{name}"


def read_job(text: str, *, team: str, name: str, file: str, environ: Mapping[str, str]) -> Job:
    """Read a job file. Raises :class:`Rejected` with every fault, its line included; ``conf`` is the job's key."""
    key = job_key(team, name)
    try:
        strict = read_strictly(text, file=file, environ=environ)
    except Rejected as error:
        raise Rejected(error.faults, conf=key) from None
    if strict.raw is None:
        problem = "the file is empty"
        raise Rejected([Fault("settings", "", problem, "write version: 1 and a runner")], conf=key)
    document = strict.checked(JobDocument, file=key)
    return Job(team, name, file, document, strict)
