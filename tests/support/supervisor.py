"""A triggerer's supervisor for tests: answers about runs as Airflow's own does, over a list of runs in memory.

It knows the questions whose answers a triggerer of Airflow 3.3 can read, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from airflow.sdk.execution_time.comms import GetAssetStateStoreByName, GetDRCount, GetTaskStates

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.overview.snapshot import SNAPSHOT_ASSET
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET
from airflow_chronon.core.runs.task_ids import LAST_TASK
from airflow_chronon.core.waits.said import SAID_ASSET


@dataclass(frozen=True)
class FakeRun:
    """A run of a DAG and the state of its last task."""

    run_id: str
    logical_date: Instant | None
    state: str = "success"
    last_task: str | None = "success"
    dag_id: str = "staging_query.t.s.hourly__1"
    tasks: Mapping[str, str | None] = field(default_factory=dict)  #: states of further tasks


@dataclass
class FakeSupervisor:
    """Answers the messages that triggers send; what was asked is kept."""

    runs: list[FakeRun] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    contracts: dict[str, str] = field(default_factory=dict)  #: by key, the grids of first writes (C22)
    snapshots: dict[str, str] = field(default_factory=dict)  #: by key, what the reconciler keeps of deployments
    said: dict[str, Any] = field(default_factory=dict)  #: by key, what people have said of partitions

    async def asend(self, msg: Any) -> Any:
        self.asked.append(msg)
        if isinstance(msg, GetAssetStateStoreByName):
            kept_of = {CONTRACTS_ASSET: self.contracts, SNAPSHOT_ASSET: self.snapshots, SAID_ASSET: self.said}
            kept = kept_of[msg.name].get(msg.key)
            return SimpleNamespace(error="ASSET_STORE_NOT_FOUND") if kept is None else SimpleNamespace(value=kept)
        runs = [run for run in self.runs if run.dag_id == msg.dag_id]
        runs = [run for run in runs if msg.run_ids is None or run.run_id in msg.run_ids]
        if isinstance(msg, GetTaskStates):
            states = {
                run.run_id: {
                    task_id: run.tasks.get(task_id, run.last_task)
                    for task_id in msg.task_ids or (*run.tasks, LAST_TASK)
                }
                for run in runs
            }
            return SimpleNamespace(task_states=states)
        assert isinstance(msg, GetDRCount), f"a triggerer cannot read the answer to {type(msg).__name__}"
        return SimpleNamespace(count=sum(msg.states is None or run.state in msg.states for run in runs))
