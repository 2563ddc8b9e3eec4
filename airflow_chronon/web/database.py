"""What the page reads of Airflow's database: snapshots, DAGs and runs. Nothing is written, nothing is listed elsewhere."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice
from typing import Any, TypeVar

from airflow.models.asset import AssetModel
from airflow.models.asset_state_store import AssetStateStoreModel
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from sqlalchemy import ColumnElement, Row, func, or_, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from airflow_chronon.airflow_api.coverage import known_runs
from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow, from_datetime, to_datetime
from airflow_chronon.core.overview.answers import LiveDag
from airflow_chronon.core.overview.snapshot import SNAPSHOT_ASSET, ConfSnapshot, snapshots_of
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.skip_reasons import Reason, Skip
from airflow_chronon.core.runs.task_ids import LAST_TASK
from airflow_chronon.core.waits.max_lag import LAGGING_KEY, Lagging, lagging_from_json

_RUN = (
    DagRun.dag_id,
    DagRun.run_id,
    DagRun.run_type,
    DagRun.state,
    DagRun.partition_key,
    DagRun.partition_date,
    DagRun.data_interval_start,
    DagRun.data_interval_end,
    DagRun.start_date,
    DagRun.run_after,
)


_Item = TypeVar("_Item")

_LONGEST = 366 * DAY  #: a run is named by its newest partition, and its oldest may be so much older
_MOST_DATES = 50  #: of one conf that are asked about one by one
_CHUNK = 400  #: DAGs or partitions that are named in one query


def read_snapshots(session: Session, *, allowed: Collection[str] | None) -> list[ConfSnapshot]:
    """The confs of all deployments whose DAGs somebody may read, by DAG id; None: all."""
    kept = select(AssetStateStoreModel.value).join(AssetModel, AssetModel.id == AssetStateStoreModel.asset_id)
    found: dict[str, ConfSnapshot] = {}
    for text in session.scalars(kept.where(AssetModel.uri == SNAPSHOT_ASSET).order_by(AssetStateStoreModel.key)):
        found |= {each.dag_id: each for each in _parsed(text) if allowed is None or each.dag_id in allowed}
    return [found[dag_id] for dag_id in sorted(found)]


@lru_cache(maxsize=8)
def _parsed(text: str) -> tuple[ConfSnapshot, ...]:
    """Unchanged text is parsed once."""
    return tuple(snapshots_of(json.loads(text)))


def live_dags(
    session: Session, confs: Iterable[ConfSnapshot], window: TimeWindow, *, now: Instant
) -> Mapping[str, LiveDag]:
    """What Airflow knows of the DAGs of some confs about partitions that start in a window."""
    by_id = {conf.dag_id: conf for conf in confs}
    halted = _halted(session, by_id)
    runs = _telling_runs(session, by_id, window, now=now)
    ended = [(run.dag_id, run.run_id) for found in runs.values() for run in found if run.state == "success"]
    skipped, newest = _skipped(session, ended), _newest_scheduled(session, by_id)
    lagging = _lagging(session, by_id, window)
    for (dag_id, _), (record, _) in lagging.items():
        runs[dag_id].append(record)
    dags = {}
    for dag_id, conf in by_id.items():
        records = {run.run_id: run for run in (*runs.get(dag_id, ()), *newest.get(dag_id, ()))}
        known = known_runs(records.values(), conf.schedule, now=now)
        known = [replace(run, was_skipped=True) if (dag_id, run.run_id) in skipped else run for run in known]
        known = [
            replace(run, lagging=lagging[dag_id, run.run_id][1]) if (dag_id, run.run_id) in lagging else run
            for run in known
        ]
        dags[dag_id] = LiveDag(known, halted.get(dag_id))
    return dags


def _halted(session: Session, dag_ids: Collection[str]) -> dict[str, Reason]:
    asked = select(DagModel.dag_id, DagModel.is_paused, DagModel.is_stale).where(*_named(DagModel.dag_id, dag_ids))
    rows = session.execute(asked)
    states = {dag_id: (is_paused, is_stale) for dag_id, is_paused, is_stale in rows if dag_id in dag_ids}
    found = {}
    for dag_id in dag_ids:
        is_paused, is_stale = states.get(dag_id, (False, True))
        if is_stale:
            found[dag_id] = Reason(Skip.NO_DAG, "no loader file produces it now")
        elif is_paused:
            found[dag_id] = Reason(Skip.PAUSED, "in Airflow, now")
    return found


def _telling_runs(
    session: Session, confs: Mapping[str, ConfSnapshot], window: TimeWindow, *, now: Instant
) -> dict[str, list[RunRecord]]:
    """The runs by DAG that say more than that their partition has landed: of tens of thousands, few.

    Those are the ones that did not end well, and of those that did the ones for partitions that have not landed, or that have
    another run.
    """
    dated = DagRun.partition_date.between(to_datetime(window.start), to_datetime(window.end + _LONGEST))
    by_hand = DagRun.partition_key.is_(None) & (DagRun.run_after >= to_datetime(window.start))
    found = _records(session, confs, or_(dated, by_hand), or_(DagRun.state != "success", by_hand))
    whole, single = [], list[tuple[str, Instant]]()
    for dag_id, conf in confs.items():
        dates = {run.partition_date for run in found.get(dag_id, ()) if run.partition_date is not None}
        dates |= set(_gaps(conf, window, now))
        if conf.schedule.grid.interval == DAY or len(dates) > _MOST_DATES:  # a run of a day may cover many (C9)
            whole.append(dag_id)
        else:
            single += [(dag_id, date) for date in dates]
    ended = [DagRun.state == "success", dated]
    for chunk in _batched(whole):
        _add(found, _records(session, confs, *ended, DagRun.dag_id.in_(chunk)))
    for pairs in _batched(single):
        named = tuple_(DagRun.dag_id, DagRun.partition_date).in_(
            [(dag_id, to_datetime(date)) for dag_id, date in pairs]
        )
        _add(found, _records(session, confs, *ended, named))
    return found


def _gaps(conf: ConfSnapshot, window: TimeWindow, now: Instant) -> Iterator[Instant]:
    """The closed partitions of a window that have not landed, some more than are looked for one by one at most."""
    grid, landed = conf.schedule.grid, conf.landed or StartRanges(conf.schedule.grid.interval)
    at, end = grid.ceil(window.start), min(window.end, grid.floor(now))
    gaps = []
    for part in (*landed.within(at, end), range(end, end)):
        gaps.append(range(at, part.start, grid.interval))
        at = part.stop
    return islice(chain.from_iterable(gaps), _MOST_DATES + 1)


def _records(session: Session, dag_ids: Collection[str], *where: ColumnElement[bool]) -> dict[str, list[RunRecord]]:
    query = select(*_RUN).where(*where, *_named(DagRun.dag_id, dag_ids))
    found: dict[str, list[RunRecord]] = defaultdict(list)
    for row in session.execute(query):
        if row.dag_id in dag_ids:
            found[row.dag_id].append(_record(row))
    return found


def _named(column: InstrumentedAttribute[str], dag_ids: Collection[str]) -> list[ColumnElement[bool]]:
    """That a DAG is one of these; of many, it is cheaper to read all and to look afterwards."""
    return [column.in_(dag_ids)] if len(dag_ids) <= _CHUNK else []


def _batched(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    yield from (items[at : at + _CHUNK] for at in range(0, len(items), _CHUNK))


def _add(found: dict[str, list[RunRecord]], more: Mapping[str, list[RunRecord]]) -> None:
    for dag_id, runs in more.items():
        found[dag_id] += runs


def _newest_scheduled(session: Session, dag_ids: Collection[str]) -> dict[str, list[RunRecord]]:
    newest = (
        select(DagRun.dag_id, func.max(DagRun.partition_date).label("date"))
        .where(DagRun.run_type == "scheduled", *_named(DagRun.dag_id, dag_ids))
        .group_by(DagRun.dag_id)
        .subquery()
    )
    of = (DagRun.dag_id == newest.c.dag_id) & (DagRun.partition_date == newest.c.date)
    found: dict[str, list[RunRecord]] = defaultdict(list)
    for row in session.execute(select(*_RUN).join(newest, of).where(DagRun.run_type == "scheduled")):
        if row.dag_id in dag_ids:
            found[row.dag_id].append(_record(row))
    return found


def _lagging(
    session: Session, confs: Mapping[str, ConfSnapshot], window: TimeWindow
) -> dict[tuple[str, str], tuple[RunRecord, tuple[Lagging, ...]]]:
    """The runs about a window that went without partitions of what they read (``max_lag``), by DAG and run."""
    dag_ids = {dag_id for dag_id, conf in confs.items() if any(each.max_lag is not None for each in conf.reads)}
    if not dag_ids:
        return {}
    query = (
        select(*_RUN, XComModel.value)
        .join(XComModel, (XComModel.dag_id == DagRun.dag_id) & (XComModel.run_id == DagRun.run_id))
        .where(XComModel.key == LAGGING_KEY, *_named(DagRun.dag_id, dag_ids))
        .where(
            DagRun.partition_date.between(to_datetime(window.start), to_datetime(window.end + _LONGEST))
            | (DagRun.partition_key.is_(None) & (DagRun.run_after >= to_datetime(window.start)))
        )
    )
    found: dict[tuple[str, str], tuple[RunRecord, tuple[Lagging, ...]]] = {}
    for row in session.execute(query):
        if row.dag_id in dag_ids:
            before = found.get((row.dag_id, row.run_id), (None, ()))[1]
            found[row.dag_id, row.run_id] = _record(row), (*before, *lagging_from_json(row.value))
    return found


def _skipped(session: Session, runs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the runs whose last task was skipped (C30)."""
    dag_ids = {dag_id for dag_id, _ in runs}
    if not dag_ids:
        return set()
    query = select(TaskInstance.dag_id, TaskInstance.run_id).where(
        TaskInstance.task_id == LAST_TASK, TaskInstance.state == "skipped", TaskInstance.dag_id.in_(dag_ids)
    )
    return {(dag_id, run_id) for dag_id, run_id in session.execute(query)} & set(runs)


def _record(row: Row[Any]) -> RunRecord:
    start, end = (
        None if each is None else from_datetime(each) for each in (row.data_interval_start, row.data_interval_end)
    )
    has_window = start is not None and end is not None and end > start
    return RunRecord(
        row.dag_id,
        row.run_id,
        str(getattr(row.run_type, "value", row.run_type)),
        str(getattr(row.state, "value", row.state)),
        row.partition_key,
        None if row.partition_date is None else from_datetime(row.partition_date),
        TimeWindow(start, end) if has_window and start is not None and end is not None else None,
        run_after=0 if row.run_after is None else from_datetime(row.run_after),
        start=None if row.start_date is None else from_datetime(row.start_date),
    )
