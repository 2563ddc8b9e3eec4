"""Which dependencies of a conf may be behind, as its setting ``max_lag`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from airflow_chronon.core.calendar.instants import duration_text
from airflow_chronon.core.settings.model import ConfSettings
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.core.waits.max_lag import MaxLag, whole_reading
from airflow_chronon.errors import Fault

_Mode = TypeVar("_Mode")
_ByMode = Mapping[_Mode, tuple[TableDependency, ...]]


def with_max_lag(
    dependencies: _ByMode[_Mode], settings: ConfSettings, faults: list[Fault]
) -> tuple[_ByMode[_Mode], tuple[Fault, ...]]:
    """The dependencies, each with how far behind its table may be; and warnings.

    It is refused for a table of which Chronon reads exactly what is waited for: a fault where the setting names the table, and a
    warning where it holds for all tables, since it then holds for the others.
    """
    if settings.max_lag is None:
        return dependencies, ()
    warnings: dict[Fault, None] = {}

    def judged(dependency: TableDependency) -> TableDependency:
        found, is_named = settings.max_lag.of_table(dependency.table) if settings.max_lag else (None, False)
        if found is None:
            return dependency
        if fault := _too_late(found, settings):
            faults.append(fault)
            return dependency
        why = whole_reading(dependency)
        if not why:
            return replace(dependency, max_lag=found)
        problem = f"max_lag cannot hold for {dependency.table}: {why}"
        if is_named:
            faults.append(Fault("C17", "max_lag.tables", problem, "leave this table out, or give it partitions: 0"))
        else:
            warnings[Fault("C17", dependency.field, problem, "a run waits for all that it needs of it")] = None
        return dependency

    found = {mode: tuple(map(judged, of)) for mode, of in dependencies.items()}
    faults[:] = dict.fromkeys(faults)
    return found, tuple(warnings)


def _too_late(found: MaxLag, settings: ConfSettings) -> Fault | None:
    """What is wrong with a time that no wait lasts."""
    timeout = settings.sensor.timeout
    if found.after < timeout:
        return None
    problem = (
        f"it holds after {duration_text(found.after)}, and a wait ends after {duration_text(timeout)} (sensor.timeout)"
    )
    return Fault("settings", "max_lag.after", problem, "give a shorter time, or a longer sensor.timeout")
