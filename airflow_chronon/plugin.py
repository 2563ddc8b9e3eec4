"""The Airflow plugin: registers the timetable, so that serialised DAGs find it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from airflow_chronon.airflow.timetable import PartitionTimetable


class ChrononPlugin(AirflowPlugin):
    """``airflow plugins`` lists it as ``chronon``."""

    name = "chronon"
    timetables = [PartitionTimetable]
