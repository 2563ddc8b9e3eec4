"""Run schedules for tests: made by hand, or any legal one by hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant, parse_instant
from airflow_chronon.core.partitions.grid import LEGAL_INTERVALS, PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.chronon import parse_schedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeSchedule, PartitionedSchedule

T0 = parse_instant("2026-06-01T00:00:00Z")
ANY_BOOL = st.booleans()
COARSE = ("0 0 * * *", "30 6 * * *", "15 3 * * mon", "0 0 1 * *", "0 5 * * 1-5", "10 0 1,15 * *", "59 23 * * sun")


def at(text: str) -> Instant:
    return parse_instant(text)


def spec_of(interval: int, offset: int = 0) -> PartitionSpec:
    grid = PartitionGrid(interval, offset)
    return PartitionSpec(grid, partition_format(default_pattern(grid)))


def schedule_of(
    crons: Mapping[Mode, str] | str, interval: int, offset: int = 0, *, newest: bool = False, **catch_up: Any
) -> PartitionedSchedule:
    """A schedule of one backfill, or of several modes; ``catch_up`` are the fields of :class:`CatchUp`."""
    texts = {Mode.BACKFILL: crons} if isinstance(crons, str) else crons
    modes = {}
    for mode, text in texts.items():
        cron = parse_schedule(text)
        assert cron is not None
        modes[mode] = ModeSchedule(cron, newest or mode is not Mode.BACKFILL)
    return PartitionedSchedule(spec_of(interval, offset), modes, CatchUp(**catch_up), tuple(modes) or (Mode.BACKFILL,))


def evenly(interval: int, phase: int) -> str:
    """A cron that fires every ``interval`` seconds, ``phase`` seconds (whole minutes) after midnight first."""
    minute, hour = phase // MINUTE % 60, phase // HOUR
    if interval < HOUR:
        return f"{minute % (interval // MINUTE)}-59/{interval // MINUTE} * * * *"
    return f"{minute} {hour % (interval // HOUR)}-23/{interval // HOUR} * * *"


@st.composite
def schedules(
    draw: st.DrawFn, *, catch_up: st.SearchStrategy[bool] = ANY_BOOL, bounded: bool = True
) -> PartitionedSchedule:
    """Any legal schedule; with catch-up it has a start near :data:`T0`."""
    interval = draw(st.sampled_from(LEGAL_INTERVALS))
    offset = draw(st.integers(0, interval // MINUTE - 1)) * MINUTE
    if interval == DAY:
        texts = {Mode.BACKFILL: draw(st.sampled_from(COARSE))}
        if draw(st.booleans()):
            texts[Mode.UPLOAD] = draw(st.sampled_from(COARSE))
    else:
        phase = draw(st.integers(0, interval // MINUTE - 1)) * MINUTE
        texts = {Mode.BACKFILL: evenly(interval, phase)}
    schedule = schedule_of(texts, interval, offset, newest=draw(st.booleans()))
    enabled = draw(catch_up)
    near = st.integers(-3 * DAY // MINUTE, 3 * DAY // MINUTE).map(lambda minutes: T0 + minutes * MINUTE)
    start = draw(near) if enabled or draw(st.booleans()) else None
    bounds: dict[str, Any] = {"enabled": enabled, "start": start}
    if bounded:
        bounds["max_runs"] = draw(st.none() | st.integers(1, 5))
        bounds["skip_to"] = draw(st.none() | near)
        bounds["end"] = draw(st.none() | st.integers(4, 60).map(lambda days: T0 + days * DAY))
    return replace(schedule, catch_up=CatchUp(**bounds))
