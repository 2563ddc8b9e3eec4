"""The Airflow plugin: registers the timetables, so that serialised DAGs find them, the notes of manual runs, and what the scheduler
passes over."""

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


def _listeners() -> list[Any]:
    """What notes on manual runs what they are for, and what spares the scheduler runs that only wait; nothing on an Airflow that
    is too old."""
    try:
        from airflow_chronon.airflow import run_notes, waiting_runs
    except AirflowTooOld:
        return []  # said by the timetables
    return [run_notes, waiting_runs]


class ChrononPlugin(AirflowPlugin):
    """``airflow plugins`` lists it as ``chronon``."""

    name = "chronon"
    timetables = _timetables()
    listeners = _listeners()
