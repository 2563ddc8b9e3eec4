"""A listener that writes the notes of runs: which partitions or window a manual run is for (C27, H7), and why a run of which
every task was skipped is green all the same (C30).

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
from airflow_chronon.core.runs.task_ids import LAST_TASK, WAIT_PREFIX

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session

#: How the note of a skipped run begins; one that starts again loses it.
SKIPPED = "Skipped: "


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:
    """Called by the scheduler for every run of every DAG that starts."""
    timetable = _timetable(dag_run)
    if timetable is None:
        return
    _forget_skip(dag_run)
    if dag_run.run_type == DagRunType.MANUAL:
        _note(dag_run, note_of(dag_run, timetable))


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:
    """Called by the scheduler for every run of every DAG that ended well, one with nothing but skipped tasks included."""
    if _timetable(dag_run) is not None and (reasons := _reasons_of_skip(dag_run)):
        _note(dag_run, SKIPPED + "; ".join(reasons))


def _timetable(dag_run: DagRun) -> KeyedTimetable[Any] | None:
    found = getattr(getattr(dag_run, "dag", None), "timetable", None)
    return found if isinstance(found, KeyedTimetable) else None


def note_of(dag_run: DagRun, timetable: KeyedTimetable[Any]) -> str:
    """What a manual run is for, in words; why it will fail, where nobody can tell."""
    request = request_of_context({"dag_run": dag_run, "params": dag_run.conf or {}})
    return request_note(request, timetable.runs, now=now())


def _note(dag_run: DagRun, text: str) -> None:
    """Give the run a note, unless it has one."""
    from airflow.models.dagrun import DagRunNote

    session = _session(dag_run)
    if session is None:
        return
    dialect = session.get_bind().dialect.name
    insert = import_module(f"sqlalchemy.dialects.{dialect}").insert(DagRunNote.__table__)
    row = insert.values(dag_run_id=dag_run.id, content=text[:MAX_NOTE])
    session.execute(row.prefix_with("IGNORE") if dialect == "mysql" else row.on_conflict_do_nothing())


def _forget_skip(dag_run: DagRun) -> None:
    """Take away what an earlier try of the run said of its skip."""
    from airflow.models.dagrun import DagRunNote
    from sqlalchemy import delete

    session, table = _session(dag_run), DagRunNote.__table__
    if session is not None:
        session.execute(delete(table).where(table.c.dag_run_id == dag_run.id, table.c.content.startswith(SKIPPED)))


def _reasons_of_skip(dag_run: DagRun) -> list[str]:
    """What the waits said that skipped a run whose last task was skipped too; empty for a run that landed something."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from sqlalchemy import and_, select

    session = _session(dag_run)
    if session is None:
        return []
    run = (TaskInstance.dag_id == dag_run.dag_id, TaskInstance.run_id == dag_run.run_id)
    if session.scalar(select(TaskInstance.state).where(*run, TaskInstance.task_id == LAST_TASK)) != "skipped":
        return []
    same_task = and_(
        *(getattr(XComModel, name) == getattr(TaskInstance, name) for name in ("dag_id", "run_id", "task_id"))
    )
    said = (
        select(XComModel.value)
        .join(TaskInstance, same_task)
        .where(*run, TaskInstance.state == "skipped", TaskInstance.task_id.startswith(WAIT_PREFIX))
        .where(XComModel.key == "return_value")
        .order_by(TaskInstance.task_id)
    )
    return list(dict.fromkeys(str(XComModel.deserialize_value(row)) for row in session.execute(said)))


def _session(dag_run: DagRun) -> Session | None:
    """The scheduler's session, and with it its transaction."""
    from sqlalchemy.orm import object_session

    return object_session(dag_run)
