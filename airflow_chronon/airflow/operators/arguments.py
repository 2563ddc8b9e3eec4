"""The setting ``task_defaults`` as arguments of an operator."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any

from airflow_chronon.core.settings.model import TaskDefaults
from airflow_chronon.errors import ChrononError, Fault


def task_arguments(defaults: TaskDefaults) -> Mapping[str, Any]:
    """The arguments for every work task. Raises ``ChrononError`` for a callback that cannot be imported."""
    arguments = defaults.model_dump(exclude_none=True)
    callback = arguments.get("on_failure_callback")
    if callback is not None:
        try:
            arguments["on_failure_callback"] = pkgutil.resolve_name(callback)
        except (ImportError, AttributeError, ValueError) as error:
            problem = f"{callback!r} cannot be imported: {error}"
            remedy = "give the dotted path of a function that the workers can import"
            raise ChrononError(Fault("settings", "task_defaults.on_failure_callback", problem, remedy)) from None
    return arguments
