"""What Airflow's database knows of a DAG's earlier runs, for timetables inside the scheduler.

Rows that are in no session, as in a test or a dry run, have no history.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.utils.types import DagRunType

from airflow_chronon.airflow.clock import moment

if TYPE_CHECKING:
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session


def newest_scheduled(row: DagRun | DagModel) -> DagRun | None:
    """The scheduled run with the newest partition of a row's DAG."""
    from airflow.models.dagrun import DagRun as Model
    from sqlalchemy import select

    session = _session_of(row)
    if session is None:
        return None
    newest = (
        select(Model)
        .where(
            Model.dag_id == row.dag_id,
            Model.run_type == DagRunType.SCHEDULED,
            Model.partition_date.is_not(None),
        )
        .order_by(Model.partition_date.desc())
        .limit(1)
    )
    return session.scalar(newest)


def holds_logical_date(dag_model: DagModel, logical_date: datetime) -> bool:
    """Whether a run of the DAG, of whatever kind, has this logical date already: Airflow allows each once."""
    from airflow.models.dagrun import DagRun as Model
    from sqlalchemy import select

    session = _session_of(dag_model)
    if session is None:
        return False
    found = select(Model.id).where(Model.dag_id == dag_model.dag_id, Model.logical_date == logical_date).limit(1)
    return session.scalar(found) is not None


def was_only_waiting(fire: datetime, dag_model: DagModel, last: DagRun) -> bool:
    """Whether the fire that follows the run ``last`` was not missed, but only had to wait for its turn (H10, H12).

    It was due already when ``last`` was created, so the two belong to one backlog; or the DAG had as many unfinished
    runs as it may when it came due. Replays do not count, since Airflow counts them apart.
    """
    from airflow.models.dagrun import DagRun as Model
    from sqlalchemy import func, or_, select

    if last.created_at is not None and fire <= last.created_at:
        return True
    session, limit = _session_of(dag_model), dag_model.max_active_runs
    if session is None or not limit:
        return False
    unfinished_then = select(func.count()).where(
        Model.dag_id == dag_model.dag_id,
        Model.run_type != DagRunType.BACKFILL_JOB,
        Model.created_at <= fire,
        or_(Model.end_date.is_(None), Model.end_date > fire),
    )
    return (session.scalar(unfinished_then) or 0) >= limit


def held_until(dag_run: DagRun, *, since: datetime) -> datetime | None:
    """Until when the DAG of a run was paused by hand, if that was after ``since``: now, while it still is (H14).

    By Airflow's audit log, which has every pause by the UI, the API and the command line for one DAG; those of many DAGs
    by a pattern are not recorded by DAG there. An unpausing of a DAG that was not paused, as by a script, ends no pause.
    """
    from airflow.models.dag import DagModel as Model
    from airflow.models.log import Log
    from sqlalchemy import func, or_, select

    session = _session_of(dag_run)
    if session is None:
        return None
    model = session.get(Model, dag_run.dag_id)
    if model is not None and model.is_paused:
        return datetime.fromtimestamp(moment(), UTC)
    # few rows of the log are of these events, which have an index; of one DAG there may be millions
    pausing, unpausing = (
        (
            Log.event.in_(("patch_dag", command)),
            Log.dag_id == dag_run.dag_id,
            or_(Log.event == command, Log.extra.contains(f'"is_paused": {value}')),
        )
        for command, value in (("cli_dag_pause", "true"), ("cli_dag_unpause", "false"))
    )
    newest = select(func.max(Log.dttm)).where(*pausing).scalar_subquery()
    ended = session.scalar(select(func.min(Log.dttm)).where(*unpausing, Log.dttm > newest))
    return ended if ended is not None and ended > since else None


def _session_of(row: Any) -> Session | None:
    from sqlalchemy.orm import object_session

    return object_session(row)
