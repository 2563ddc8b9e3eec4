"""A listener: when a manual run starts, its note says which partitions or window it is for (C27, H7).

Airflow does not tell the timetable what was asked for when it makes the id of a manual run, and a task may not write notes. The
scheduler may: it calls this within its own transaction, so nothing here commits, flushes, or can clash with a note that someone
writes at that moment.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl
from airflow.utils.types import DagRunType

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.operators.run_request import request_of_context
from airflow_chronon.airflow.timetables.keyed import KeyedTimetable
from airflow_chronon.core.bounds import MAX_NOTE
from airflow_chronon.core.describe.format import request_note

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:
    """Called by the scheduler for every run of every DAG that starts."""
    timetable = getattr(getattr(dag_run, "dag", None), "timetable", None)
    if dag_run.run_type == DagRunType.MANUAL and isinstance(timetable, KeyedTimetable):
        _note(dag_run, note_of(dag_run, timetable))


def note_of(dag_run: DagRun, timetable: KeyedTimetable[Any]) -> str:
    """What a manual run is for, in words; why it will fail, where nobody can tell."""
    request = request_of_context({"dag_run": dag_run, "params": dag_run.conf or {}})
    return request_note(request, timetable.runs, now=now())


def _note(dag_run: DagRun, text: str) -> None:
    """Give the run a note, unless it has one."""
    from airflow.models.dagrun import DagRunNote
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None:
        return
    dialect = session.get_bind().dialect.name
    insert = import_module(f"sqlalchemy.dialects.{dialect}").insert(DagRunNote.__table__)
    row = insert.values(dag_run_id=dag_run.id, content=text[:MAX_NOTE])
    session.execute(row.prefix_with("IGNORE") if dialect == "mysql" else row.on_conflict_do_nothing())
