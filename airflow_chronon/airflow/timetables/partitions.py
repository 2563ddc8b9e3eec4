"""The timetable of confs: runs on a partition grid. The partition key is the label, the partition date its start."""

from __future__ import annotations

from typing import Any

from airflow.timetables.base import DagRunInfo, Timetable

from airflow_chronon.airflow.timetables.keyed import KeyedTimetable
from airflow_chronon.core.calendar.instants import Instant, from_datetime
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule, Run
from airflow_chronon.core.schedules.serialization import schedule_from_json, schedule_to_json


class PartitionTimetable(KeyedTimetable[Run]):
    """Runs of one conf version on its partition grid (C8 to C10, C29, H8 to H12)."""

    def __init__(self, schedule: PartitionedSchedule) -> None:
        crons = dict.fromkeys(of.schedule.text for of in schedule.modes.values())
        super().__init__(schedule, summary=" | ".join(crons) or "@never")
        self._runs = schedule
        self.description = f"{self._summary} over partitions of {schedule.spec.grid}"

    def serialize(self) -> dict[str, Any]:
        return schedule_to_json(self._runs)

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(schedule_from_json(data))

    def _end_of(self, info: DagRunInfo | None) -> Instant | None:
        """The end of the partition that a run wrote; on a changed grid, the newest boundary by then (C22)."""
        if info is None or info.partition_date is None:
            return None
        return self._runs.floor(self._runs.end_of(from_datetime(info.partition_date)))
