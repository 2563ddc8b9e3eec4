"""From job files to plans: what is deployed, what is rejected and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_chronon.core.calendar.cron import NEVER, Cron
from airflow_chronon.core.calendar.instants import Instant, iso, parse_instant
from airflow_chronon.core.calendar.quartz import read_cron
from airflow_chronon.core.confs.naming import job_dag_id, job_tags
from airflow_chronon.core.confs.plan import Plan, RejectedConf, faults_of
from airflow_chronon.core.jobs.document import Job, JobDocument, ScheduleDocument
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import IntervalSchedule, schedule_faults
from airflow_chronon.core.settings.argument_templates import names_in
from airflow_chronon.core.settings.model import ConfSettings, Guarded, Pause, Settings
from airflow_chronon.core.settings.runners import OPERATOR, OPERATOR_LISTS, RunnerSection
from airflow_chronon.core.settings.variables import unfilled_template
from airflow_chronon.errors import Fault, Rejected

RUNNER = "command"  #: the kind of runner that starts jobs


@dataclass(frozen=True, kw_only=True)
class JobPlan(Plan):
    """A job that is good to run: its schedule, its environment, and the settings that hold for it."""

    job: Job
    schedule: IntervalSchedule | None

    @property
    def key(self) -> str:
        return self.job.key

    @property
    def family(self) -> str:
        """The key: a job is one thing that is edited (H21)."""
        return self.job.key

    @property
    def version(self) -> str:
        return self.job.document.version

    @property
    def file(self) -> str:
        return self.job.file

    @property
    def team(self) -> str:
        return self.job.team

    @property
    def document(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.job.text.raw
        return found

    @property
    def summary(self) -> str:
        if self.schedule is None:
            return "by hand"
        return self.schedule.cron.text if self.schedule.enabled else f"{self.schedule.cron.text} (off)"

    @property
    def starts_when_seen(self) -> bool:
        return self.schedule is not None

    @property
    def env(self) -> Mapping[str, str]:
        """The job's own variables (H5), ``${NAME}`` not yet filled in: that is done where the job is started."""
        return self.job.document.env

    def as_seen(self, seen: Callable[[IntervalSchedule], IntervalSchedule]) -> JobPlan:
        return self if self.schedule is None else replace(self, schedule=seen(self.schedule))

    def end_of_runs_fired_by(self, instant: Instant) -> Instant | None:
        """An interval ends with its run's fire."""
        return instant


def resolve_jobs(
    jobs: Iterable[Job], settings: Settings, *, branch: str = "main", wanted: str | None = None
) -> dict[str, JobPlan | RejectedConf]:
    """Judge every job; keys are ``job/team.name``. One bad job never touches another's verdict.

    With ``wanted``, a DAG id, only those of that id.
    """
    named: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        named[_dag_id(job, settings, branch)].append(job)
    verdicts: dict[str, JobPlan | RejectedConf] = {}
    for dag_id, same in named.items():
        for job in same if wanted in (None, dag_id) else ():
            others = [other for other in same if other is not job]
            key = job.key if job.key not in verdicts else job.file
            verdicts[key] = _shared(job, dag_id, others) if others else _judge(job, settings, branch)
    return verdicts


def _shared(job: Job, dag_id: str, others: list[Job]) -> RejectedConf:
    """Neither of two jobs with one DAG id may win by chance (C26)."""
    files = " and ".join(other.file for other in others)
    fault = Fault("C26", "", f"its DAG id {dag_id!r} is also that of {files}", "rename one of the files")
    return RejectedConf(job.key, job.file, (fault,))


def _judge(job: Job, settings: Settings, branch: str) -> JobPlan | RejectedConf:
    try:
        return _plan(job, settings, branch)
    except Exception as error:
        return RejectedConf(job.key, job.file, faults_of(error))


def _plan(job: Job, settings: Settings, branch: str) -> JobPlan:
    document, faults = job.document, list[Fault]()
    scheduled = document.schedule is not None
    tags = job_tags(team=job.team, version=document.version, branch=branch, is_scheduled=scheduled)
    effective = settings.for_conf(job.key, tags, own_settings(document))
    if effective.runner.kind == OPERATOR and Guarded.RUNNER not in settings.confs_may_set:
        bare = own_settings(document.model_copy(update={"runner": None}))
        if settings.for_conf(job.key, tags, bare).runner != effective.runner:
            problem = "a job may not set an operator of its own, which works inside Airflow and with its connections"
            remedy = "set it in an override of chronon.yaml, or say confs_may_set: [runner] there"
            faults.append(Fault("S6", "runner", problem, remedy))
    effective = effective.model_copy(update={"runner": _runner(effective.runner, faults)})
    schedule = None if document.schedule is None else _schedule(job, document.schedule, effective, faults)
    if faults:
        raise Rejected(faults, conf=job.key)
    is_on = schedule is not None and schedule.enabled
    return JobPlan(
        job=job,
        dag_id=_dag_id(job, settings, branch),
        tags=job_tags(team=job.team, version=document.version, branch=branch, is_scheduled=is_on),
        schedule=schedule,
        settings=effective,
        warnings=tuple(_warnings(job, schedule)),
    )


