"""The Airflow plugin: registers the timetables, so that serialised DAGs find it."""

from __future__ import annotations

import logging
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_chronon.errors import AirflowTooOld


def _timetables() -> list[Any]:
    """The timetables; none on an Airflow that is too old, which has to start all the same."""
    try:
        from airflow_chronon.airflow.timetables.intervals import JobTimetable
        from airflow_chronon.airflow.timetables.partitions import PartitionTimetable
    except AirflowTooOld as error:
        logging.getLogger(__name__).error("%s", error)
        return []
    return [PartitionTimetable, JobTimetable]


class ChrononPlugin(AirflowPlugin):
    """``airflow plugins`` lists it as ``chronon``."""

    name = "chronon"
    timetables = _timetables()
