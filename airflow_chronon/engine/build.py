"""From the setting ``runner`` to a runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_chronon.core.settings.kinds import NO_VARIABLES, Kinds
from airflow_chronon.core.settings.runners import RUNNERS, CommandRunnerSettings, with_warehouse
from airflow_chronon.core.settings.variables import Secrets, filled_template
from airflow_chronon.engine.command import CommandRunner
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import JobRequest, Log, Runner

#: The class of every kind of runner in :data:`airflow_chronon.core.settings.runners.RUNNERS`.
CLASSES: Mapping[str, Callable[..., Runner]] = {"local": LocalRunner, "command": CommandRunner}


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
    runner = CLASSES[found.kind](**found.arguments)
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
    return CommandRunner(**{**found.arguments, **template}, unfilled_argv=found.argv, secrets=secrets)


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
