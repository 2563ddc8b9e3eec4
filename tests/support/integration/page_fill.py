"""Fills Airflow's database with what the page of partitions reads: DAGs, runs, and a snapshot of confs and tables.

It runs by itself, in the environment of the Airflow to fill: ``python -m tests.support.integration.page_fill FOLDER``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow.models.asset import AssetModel
from airflow.models.asset_state_store import AssetStateStoreModel
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from sqlalchemy.orm import Session

from airflow_chronon.core.calendar.instants import DAY, HOUR, to_datetime
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.overview.snapshot import SNAPSHOT_ASSET, ConfSnapshot, snapshot_of
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.dags import build_dags
from tests.support.confs import dependency, judge, staging_query

BUNDLE = "dags-folder"
ORDERS, REACH, RANK = (f"staging_query.{name}" for name in ("checkout.orders__1", "growth.reach__1", "search.rank__1"))
FOREIGN = "plain"
DAYS = 40  #: of partitions that have landed
GAP = 5  #: hours in a row of ORDERS that never ran, from ten o'clock two days ago on


def gap_of(now: int) -> range:
    """Where the partitions of the gap start."""
    first = now // DAY * DAY - 2 * DAY + 10 * HOUR
    return range(first, first + GAP * HOUR, HOUR)


def failed_of(now: int) -> int:
    """Where the partition starts whose run failed."""
    return now // DAY * DAY - 3 * DAY + 5 * HOUR


def retried_of(now: int) -> int:
    """Where another one starts whose run failed, which a test runs again."""
    return failed_of(now) - DAY


def documents() -> list[dict[str, Any]]:
    return [
        staging_query("checkout.orders__1", schedule="5 * * * *", interval="1h"),
        staging_query(
            "growth.reach__1",
            schedule="10 * * * *",
            interval="1h",
            dependencies=[dependency("ns.checkout_orders__1", interval="1h")],
        ),
        staging_query("search.rank__1", schedule="@daily"),
    ]


def snapshots(plans: Iterable[ConfPlan], *, now: int) -> list[ConfSnapshot]:
    """The tables of the plans as a survey saw them a minute ago."""
    found = []
    for plan in plans:
        grid = plan.schedule.grid
        end = grid.floor(now)
        lacking = {*gap_of(now), failed_of(now), retried_of(now)} if plan.dag_id == ORDERS else set()
        starts = (start for start in range(end - DAYS * DAY, end, grid.interval) if start not in lacking)
        landed = StartRanges.of_starts(starts, interval=grid.interval)
        found.append(replace(snapshot_of(plan), seen=now - 60, landed=landed))
    return found


def fill(folder: Path, *, now: int) -> None:
    verdicts = judge(*documents())
    plans = [verdict for verdict in verdicts.values() if isinstance(verdict, ConfPlan)]
    assert len(plans) == len(verdicts), verdicts
    for document in documents():
        team, _, rest = document["metaData"]["name"].partition(".")
        path = folder / "compiled" / "staging_queries" / team / rest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    dags = {**build_dags(conf_root=folder), FOREIGN: DAG(FOREIGN, schedule="@daily")}
    with create_session() as session:
        session.merge(DagBundleModel(name=BUNDLE))
        session.flush()
        for dag in dags.values():
            write_dag(session, dag)
        write_runs(session, plans, now=now)
        asset = AssetModel(name=SNAPSHOT_ASSET, uri=SNAPSHOT_ASSET, group="chronon-internal", extra={})
        session.add(asset)
        session.flush()
        text = json.dumps({each.dag_id: each.to_json() for each in snapshots(plans, now=now)})
        session.add(AssetStateStoreModel(asset_id=asset.id, key=f"{BUNDLE}/main", value=json.dumps(text)))


def write_dag(session: Session, dag: DAG) -> None:
    session.merge(
        DagModel(
            dag_id=dag.dag_id,
            bundle_name=BUNDLE,
            is_paused=False,
            is_stale=False,
            fileloc="/x.py",
            relative_fileloc="x.py",
            timetable_summary="",
        )
    )
    session.flush()
    data = DagSerialization.to_dict(dag)
    SerializedDagModel.write_dag(LazyDeserializedDAG(data=data), bundle_name=BUNDLE, session=session)
    session.flush()


def write_runs(session: Session, plans: Iterable[ConfPlan], *, now: int) -> None:
    """The runs of the last ten days."""
    for plan in plans:
        grid = plan.schedule.grid
        end = grid.floor(now)
        for start in range(end - 10 * DAY // grid.interval * grid.interval, end, grid.interval):
            if plan.dag_id == ORDERS and start in gap_of(now):
                continue
            has_failed = plan.dag_id == ORDERS and start in (failed_of(now), retried_of(now))
            after, label = to_datetime(start + grid.interval), plan.schedule.label(start)
            session.add(
                DagRun(
                    dag_id=plan.dag_id,
                    run_id=f"scheduled__{label}",
                    run_type="scheduled",
                    state=DagRunState.FAILED if has_failed else DagRunState.SUCCESS,
                    partition_key=label,
                    partition_date=to_datetime(start),
                    run_after=after,
                    start_date=after,
                )
            )


if __name__ == "__main__":
    fill(Path(sys.argv[1]), now=int(time.time()))
