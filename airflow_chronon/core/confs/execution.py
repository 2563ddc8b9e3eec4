"""What a compiled conf says of its own execution: variables and Spark's settings, common and per mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_chronon.core.settings.environment import decides_what_is_loaded


def variables_of(document: Mapping[str, Any], mode: str) -> dict[str, str]:
    """The variables of a mode (``executionInfo.env``); ``mode`` is as Chronon's driver spells it.

    Without those that :func:`left_out_of` names: a conf may no more choose what is executed than a run may (S5, S6).
    """
    return {name: value for name, value in _env(document, mode).items() if not decides_what_is_loaded(name)}


def left_out_of(document: Mapping[str, Any], mode: str) -> tuple[str, ...]:
    """The names of the variables that a conf sets and that decide how programs are found or loaded."""
    return tuple(name for name in _env(document, mode) if decides_what_is_loaded(name))


def spark_conf_of(document: Mapping[str, Any], mode: str) -> dict[str, str]:
    """Spark's settings of a mode (``executionInfo.conf``)."""
    return _merged(document, "conf", "modeConfigs", mode)


def _env(document: Mapping[str, Any], mode: str) -> dict[str, str]:
    return _merged(document, "env", "modeEnvironments", mode)


def _merged(document: Mapping[str, Any], section: str, of_modes: str, mode: str) -> dict[str, str]:
    """What is common to all modes, and what this one has laid over it."""
    found = _below(_below(_below(document, "metaData"), "executionInfo"), section)
    return {
        name: value
        for part in (_below(found, "common"), _below(_below(found, of_modes), mode))
        for name, value in part.items()
        if isinstance(value, str)
    }


def _below(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}
