"""Jobs from Python, by the names that Hopsworks' API has (H19).

::

    from airflow_chronon.jobs import get_job

    job = get_job("etl.hourly")
    job.schedule(cron_expression="0 0 * ? * * *", start_time=datetime(2026, 1, 1, tzinfo=timezone.utc))
    print(job.job_schedule.next_execution_date_time)
    job.run(start_time=datetime(2026, 6, 1), end_time=datetime(2026, 6, 2))
    job.unschedule()

The job file stays the truth (C23): scheduling writes it, and the deployment picks it up as it picks up any other change.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.job_runs import start_run
from airflow_chronon.airflow_api.login import find_login, not_configured
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.conf_root.jobs import replace_job_file
from airflow_chronon.conf_root.root import NAMED_BY
from airflow_chronon.conf_root.selection import select_job
from airflow_chronon.conf_root.settings import cannot_read
from airflow_chronon.core.calendar.instants import SCHEDULABLE, Instant, from_datetime, iso, parse_instant, to_datetime
from airflow_chronon.core.jobs.document import ScheduleDocument, read_job
from airflow_chronon.core.jobs.edit import with_schedule, without_schedule
from airflow_chronon.core.jobs.resolve import JobPlan, resolve_jobs
from airflow_chronon.core.schedules.request import asked_window
from airflow_chronon.core.settings.environment import given_texts
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.settings.yaml import StrictText
from airflow_chronon.deployment import find_deployment, variable
from airflow_chronon.errors import ChrononError, Fault, Rejected

#: An instant: a datetime, a naive one being UTC, or ISO-8601 text.
Moment: TypeAlias = datetime | str

_NAMED_BY = f"root= or {variable('conf_root')}"  #: a conf root, by whoever calls from Python


@dataclass(frozen=True)
class JobScheduleView:
    """The schedule of a job as its file has it; every datetime is aware and in UTC."""

    cron_expression: str
    start_time: datetime | None
    end_time: datetime | None
    start_time_offset_seconds: int | None
    end_time_offset_seconds: int | None  #: accepted and ignored (H2)
    lookback_seconds: int | None
    catchup: bool
    max_active_runs: int
    max_catchup_runs: int | None
    skip_to_date: datetime | None
    enabled: bool
    next_execution_date_time: datetime | None  #: the next fire after now; None when there is none to come


@dataclass(frozen=True)
class Job:
    """One job file of a conf root."""

    name: str  #: ``team.name``
    key: str  #: ``job/team.name``
    dag_id: str
    path: Path
    _settings: Settings = field(repr=False)
    _branch: str = field(repr=False)
    _environ: Mapping[str, str] = field(repr=False)
    _clock: Callable[[], float] = field(default=time.time, repr=False)

    @property
    def job_schedule(self) -> JobScheduleView | None:
        """The schedule as the file has it now; None when the job runs by hand only."""
        plan = self._read(self._text())
        written, schedule = plan.job.document.schedule, plan.schedule
        if written is None or schedule is None:
            return None
        following = schedule.first_after(int(self._clock() // 1))
        fields = {name: getattr(written, name) for name in ScheduleDocument.model_fields}
        for name in ("start_time", "end_time", "skip_to_date"):
            fields[name] = None if fields[name] is None else to_datetime(fields[name])
        return JobScheduleView(
            **fields, next_execution_date_time=None if following is None else to_datetime(following.fire)
        )

    def schedule(
        self,
        cron_expression: str,
        start_time: Moment | None = None,
        end_time: Moment | None = None,
        *,
        start_time_offset_seconds: int | None = None,
        end_time_offset_seconds: int | None = None,
        catchup: bool = False,
        max_active_runs: int = 1,
        max_catchup_runs: int | None = None,
        skip_to_date: Moment | None = None,
        enabled: bool = True,
        lookback_seconds: int | None = None,
    ) -> JobScheduleView:
        """Write this schedule into the job file, in place of the one that it has; all else in the file stays.

        ``start_time_offset_seconds`` moves the window back (H2) and ``lookback_seconds`` widens it (H3);
        ``end_time_offset_seconds`` is ignored with a warning. Raises :class:`airflow_chronon.errors.ChrononError`, and
        writes nothing, for a schedule that breaks a rule and for a file that cannot be written.
        """
        raw = {
            "cron_expression": cron_expression,
            "start_time": _text_of(start_time),
            "end_time": _text_of(end_time),
            "start_time_offset_seconds": start_time_offset_seconds,
            "end_time_offset_seconds": end_time_offset_seconds,
            "lookback_seconds": lookback_seconds,
            "catchup": catchup,
            "max_active_runs": max_active_runs,
            "max_catchup_runs": max_catchup_runs,
            "skip_to_date": _text_of(skip_to_date),
            "enabled": enabled,
        }
        judged = StrictText(raw, {}, ()).checked(ScheduleDocument, file=self.key)
        if end_time_offset_seconds is not None:
            problem = "end_time_offset_seconds is ignored: a window ends one interval after it starts (H2)"
            warnings.warn(problem, stacklevel=2)
        wanted = judged.model_copy(update={"end_time_offset_seconds": None})  # ignored, so not written
        text = self._text()
        self._write(with_schedule(text, wanted, replacing=self._read(text).job.document.schedule), text, wanted)
        found = self.job_schedule
        assert found is not None
        return found

    def unschedule(self) -> None:
        """Take the schedule out of the job file: the job then runs by hand only. Nothing happens when it has none."""
        text = self._text()
        if self._read(text).job.document.schedule is not None:
            self._write(without_schedule(text), text, None)

    def run(
        self,
        start_time: Moment | None = None,
        end_time: Moment | None = None,
        *,
        logical_date: Moment | None = None,
        env: Mapping[str, str] | None = None,
        airflow: str | AirflowServer | None = None,
    ) -> RunRecord:
        """Start one run through Airflow's API, over ``[start_time, end_time)`` or without a window (H7).

        ``logical_date`` is what the job is told as that of its window; by default the window's start.
        ``env`` wins over the job's own variables and over those that are worked out (H5). ``airflow`` is the address of
        the server, such as ``http://user:password@host:8080``; by default the connection that the environment names.
        Raises :class:`airflow_chronon.errors.ChrononError` for half a window and for what Airflow refuses.
        """
        given = {} if env is None else env
        is_text = isinstance(given, Mapping) and all(
            isinstance(e, str) and "\0" not in e for p in given.items() for e in p
        )
        if not is_text:
            problem = "env holds something else than text by name"
            raise ChrononError(Fault("H5", "env", problem, 'write env={"NAME": "value"}'), conf=self.key)
        given_texts(given)  # raises for a name that none can have
        start, end, date = (None if each is None else _instant(each) for each in (start_time, end_time, logical_date))
        if asked_window(start, end) is None and date is not None:  # half a request is refused before anything is asked
            problem = f"a logical date {logical_date!r} is given without a window"
            raise ChrononError(Fault("H7", "logical_date", problem, "give start_time and end_time too"), conf=self.key)
        server = _server(airflow, self._environ)
        return start_run(server, self.dag_id, start=start, end=end, logical_date=date, env=env)

    def _text(self) -> str:
        try:
            return self.path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ChrononError(cannot_read(error, what=f"the job file {self.path}"), conf=self.key) from None

    def _read(self, text: str) -> JobPlan:
        """The plan of the file's text. Raises ``Rejected``."""
        team, name = self.path.parent.name, self.path.stem
        job = read_job(text, team=team, name=name, file=str(self.path), environ=self._environ)
        verdict = next(iter(resolve_jobs([job], self._settings, branch=self._branch).values()))
        return verdict.need_plan()

    def _write(self, text: str, before: str, wanted: ScheduleDocument | None) -> None:
        """Write the file as a whole, once it is known to say what was meant and nothing else."""
        try:
            after = self._read(text).job
        except Rejected as error:
            if any(fault.rule == "settings" for fault in error.faults):
                raise _cannot_edit(self.key) from None
            raise
        others = {**self._read(before).job.text.raw, "schedule": None}
        if after.document.schedule != wanted or {**after.text.raw, "schedule": None} != others:
            raise _cannot_edit(self.key)
        try:
            replace_job_file(self.path, text.encode())
        except OSError as error:
            problem = f"the job file {self.path} cannot be written: {error.strerror or error}"
            remedy = "change it where its tree comes from, and deploy that"
            raise ChrononError(Fault("input", "schedule", problem, remedy), conf=self.key) from None


