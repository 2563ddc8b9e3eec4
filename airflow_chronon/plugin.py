"""The Airflow plugin: registers the timetables, so that serialised DAGs find it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from airflow_chronon.airflow.timetables.intervals import JobTimetable
from airflow_chronon.airflow.timetables.partitions import PartitionTimetable


class ChrononPlugin(AirflowPlugin):
    """``airflow plugins`` lists it as ``chronon``."""

    name = "chronon"
    timetables = [PartitionTimetable, JobTimetable]
