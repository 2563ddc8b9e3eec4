"""Microseconds per ``next_dagrun_info_v2``, beside ``CronDataIntervalTimetable`` on the same crons in one run."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-chronon-bench-"))

import pendulum
from airflow.timetables.base import DagRunInfo, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_chronon.airflow.timetables import keyed as module
from airflow_chronon.airflow.timetables.partitions import PartitionTimetable
from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, parse_instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.chronon import parse_schedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeSchedule, PartitionedSchedule

CASES = (
    ("15 1-22/3 * * *", 3 * HOUR, HOUR),
    ("*/15 * * * *", 15 * MINUTE, 0),
    ("0 2 * * *", DAY, 0),
    ("0 3 * * mon", DAY, 0),
)
START = parse_instant("2026-01-01T00:00:00Z")
NOW = parse_instant("2027-01-01T00:00:00Z")
SINCE = TimeRestriction(pendulum.from_timestamp(START), None, True)
RUNS = 200  # with catch-up each call steps to the next run of a year, as in a long backlog


def main() -> None:
    setattr(module, "now", lambda: NOW)  # noqa: B010
    print(f"{'cron':20} {'ours':>10} {'Airflow':>10} {'times faster':>14}")
    for cron, interval, offset in CASES:
        grid = PartitionGrid(interval, offset)
        parsed = parse_schedule(cron)
        assert parsed is not None
        schedule = PartitionedSchedule(
            PartitionSpec(grid, partition_format(default_pattern(grid))),
            {Mode.BACKFILL: ModeSchedule(parsed)},
            CatchUp(enabled=True, start=START),
            (Mode.BACKFILL,),
        )
        ours, theirs = PartitionTimetable(schedule), CronDataIntervalTimetable(cron, timezone=pendulum.UTC)

        def step(last: DagRunInfo | None, ours: PartitionTimetable = ours) -> DagRunInfo | None:
            return ours.next_dagrun_info_v2(last_dagrun_info=last, restriction=SINCE)

        def cron_step(last: DagRunInfo | None, theirs: CronDataIntervalTimetable = theirs) -> DagRunInfo | None:
            interval = last.data_interval if last else None
            return theirs.next_dagrun_info(last_automated_data_interval=interval, restriction=SINCE)

        # turn by turn, so that whatever else the machine does slows both
        rounds = [(per_call(step), per_call(cron_step)) for _ in range(7)]
        mine, airflow = min(pair[0] for pair in rounds), min(pair[1] for pair in rounds)
        print(f"{cron:20} {mine:7.1f} us {airflow:7.1f} us {airflow / mine:14.1f}")


def per_call(step: Callable[[DagRunInfo | None], DagRunInfo | None]) -> float:
    """Processor microseconds of one call, over :data:`RUNS` runs in a row."""
    last = None
    before = time.process_time()
    for _ in range(RUNS):
        last = step(last) or last
    return (time.process_time() - before) / RUNS * 1e6


if __name__ == "__main__":
    main()