def get_job(
    name: str,
    *,
    root: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.time,
) -> Job:
    """The job that ``name`` names: ``team.name``, a name that only one team has, a DAG id, ``job/team.name`` or a file.

    ``root`` is the conf root; by default the one that ``AIRFLOW__CHRONON__CONF_ROOT`` names, else ``dags/chronon``.
    Raises :class:`airflow_chronon.errors.ChrononError` when there is no such job, or its file is bad.
    """
    if not isinstance(name, str) or not isinstance(root, str | Path | None) or not name.isprintable():
        problem = f"get_job({name!r}, root={root!r}) does not name a job"
        raise ChrononError(Fault("H19", "", problem, 'write get_job("team.name")'))
    given = os.environ if environ is None else environ
    found = find_deployment(environ=given, conf_root=root).read_root()
    try:
        plan = select_job(found, name)
    except ChrononError as error:
        error.reword(lambda text: text.replace(NAMED_BY, _NAMED_BY))
        raise
    return Job(
        plan.family.removeprefix("job/"),
        plan.key,
        plan.dag_id,
        found.path / plan.file,
        found.settings,
        found.branch,
        given,
        clock,
    )


def _server(airflow: str | AirflowServer | None, environ: Mapping[str, str]) -> AirflowServer:
    if isinstance(airflow, AirflowServer):
        return airflow
    if not isinstance(airflow, str | None):
        remedy = "give its address, such as http://user:password@host:8080"
        raise ChrononError(Fault("H19", "airflow", f"{type(airflow).__name__} names no Airflow", remedy))
    login = find_login(environ, address=airflow)
    if login is None:
        raise not_configured(or_give='airflow="http://user:password@host:8080"')
    return AirflowRest(login)


def _instant(moment: Moment) -> Instant:
    try:
        found = parse_instant(moment) if isinstance(moment, str) else from_datetime(moment)
        if found not in SCHEDULABLE:
            raise ValueError
        return found
    except (ValueError, TypeError, AttributeError):
        remedy = "give a datetime, or text such as 2026-06-01T10:00:00Z"
        raise ChrononError(
            Fault("H19", "", f"{moment!r} is not an instant of the years 1970 to 2199", remedy)
        ) from None


def _text_of(moment: Moment | None) -> str | None:
    return None if moment is None else iso(_instant(moment))


def _cannot_edit(key: str) -> ChrononError:
    problem = "the job file is written in a way that cannot be edited without changing more"
    return ChrononError(Fault("input", "schedule", problem, "write the schedule into the file by hand"), conf=key)
