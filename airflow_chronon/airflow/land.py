"""Saying of partitions that they are there, from a task of any DAG."""

from __future__ import annotations

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.airflow_api.landings import say
from airflow_chronon.airflow_api.login import EDITORS, no_connection
from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.waits.said import Said, Word


def land(table: str, *labels: str, never: bool = False, by: str = "") -> None:
    """Say that partitions of a table are there whatever a catalog shows, or with ``never`` that they never will be.

    Waits on them end at their next poll; of those that are there, the table's asset gets an event for each. It goes through the
    connection ``chronon_reconciler`` or ``chronon_airflow``, whose user must be able to edit assets. Raises ``ChrononError``.
    """
    server = find_airflow(*EDITORS)
    if server is None:
        raise no_connection("http://127.0.0.1:8080")
    say(server, table, labels, Word(Said.NEVER if never else Said.LANDED, iso(now()), by or "a task"))
