"""The setting ``task_defaults`` as arguments of an operator."""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Mapping
from typing import Any

from airflow_chronon.core.settings.model import TaskDefaults
from airflow_chronon.errors import ChrononError, Fault

NO_WORK = frozenset({"pool"})  #: what a wait, a gate or the check at the end leaves out: a pool limits work


def task_arguments(defaults: TaskDefaults, *, leave_out: Collection[str] = ()) -> Mapping[str, Any]:
    """The arguments for a task, without those to ``leave_out``.

    Raises ``ChrononError`` for a callback that cannot be imported.
    """
    arguments = {name: value for name, value in defaults.model_dump(exclude_none=True).items() if name not in leave_out}
    callback = arguments.get("on_failure_callback")
    if callback is not None:
        try:
            arguments["on_failure_callback"] = pkgutil.resolve_name(callback)
        except (ImportError, AttributeError, ValueError) as error:
            problem = f"{callback!r} cannot be imported: {error}"
            remedy = "give the dotted path of a function that the workers can import"
            raise ChrononError(Fault("settings", "task_defaults.on_failure_callback", problem, remedy)) from None
    return arguments
