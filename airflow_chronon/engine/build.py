"""From the setting ``runner`` to a runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_chronon.core.settings.kinds import NO_VARIABLES, Kinds
from airflow_chronon.core.settings.runners import (
    RUNNERS,
    CommandRunnerSettings,
    ZiplineRunnerSettings,
    with_warehouse,
)
from airflow_chronon.core.settings.variables import Secrets, filled_template
from airflow_chronon.engine.command import CommandRunner
from airflow_chronon.engine.job_commands import JobCommands
from airflow_chronon.engine.protocol import JobRequest, Log, Runner
from airflow_chronon.engine.zipline import PRINTED_ID, ZiplineRunner


def _local_runner(**given: Any) -> Runner:
    from airflow_chronon.engine.local import LocalRunner  # the engine is large, and most tasks start without it

    return LocalRunner(**given)


#: What makes every kind of runner in :data:`airflow_chronon.core.settings.runners.RUNNERS`, but an ``operator``, which works as
#: a task: :mod:`airflow_chronon.engine.operator_arguments` says with what.
CLASSES: Mapping[str, Callable[..., Runner]] = {
    "local": _local_runner,
    "command": CommandRunner,
    "zipline": ZiplineRunner,
}


def build_runner(
    settings: Mapping[str, object], environ: Mapping[str, str] = NO_VARIABLES, *, default_root: str | None = None
) -> Runner:
    """The runner that a section describes, filled in from ``environ``; nothing is started yet.

    No message of it holds what was filled in (S4). ``default_root`` is the warehouse of a ``local`` runner that names none:
    the catalog's root, as a rule, as it is written. Raises :class:`airflow_chronon.errors.Rejected` with every unknown
    kind, key or value and what is allowed.
    """
    section = with_warehouse(settings, default_root)
    found = RUNNERS.read(section, environ)
    if isinstance(found, CommandRunnerSettings):
        return _command_runner(found, section, environ)
    if isinstance(found, ZiplineRunnerSettings):
        return _zipline_runner(found, section, environ)
    runner = CLASSES[found.kind](**found.given)
    secrets = Secrets.of(section, environ=environ)
    return DiscreetRunner(runner, secrets) if secrets.values else runner


def build_command_runner(
    settings: Mapping[str, object],
    environ: Mapping[str, str] = NO_VARIABLES,
    *,
    own_env: Mapping[str, str] = NO_VARIABLES,
) -> CommandRunner:
    """The runner of a job, which is a ``command``; ``own_env`` are the job's variables, whose secrets are the runner's too.

    Raises like :func:`build_runner`.
    """
    found = Kinds("runner", CommandRunnerSettings).read(settings, environ)
    return _command_runner(found, settings, environ, own_env)


def _command_runner(
    found: CommandRunnerSettings,
    written: Mapping[str, object],
    environ: Mapping[str, str],
    own_env: Mapping[str, str] = NO_VARIABLES,
) -> CommandRunner:
    template = {} if found.argv is None else {"argv": filled_template(written["argv"], environ)}
    secrets = Secrets.of(written, own_env, environ=environ)
    own = {name: value for name, value in found.given.items() if name not in _OF_JOBS_ELSEWHERE}
    return CommandRunner(**{**own, **template}, unfilled_argv=found.argv, secrets=secrets)


def _zipline_runner(
    found: ZiplineRunnerSettings, written: Mapping[str, object], environ: Mapping[str, str]
) -> ZiplineRunner:
    own = {name: value for name, value in found.given.items() if name not in ("arguments", "connection")}
    return ZiplineRunner(
        **own,
        arguments=filled_template(written.get("arguments") or [], environ),
        unfilled_arguments=found.arguments,
        secrets=Secrets.of(written, environ=environ),
    )


_OF_JOBS_ELSEWHERE = ("job_id", "status", "cancel", "find", "idempotent", "states")


@dataclass(frozen=True)
class JobsElsewhere:
    """What a runner says of the jobs that it submits: its section, as it is written."""

    settings: Mapping[str, object]
    pattern: str  #: a regular expression over a line of the submitting command, whose one group is the id
    is_idempotent: bool = False  #: whether the token keeps a second submission from starting a second job

    def commands(
        self,
        environ: Mapping[str, str],
        *,
        given: Mapping[str, str],
        placeholders: Mapping[str, str],
        conf: str = "",
    ) -> JobCommands:
        """The commands of a ``command`` runner that ask after the jobs of a run; ``given`` are the run's variables.

        Raises :class:`airflow_chronon.errors.Rejected` like :func:`build_runner`.
        """
        runner = build_command_runner(self.settings, environ)
        templates = {
            name: filled_template(self.settings[name], environ)
            for name in ("status", "cancel", "find")
            if self.settings.get(name) is not None
        }
        return JobCommands(
            status_argv=templates["status"],
            cancel_argv=templates["cancel"],
            find_argv=templates.get("find"),
            environment=runner.environment_of(given),
            placeholders=placeholders,
            states=Kinds("runner", CommandRunnerSettings).read(self.settings, environ).states or {},
            cwd=runner.cwd,
            secrets=runner.secrets,
            conf=conf,
        )


def jobs_elsewhere(settings: Mapping[str, object], environ: Mapping[str, str]) -> JobsElsewhere | None:
    """What a section says of jobs elsewhere; None where its work is done by the runner itself.

    Raises :class:`airflow_chronon.errors.Rejected` like :func:`build_runner`.
    """
    if settings.get("kind") == "zipline":
        RUNNERS.read(settings, environ)
        return JobsElsewhere(settings, PRINTED_ID)
    if not RUNNERS.takes(settings, "job_id") or settings.get("job_id") is None:
        return None
    found = Kinds("runner", CommandRunnerSettings).read(settings, environ)
    return JobsElsewhere(settings, str(found.job_id), is_idempotent=bool(found.idempotent))


@dataclass(frozen=True)
class DiscreetRunner:
    """A runner whose log and whose errors hold nothing of what was filled into its settings (S4)."""

    runner: Runner = field(repr=False)
    secrets: Secrets

    def run(self, job: JobRequest, log: Log) -> None:
        with self.secrets.kept():
            self.runner.run(job, lambda line: log(self.secrets.hidden(line)))

    def stop(self) -> None:
        self.runner.stop()