def _dag_id(job: Job, settings: Settings, branch: str) -> str:
    return job_dag_id(name=f"{job.team}.{job.name}", branch=branch, default_branch=settings.default_branch)


def own_settings(document: JobDocument) -> ConfSettings:
    """What the job file says, in the words of the settings, for overrides to be laid over.

    The schedule's keys are all given, so that the catch-up and the dates which the settings have for partitions do not
    reach jobs; ``enabled`` only where the file gives it, so that a deployment can be switched off as a whole.
    """
    own: dict[str, Any] = {"pause": Pause.ALLOW}  # H14
    for name in ("runner", "retries", "owner", "task_defaults", "max_pending_runs", "on_retire"):
        if (value := getattr(document, name)) is not None:
            own[name] = value
    schedule = document.schedule
    for name in ("catchup", "max_active_runs", "max_catchup_runs"):
        own[name] = getattr(schedule, name, ScheduleDocument.model_fields[name].default)
    for name, key in (("start_date", "start_time"), ("end_date", "end_time"), ("skip_to_date", "skip_to_date")):
        instant = getattr(schedule, key, None)
        own[name] = None if instant is None else iso(instant)
    if schedule is not None and "enabled" in schedule.model_fields_set:
        own["enabled"] = schedule.enabled
    return ConfSettings.model_construct(**own)


def _runner(runner: RunnerSection, faults: list[Fault]) -> RunnerSection:
    """A job is started by its own command, or by an operator: it has no conf that another kind of runner could read."""
    given = runner.model_dump(exclude_unset=True)
    kind, argv = given.get("kind", RUNNER), given.get("argv")
    if kind == OPERATOR:
        names = sorted(names_in(unfilled_template(given.get("arguments"))).intersection(OPERATOR_LISTS))
        if names:
            problem = f"{{{names[0]}}} is about the conf of Chronon's driver, and a job has none"
            faults.append(Fault("settings", "runner.arguments", problem, "write the arguments of the job itself"))
    elif kind != RUNNER or not argv:
        problem = f"a job cannot be started by the runner kind {kind!r}" if kind != RUNNER else "the job has no command"
        remedy = f'write runner: {{kind: {RUNNER}, argv: ["program", "--option", "value"]}}'
        faults.append(Fault("settings", "runner", problem, remedy))
    return RunnerSection.model_validate({**given, "kind": kind})


def _schedule(
    job: Job, written: ScheduleDocument, settings: ConfSettings, faults: list[Fault]
) -> IntervalSchedule | None:
    cron: Cron | None = job.at("cron_expression", lambda: read_cron(written.cron_expression), faults)
    offset, lookback = written.start_time_offset_seconds or 0, written.lookback_seconds
    faults += [job.placed(fault) for fault in schedule_faults(offset, lookback)]
    start, end, skip_to = (_bound(settings, name, faults) for name in ("start_date", "end_date", "skip_to_date"))
    if faults or cron is None:
        return None
    catch_up = CatchUp(settings.catchup, settings.max_catchup_runs, skip_to, start, end)
    return IntervalSchedule(cron, catch_up, offset, lookback, settings.enabled)


def _bound(settings: ConfSettings, name: str, faults: list[Fault]) -> Instant | None:
    text = getattr(settings, name)
    try:
        return None if text is None else parse_instant(text)
    except ValueError:
        remedy = "write an instant such as 2026-01-15 or 2026-01-15T03:00:00Z in the override: a job has no partitions"
        faults.append(Fault("H15", name, f"{text!r} is not an instant", remedy))
        return None


def _warnings(job: Job, schedule: IntervalSchedule | None) -> Iterable[Fault]:
    written = job.document.schedule
    if schedule is None or written is None:
        return
    if written.end_time_offset_seconds is not None:
        problem = "end_time_offset_seconds is ignored: a window ends one interval after it starts"
        yield job.placed(Fault("H2", "end_time_offset_seconds", problem, "leave it out"))
    start, end = schedule.catch_up.start, schedule.catch_up.end
    first = None if start is None else schedule.cron.first_at_or_after(start + 1)
    if start is not None and first == NEVER:
        problem = f"it never fires: no year of its cron {schedule.cron.text!r} is left after its start {iso(start)}"
        yield job.placed(Fault("H1", "cron_expression", problem, "name later years"))
    elif end is not None and first is not None and end < first:
        problem = f"it never fires: its end {iso(end)} lies before its first fire {iso(first)}"
        yield job.placed(Fault("H15", "end_time", problem, "set a later end_time"))
