"""The timetable of confs: runs on a partition grid. The partition key is the label, the partition date its start."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from airflow.exceptions import InvalidPartitionKeyError
from airflow.timetables.base import DagRunInfo, Timetable

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.timetables.keyed import KeyedTimetable, moment_of
from airflow_chronon.core.calendar.instants import Instant, TimeWindow, from_datetime
from airflow_chronon.core.partitions.parse import check_closed
from airflow_chronon.core.schedules.partitioned import Run, RunSchedule
from airflow_chronon.core.schedules.serialization import schedule_from_json, schedule_to_json
from airflow_chronon.errors import ChrononError


class PartitionTimetable(KeyedTimetable[Run]):
    """Runs of one conf version on its partition grid (C8 to C10, C29, H8 to H12)."""

    def __init__(self, schedule: RunSchedule) -> None:
        crons = dict.fromkeys(of.schedule.text for of in schedule.modes.values())
        super().__init__(schedule, summary=" | ".join(crons) or "@never")
        self._runs = schedule
        self.description = f"{self._summary} over partitions of {schedule.spec.grid}"

    def serialize(self) -> dict[str, Any]:
        return schedule_to_json(self._runs)

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(schedule_from_json(data))

    def iter_partition_dagrun_infos(self, *, earliest: datetime, latest: datetime) -> Iterable[DagRunInfo]:
        """One replay per closed partition that starts in ``[earliest, latest]``, both inclusive, whatever the schedule."""
        grid = self._runs.spec.grid
        newest_start = grid.floor(now()) - grid.interval
        for start in range(
            grid.ceil(from_datetime(earliest)), min(from_datetime(latest), newest_start) + 1, grid.interval
        ):
            yield self._replay_info(start)

    def _decode_partition_date(self, partition_key: str) -> datetime:
        """The start of the partition of a key. Airflow stores the key as typed, so only the canonical label may pass (C27)."""
        spec = self._runs.spec
        try:
            start = spec.start_of(partition_key)
            canonical = spec.label(start)
            if canonical != partition_key:
                raise InvalidPartitionKeyError(f"partition_key: {partition_key!r} is written {canonical!r} (C27).")
            check_closed(TimeWindow(start, start + spec.grid.interval), spec, now=now(), field="partition_key")
        except ChrononError as error:
            raise InvalidPartitionKeyError(str(error)) from None
        return moment_of(start)

    def _interval(self, run: Run) -> TimeWindow:
        return run.window

    def _start(self, run: Run) -> Instant:
        return run.end - self._runs.spec.grid.interval

    def _boundary(self, instant: Instant) -> Instant:
        return self._runs.spec.grid.floor(instant)

    def _end_of(self, info: DagRunInfo | None) -> Instant | None:
        """The end of the partition that a run wrote; on a changed grid, the newest boundary by then (C22)."""
        if info is None or info.partition_date is None:
            return None
        grid = self._runs.spec.grid
        return grid.floor(from_datetime(info.partition_date) + grid.interval)
