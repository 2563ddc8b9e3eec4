"""A schedule revision: a schedule and since when it holds, by which past intervals are explained (H20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_chronon.core.calendar.instants import Instant, to_datetime
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.schedules.serialization import any_schedule_from_json, any_schedule_to_json


@dataclass(frozen=True)
class ScheduleRevision:
    """The schedule-relevant settings of a conf or job, and since when they hold: until the ``since`` of the next revision."""

    since: Instant
    #: Grid, modes and catch-up policy; without modes nothing fires.
    schedule: PartitionedSchedule | IntervalSchedule | None
    enabled: bool = True  #: ``enabled`` of the settings: tells a schedule that was switched off from a conf without one
    is_paused: bool = False  #: a job that was paused by hand (H14)
    is_broken: bool = False  #: it is off because its conf was bad, not because someone meant it (C23)

    @property
    def fires(self) -> bool:
        """Whether anything fires by itself."""
        return self.enabled and not self.is_paused and self.schedule is not None and self.schedule.is_on

    def is_like(self, other: ScheduleRevision) -> bool:
        """Whether the two differ in nothing but when they began."""
        return replace(self, since=other.since) == other

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        flags = {"enabled": self.enabled, "is_paused": self.is_paused, "is_broken": self.is_broken}
        return {"since": self.since, "schedule": any_schedule_to_json(self.schedule), **flags}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ScheduleRevision:
        return cls(
            instant_from_json(data["since"]),
            any_schedule_from_json(data.get("schedule")),
            bool(data.get("enabled", True)),
            bool(data.get("is_paused", False)),
            bool(data.get("is_broken", False)),
        )


def instant_from_json(value: Any) -> Instant:
    """The value itself. Raises TypeError, ValueError or OverflowError when it is not an instant of the calendar."""
    if type(value) is not int:
        raise TypeError(f"{value!r} is not an instant")
    to_datetime(value)
    return value
