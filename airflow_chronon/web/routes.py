"""The routes of the page: they answer with what the user may read, and change nothing."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.staticfiles import StaticFiles
from sqlalchemy.orm import Session

from airflow_chronon.airflow.clock import now
from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow
from airflow_chronon.core.overview.answers import (
    MOST_CELLS,
    LiveDag,
    Zoom,
    neighbour,
    overview,
    partition_of,
    timeline_of,
)
from airflow_chronon.core.overview.snapshot import ConfSnapshot
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.web.database import live_dags, read_snapshots

NOTHING_SEEN = (
    "No table has been looked at yet: the task survey of the DAG chronon_reconciler does it, every five minutes."
    " Is that DAG there, and not paused?"
)
_MOST_DAYS = 400
_ROWS_LAST = 15  #: seconds; a page asks every 30
_DAYS_KEPT = 4  #: how many spans of days the list is kept for: people look at different ones
_LAMP_DAYS = 35  #: that a lamp tells about, as in the list of all confs
_MOST_SECONDS = 200 * 366 * DAY


def readable(user: GetUserDep) -> set[str]:
    """The DAGs that the user may read."""
    return get_auth_manager().get_authorized_dag_ids(user=user, method="GET")


Readable = Annotated[set[str], Depends(readable)]
Instants = Annotated[int, Query(ge=0, le=_MOST_SECONDS)]
OF_DAG = [Depends(requires_access_dag("GET", DagAccessEntity.RUN))]


def build_app() -> FastAPI:
    """The app that Airflow mounts at ``/chronon``. Its schema is not published; what lies under ``/static`` is open to all."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=2000)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    app.add_api_route("/confs.json", confs, methods=["GET"])
    app.add_api_route("/dags/{dag_id}/partitions.json", partitions, methods=["GET"], dependencies=OF_DAG)
    app.add_api_route("/dags/{dag_id}/partition.json", partition, methods=["GET"], dependencies=OF_DAG)
    return app


def confs(
    session: SessionDep, allowed: Readable, days: Annotated[int, Query(ge=1, le=_MOST_DAYS)] = 35
) -> dict[str, Any]:
    """All confs at a glance."""
    at, rows = _ROWS.read(session, days=days, now=now())
    found = [row for row in rows if row["dag_id"] in allowed]
    return {
        "at": at,
        "seen": min((row["seen"] for row in found if row["seen"] is not None), default=None),
        "from": _first_day(at, days),
        "days": days,
        "confs": found,
        "problem": "" if found else NOTHING_SEEN,
    }


def _first_day(at: Instant, days: int) -> Instant:
    return at // DAY * DAY - (days - 1) * DAY


class _Rows:
    """The rows of all confs, worked out once in a while for everybody: people differ only in which of them they may see."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[int, tuple[Instant, list[dict[str, Any]]]] = {}  #: by days, of a few that were asked last

    def read(self, session: Session, *, days: int, now: Instant) -> tuple[Instant, list[dict[str, Any]]]:
        """The rows over so many days, and when they were worked out. Whoever asks meanwhile waits, and works nothing out."""
        with self._lock:
            at, rows = self._kept.get(days, (-_ROWS_LAST, []))
            if not 0 <= now - at < _ROWS_LAST:
                found = read_snapshots(session, allowed=None)
                live = live_dags(session, found, TimeWindow(_first_day(now, days), now + DAY), now=now)
                at, rows = now, overview(found, lambda conf: live[conf.dag_id], days=days, now=now)
                self._kept.pop(days, None)
                self._kept = dict([*self._kept.items(), (days, (at, rows))][-_DAYS_KEPT:])
            return at, rows


_ROWS = _Rows()


def partitions(
    dag_id: str,
    session: SessionDep,
    allowed: Readable,
    start: Annotated[int, Query(alias="from", ge=0, le=_MOST_SECONDS)],
    end: Annotated[int, Query(alias="to", ge=0, le=_MOST_SECONDS)],
    zoom: Zoom = Zoom.PARTITION,
) -> dict[str, Any]:
    """One conf over time."""
    at, found = now(), {conf.dag_id: conf for conf in read_snapshots(session, allowed=allowed)}
    conf = _need(found, dag_id)
    if end <= start:
        raise HTTPException(422, "to is not after from")
    if (end - start) // conf.schedule.grid.interval > MOST_CELLS:
        raise HTTPException(422, f"that is more than {MOST_CELLS} partitions: ask for a shorter range")
    window = TimeWindow(start, end)
    live = live_dags(session, (conf,), window, now=at)[dag_id]
    producers = [found[each] for writers in conf.writers.values() for each in writers if each in found]
    consumers = [each for each in found.values() if any(dag_id in writers for writers in each.writers.values())]
    recent = TimeWindow(at // DAY * DAY - (_LAMP_DAYS - 1) * DAY, at // DAY * DAY + DAY)
    around = live_dags(session, (*producers, *consumers), recent, now=at)
    return {
        "at": at,
        **timeline_of(conf, live, window, zoom, now=at),
        "producers": [neighbour(each, around[each.dag_id], recent, now=at) for each in producers],
        "consumers": [neighbour(each, around[each.dag_id], recent, now=at) for each in consumers],
    }


def partition(dag_id: str, session: SessionDep, allowed: Readable, start: Instants) -> dict[str, Any]:
    """One partition."""
    at, found = now(), {conf.dag_id: conf for conf in read_snapshots(session, allowed=allowed)}
    conf = _need(found, dag_id)
    grid: PartitionGrid = conf.schedule.grid
    if not grid.is_boundary(start):
        raise HTTPException(422, f"no partition starts at {start}")
    window = TimeWindow(start, start + grid.interval)
    live: LiveDag = live_dags(session, (conf,), window, now=at)[dag_id]
    return {"at": at, **partition_of(conf, live, start, found, now=at)}


def _need(found: dict[str, ConfSnapshot], dag_id: str) -> ConfSnapshot:
    if dag_id not in found:
        raise HTTPException(404, "this DAG is none of a Chronon conf, or no survey has seen it yet")
    return found[dag_id]
