"""Schedules as JSON and back: what travels inside serialised DAGs and triggers.

Short keys, plain values, fixed order: an unchanged conf must serialise byte for byte the same. Airflow's database holds such JSON
over upgrades: what is missing is read with its default, and what is not known is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

from airflow_chronon.core.calendar.changed import ChangedCron, changed_cron
from airflow_chronon.core.calendar.quartz import read_cron
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.chronon import parse_schedule
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeSchedule, PartitionedSchedule

Json = dict[str, Any]


def schedule_to_json(schedule: PartitionedSchedule) -> Json:
    """Inverse of :func:`schedule_from_json`."""
    return {
        "spec": spec_to_json(schedule.spec),
        "modes": {mode.value: [of.schedule.text, of.only_newest] for mode, of in schedule.modes.items()},
        "replay": [mode.value for mode in schedule.all_modes],
        "catch_up": _catch_up_to_json(schedule.catch_up),
    }


def schedule_from_json(data: Mapping[str, Any]) -> PartitionedSchedule:
    """Build a schedule from its JSON; equal data gives one shared object, since Airflow asks at every parse."""
    modes = tuple((mode, text, bool(newest)) for mode, (text, newest, *_) in data.get("modes", {}).items())
    replay = tuple(data.get("replay", ())) or tuple(mode for mode, *_ in modes)
    return _schedule(tuple(data["spec"]), modes, replay, _known(data.get("catch_up", ()), CatchUp))


@lru_cache(maxsize=8192)
def _schedule(
    spec: tuple[Any, ...], modes: tuple[tuple[str, str, bool], ...], replay: tuple[str, ...], catch_up: tuple[Any, ...]
) -> PartitionedSchedule:
    parsed = {}
    for mode, text, newest in modes:
        schedule = parse_schedule(text)
        if schedule is None:
            raise ValueError(f"the serialised schedule of {mode} is off: {text!r}")
        parsed[Mode(mode)] = ModeSchedule(schedule, newest)
    return PartitionedSchedule(spec_from_json(spec), parsed, CatchUp(*catch_up), tuple(Mode(mode) for mode in replay))


def job_schedule_to_json(schedule: IntervalSchedule) -> Json:
    """Inverse of :func:`job_schedule_from_json`."""
    cron = schedule.cron
    earlier = [[until, before.text] for until, before in cron.earlier] if isinstance(cron, ChangedCron) else []
    return {
        **({"earlier": earlier} if earlier else {}),
        "cron": cron.text,
        "catch_up": _catch_up_to_json(schedule.catch_up),
        "window": [schedule.offset, schedule.lookback],
        "enabled": schedule.enabled,
        "active_since": schedule.active_since,
    }


def job_schedule_from_json(data: Mapping[str, Any]) -> IntervalSchedule:
    """Build a job's schedule from its JSON; equal data gives one shared object."""
    earlier = tuple((until, text) for until, text, *_ in data.get("earlier", ()))
    catch_up, (offset, lookback, *_) = _known(data.get("catch_up", ()), CatchUp), data.get("window", (0, None))
    is_on, active_since = data.get("enabled", True), data.get("active_since")
    return _job_schedule(data["cron"], earlier, catch_up, (offset, lookback), is_on, active_since)


@lru_cache(maxsize=8192)
def _job_schedule(
    cron: str,
    earlier: tuple[tuple[int, str], ...],
    catch_up: tuple[Any, ...],
    window: tuple[int, int | None],
    enabled: bool,
    active_since: int | None,
) -> IntervalSchedule:
    of = changed_cron(read_cron(cron), [(until, read_cron(text)) for until, text in earlier])
    return IntervalSchedule(of, CatchUp(*catch_up), *window, enabled, active_since)


def any_schedule_to_json(schedule: PartitionedSchedule | IntervalSchedule | None) -> Json | None:
    """Inverse of :func:`any_schedule_from_json`."""
    if schedule is None:
        return None
    return job_schedule_to_json(schedule) if isinstance(schedule, IntervalSchedule) else schedule_to_json(schedule)


def any_schedule_from_json(data: Mapping[str, Any] | None) -> PartitionedSchedule | IntervalSchedule | None:
    """Build the schedule of a conf or of a job from its JSON."""
    if data is None:
        return None
    return job_schedule_from_json(data) if "cron" in data else schedule_from_json(data)


def _known(values: Iterable[Any], kind: type[Any]) -> tuple[Any, ...]:
    """The values that this version knows: a later one may have written more behind them, an earlier one fewer."""
    return tuple(values)[: len(fields(kind))]


def _catch_up_to_json(catch_up: CatchUp) -> list[Any]:
    return [catch_up.enabled, catch_up.max_runs, catch_up.skip_to, catch_up.start, catch_up.end]


def spec_to_json(spec: PartitionSpec) -> list[Any]:
    return [spec.grid.interval, spec.grid.offset, spec.format.pattern, spec.column]


def spec_from_json(data: Any) -> PartitionSpec:
    interval, offset, pattern, column, *_ = data
    return PartitionSpec(PartitionGrid(interval, offset), partition_format(pattern), column)
