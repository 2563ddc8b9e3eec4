"""Which partitions an Airflow run is for: by its key, by its parameters, or by none (C9, C27, H7)."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.partitions.parse import IllegalPartition, check_closed, read_range
from airflow_chronon.core.schedules.partitioned import Run, RunSchedule
from airflow_chronon.errors import Fault


@dataclass(frozen=True)
class RunRequest:
    """What is known of an Airflow run; empty text is absent."""

    partition_key: str = ""
    is_scheduled: bool = False
    start_ds: str = ""
    end_ds: str = ""
    window: TimeWindow | None = None  #: an interval given by hand, or the one with which a scheduled run was made


def requested_run(request: RunRequest, schedule: RunSchedule, *, now: Instant) -> Run | None:
    """The run that is asked for; None for a manual run without a window (H7).

    The key wins over everything that Airflow says besides; a scheduled run keeps the interval with which it was made,
    whatever the schedule says today (C22, C28). Raises ``ChrononError`` for a request that contradicts itself,
    for a label off the grid and for a partition that has not closed.
    """
    spec = schedule.spec
    if request.partition_key and (request.start_ds or request.end_ds):
        problem = f"both a partition key {request.partition_key!r} and start_ds or end_ds are given"
        raise IllegalPartition(Fault("C27", "params", problem, "give the key, or the range, not both"))
    if request.partition_key:
        return _run_of_key(request, schedule, now)
    if request.end_ds and not request.start_ds:
        problem = f"end_ds {request.end_ds!r} is given without start_ds"
        raise IllegalPartition(Fault("H7", "end_ds", problem, "give start_ds too"))
    if request.start_ds:
        return schedule.replay(read_range(request.start_ds, request.end_ds or request.start_ds, spec, now=now))
    if request.window is not None:
        return schedule.replay(_whole_partitions(request.window, spec, now))
    return None


def _run_of_key(request: RunRequest, schedule: RunSchedule, now: Instant) -> Run:
    window = schedule.partition(schedule.spec.start_of(request.partition_key))
    if request.is_scheduled:
        made = request.window
        if made is not None and made.end == window.end and schedule.spec.grid.is_boundary(made.start):
            return schedule.made(made)
        run = schedule.run_ending(window.end)
        if run is not None:
            return run
    check_closed(window, schedule.spec, now=now, field="partition_key")
    return schedule.replay(window)


def _whole_partitions(window: TimeWindow, spec: PartitionSpec, now: Instant) -> TimeWindow:
    for instant in (window.start, window.end):
        if not spec.grid.is_boundary(instant):
            below = spec.grid.floor(instant)
            nearest = f"the nearest are {iso(below)} and {iso(below + spec.grid.interval)}"
            problem = (
                f"the data interval {window} is not whole partitions: {iso(instant)} is no boundary of {spec.grid}"
            )
            raise IllegalPartition(Fault("C27", "data interval", problem, nearest))
    check_closed(window, spec, now=now, field="data interval")
    return window
