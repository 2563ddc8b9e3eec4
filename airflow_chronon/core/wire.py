"""Schedules and dependencies as JSON and back: what travels inside serialised DAGs and triggers.

Short keys, plain values, fixed order: an unchanged conf must serialise byte for byte the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from airflow_chronon.core.conf import Mode
from airflow_chronon.core.dependencies import Binding, CutOffs, Lookback, TableDependency
from airflow_chronon.core.grid import PartitionGrid
from airflow_chronon.core.job_schedule import JobSchedule
from airflow_chronon.core.labels import PartitionKey, PartitionSpec, partition_format
from airflow_chronon.core.quartz import read_cron
from airflow_chronon.core.runs import CatchUp, ModeSchedule, RunSchedule
from airflow_chronon.core.schedules import parse_schedule

Json = dict[str, Any]


def schedule_to_json(schedule: RunSchedule) -> Json:
    """Inverse of :func:`schedule_from_json`."""
    return {
        "spec": _spec_to_json(schedule.spec),
        "modes": {mode.value: [of.schedule.text, of.only_newest] for mode, of in schedule.modes.items()},
        "replay": [mode.value for mode in schedule.all_modes],
        "catch_up": _catch_up_to_json(schedule.catch_up),
    }


def schedule_from_json(data: Mapping[str, Any]) -> RunSchedule:
    """Build a schedule from its JSON; equal data gives one shared object, since Airflow asks at every parse."""
    modes = tuple((mode, text, newest) for mode, (text, newest) in data["modes"].items())
    return _schedule(tuple(data["spec"]), modes, tuple(data["replay"]), tuple(data["catch_up"]))


@lru_cache(maxsize=8192)
def _schedule(
    spec: tuple[Any, ...], modes: tuple[tuple[str, str, bool], ...], replay: tuple[str, ...], catch_up: tuple[Any, ...]
) -> RunSchedule:
    parsed = {}
    for mode, text, newest in modes:
        schedule = parse_schedule(text)
        if schedule is None:
            raise ValueError(f"the serialised schedule of {mode} is off: {text!r}")
        parsed[Mode(mode)] = ModeSchedule(schedule, newest)
    return RunSchedule(_spec_from_json(spec), parsed, CatchUp(*catch_up), tuple(Mode(mode) for mode in replay))


def job_schedule_to_json(schedule: JobSchedule) -> Json:
    """Inverse of :func:`job_schedule_from_json`."""
    return {
        "cron": schedule.cron.text,
        "catch_up": _catch_up_to_json(schedule.catch_up),
        "window": [schedule.offset, schedule.lookback],
        "enabled": schedule.enabled,
        "armed": schedule.armed,
    }


def job_schedule_from_json(data: Mapping[str, Any]) -> JobSchedule:
    """Build a job's schedule from its JSON; equal data gives one shared object."""
    return _job_schedule(data["cron"], tuple(data["catch_up"]), tuple(data["window"]), data["enabled"], data["armed"])


@lru_cache(maxsize=8192)
def _job_schedule(
    cron: str, catch_up: tuple[Any, ...], window: tuple[int, int | None], enabled: bool, armed: int | None
) -> JobSchedule:
    return JobSchedule(read_cron(cron), CatchUp(*catch_up), *window, enabled, armed)


def any_schedule_to_json(schedule: RunSchedule | JobSchedule | None) -> Json | None:
    """Inverse of :func:`any_schedule_from_json`."""
    if schedule is None:
        return None
    return job_schedule_to_json(schedule) if isinstance(schedule, JobSchedule) else schedule_to_json(schedule)


def any_schedule_from_json(data: Mapping[str, Any] | None) -> RunSchedule | JobSchedule | None:
    """Build the schedule of a conf or of a job from its JSON."""
    if data is None:
        return None
    return job_schedule_from_json(data) if "cron" in data else schedule_from_json(data)


def _catch_up_to_json(catch_up: CatchUp) -> list[Any]:
    return [catch_up.enabled, catch_up.max_runs, catch_up.skip_to, catch_up.start, catch_up.end]


def dependency_to_json(dependency: TableDependency) -> Json:
    """Inverse of :func:`dependency_from_json`; what equals its default is left out."""
    cut = dependency.cut
    full: Json = {
        "table": dependency.table,
        "column": dependency.column or None,
        "spec": _spec_to_json(dependency.spec) if dependency.spec else None,
        "binding": None if dependency.binding is Binding.WHOLE else dependency.binding.value,
        "grid": [dependency.grid.interval, dependency.grid.offset] if dependency.grid else None,
        "lag": dependency.lag or None,
        "reach": ["unbounded"] if dependency.reach is None else dependency.reach or None,
        "cut": None if cut == CutOffs() else [cut.start, cut.end, cut.last],
        "cumulative": dependency.is_cumulative or None,
        "sub": list(dependency.sub) or None,
        "expression": dependency.expression,
        "fixed": list(dependency.fixed_labels) or None,
        "policy": None if dependency.policy is Lookback.IGNORE else dependency.policy.value,
    }
    return {name: value for name, value in full.items() if value is not None}


def dependency_from_json(data: Mapping[str, Any]) -> TableDependency:
    """Build a dependency from its JSON."""
    reach = data.get("reach", 0)
    return TableDependency(
        data["table"],
        data.get("column", ""),
        _spec_from_json(data["spec"]) if "spec" in data else None,
        Binding(data.get("binding", Binding.WHOLE.value)),
        PartitionGrid(*data["grid"]) if "grid" in data else None,
        data.get("lag", 0),
        None if isinstance(reach, list) else reach,
        CutOffs(*data["cut"]) if "cut" in data else CutOffs(),
        data.get("cumulative", False),
        tuple(data.get("sub", ())),
        data.get("expression"),
        tuple(PartitionKey(label) for label in data.get("fixed", ())),
        Lookback(data.get("policy", Lookback.IGNORE.value)),
    )


def _spec_to_json(spec: PartitionSpec) -> list[Any]:
    return [spec.grid.interval, spec.grid.offset, spec.format.pattern, spec.column]


def _spec_from_json(data: Any) -> PartitionSpec:
    interval, offset, pattern, column = data
    return PartitionSpec(PartitionGrid(interval, offset), partition_format(pattern), column)
