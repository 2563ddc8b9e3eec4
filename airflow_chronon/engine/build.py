"""From the setting ``runner`` to a runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_chronon.core.settings.kinds import Kinds
from airflow_chronon.core.settings.runners import RUNNERS, CommandRunnerSettings, with_warehouse
from airflow_chronon.engine.command import CommandRunner
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import Runner

#: The class of every kind of runner in :data:`airflow_chronon.core.settings.runners.RUNNERS`.
CLASSES: Mapping[str, Callable[..., Runner]] = {"local": LocalRunner, "command": CommandRunner}


def build_runner(settings: Mapping[str, object], *, default_root: str | None = None) -> Runner:
    """The runner that a section describes, filled in; nothing is started yet.

    ``default_root`` is the warehouse of a ``local`` runner that names none: the catalog's root, as a rule.
    Raises :class:`airflow_chronon.errors.Rejected` with every unknown kind, key or value and what is allowed.
    """
    found = RUNNERS.read(with_warehouse(settings, default_root))
    return CLASSES[found.kind](**found.arguments)


def build_command_runner(settings: Mapping[str, object]) -> CommandRunner:
    """The runner of a job, which is a ``command``. Raises like :func:`build_runner`."""
    return CommandRunner(**Kinds("runner", CommandRunnerSettings).read(settings).arguments)
