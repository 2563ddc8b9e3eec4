"""What tests of the timetable share."""

from __future__ import annotations

from collections.abc import Iterable

from airflow.timetables.base import DagRunInfo, TimeRestriction
from hypothesis import HealthCheck, settings

from airflow_chronon.core.calendar.instants import HOUR

ANY_TIME = TimeRestriction(None, None, True)
KEPT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
THREE_HOURLY = ("15 1-22/3 * * *", 3 * HOUR, HOUR)


def labels(infos: Iterable[DagRunInfo]) -> list[str | None]:
    return [info.partition_key for info in infos]
