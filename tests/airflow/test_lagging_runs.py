"""What the page of partitions shows of a run that went without partitions of what it reads (C17, ``max_lag``)."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from sqlalchemy import insert

from airflow_chronon.core.calendar.instants import DAY, TimeWindow, to_datetime
from airflow_chronon.core.overview.answers import Zoom, partition_of, timeline_of
from airflow_chronon.core.overview.snapshot import ConfSnapshot, snapshot_of
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.waits.max_lag import LAGGING_KEY, Lagging
from airflow_chronon.web.database import live_dags
from tests.support.confs import at, events, group_by, plan_of

NOW = at("2026-06-04 12:00")
DAYS = [at(f"2026-06-0{day}") for day in (1, 2, 3)]
LAG = Lagging("data.events", "ds", PartitionKey("2026-06-01"), (PartitionKey("2026-06-02"),))


def conf() -> ConfSnapshot:
    settings = Settings.model_validate({"max_lag": {"partitions": 1, "after": "1h"}})
    plan = plan_of(group_by(sources=[events()], windows=["7d"], schedule="@daily"), settings=settings)
    return snapshot_of(plan).seen_at(StartRanges.of_starts(DAYS, interval=DAY), NOW)


def test_the_page_says_what_a_run_went_without(session: Any) -> None:
    found = conf()
    for start in DAYS:
        key = found.schedule.label(start)
        run = DagRun(
            dag_id=found.dag_id, run_id=f"scheduled__{key}", run_type="scheduled", state="success",
            run_after=to_datetime(start + DAY),
        )  # fmt: skip
        run.partition_key, run.partition_date = key, to_datetime(start)
        session.add(run)
        session.flush()
        if start == DAYS[1]:
            of = {"dag_id": found.dag_id, "run_id": run.run_id, "task_id": "wait.data.events", "map_index": -1}
            session.execute(
                insert(TaskInstance.__table__).values(
                    id=uuid4(), state="success", pool="p", pool_slots=1, queue="q", priority_weight=1, try_number=1,
                    max_tries=0, span_status="ended", custom_operator_name="", executor_config={}, **of,
                )
            )  # fmt: skip
            value = XComModel.serialize_value([LAG.to_json()])
            session.add(XComModel(dag_run_id=run.id, key=LAGGING_KEY, value=value, **of))
    session.flush()
    window = TimeWindow(DAYS[0], at("2026-06-05"))
    dag = live_dags(session, (found,), window, now=NOW)[found.dag_id]
    answer = timeline_of(found, dag, window, Zoom.PARTITION, now=NOW)
    assert answer["reasons"] == ["data.events was read up to ds=2026-06-01, 1 partition behind (max_lag)"]
    assert answer["spans"] == [["L", 1], ["L", 1, 0], ["L", 1], ["O", 1]]
    one = partition_of(found, dag, DAYS[1], {found.dag_id: found}, now=NOW)
    assert one["reason"] == answer["reasons"][0] and one["run_id"] == "scheduled__2026-06-02"
