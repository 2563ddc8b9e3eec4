"""The Airflow plugin: registers the timetables, so that serialised DAGs find them, the notes of runs, what the scheduler passes
over, and the page of partitions."""

from __future__ import annotations

import logging
import sys
from typing import Any
from urllib.parse import urlsplit

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


def _is_api_server() -> bool:
    """Whether this process serves pages. The parts that do cost a second to import, and every process loads plugins."""
    return "api-server" in sys.argv[1:2]


def _fastapi_apps() -> list[Any]:
    """The routes of the page of partitions."""
    if not _is_api_server():
        return []
    from airflow_chronon.web.routes import build_app

    return [{"app": build_app(), "url_prefix": "/chronon", "name": "chronon"}]


def _react_apps() -> list[Any]:
    """The page itself, in the navigation and beside each DAG. Two entries of one address would load as one."""
    if not _is_api_server():
        return []
    from airflow.configuration import conf

    from airflow_chronon import __version__

    base = urlsplit(conf.get("api", "base_url", fallback="/") or "/").path.rstrip("/")
    static = f"{base}/chronon/static"
    common = {"icon": f"{static}/icon.svg", "icon_dark_mode": f"{static}/icon-dark.svg"}
    return [
        {
            "name": "Chronon",
            "bundle_url": f"{static}/page.js?v={__version__}&at=nav",
            "destination": "nav",
            "category": "browse",
            "url_route": "chronon",
            **common,
        },
        {
            "name": "Partitions",
            "bundle_url": f"{static}/page.js?v={__version__}&at=dag",
            "destination": "dag",
            "url_route": "chronon-partitions",
            "applies_to": {"dag.tags.name": ["chronon"]},  # from Airflow 3.4 on
            **common,
        },
    ]


class ChrononPlugin(AirflowPlugin):
    """``airflow plugins`` lists it as ``chronon``."""

    name = "chronon"
    timetables = _timetables()
    listeners = _listeners()
    fastapi_apps = _fastapi_apps()
    react_apps = _react_apps()
