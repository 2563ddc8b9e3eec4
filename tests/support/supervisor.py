"""A triggerer's supervisor for tests: answers about runs as Airflow's own does, over a list of runs in memory.

It orders runs as PostgreSQL does, where those without a logical date come first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from airflow.sdk.execution_time.comms import GetDRCount, GetPreviousTI, GetTaskStates

from airflow_chronon.core.calendar.instants import Instant, from_datetime, to_datetime


@dataclass(frozen=True)
class FakeRun:
    """A run of a DAG and the state of its last task."""

    run_id: str
    logical_date: Instant | None
    state: str = "success"
    last_task: str | None = "success"
    dag_id: str = "staging_query.t.s.hourly__1"


@dataclass
class FakeSupervisor:
    """Answers the messages that triggers send; what was asked is kept."""

    runs: list[FakeRun] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    async def asend(self, msg: Any) -> Any:
        self.asked.append(msg)
        runs = [run for run in self.runs if run.dag_id == msg.dag_id]
        if isinstance(msg, GetPreviousTI):
            return SimpleNamespace(task_instance=self._previous(runs, msg))
        runs = [run for run in runs if msg.run_ids is None or run.run_id in msg.run_ids]
        if isinstance(msg, GetTaskStates):
            assert msg.task_ids is not None
            states = {run.run_id: dict.fromkeys(msg.task_ids, run.last_task) for run in runs}
            return SimpleNamespace(task_states=states)
        assert isinstance(msg, GetDRCount)
        return SimpleNamespace(count=sum(msg.states is None or run.state in msg.states for run in runs))

    def _previous(self, runs: list[FakeRun], msg: GetPreviousTI) -> Any:
        if msg.logical_date is not None:
            before = from_datetime(msg.logical_date)
            runs = [run for run in runs if run.logical_date is not None and run.logical_date < before]
        found = max(runs, key=lambda run: (run.logical_date is None, run.logical_date or 0), default=None)
        if found is None:
            return None
        date = None if found.logical_date is None else to_datetime(found.logical_date)
        return SimpleNamespace(run_id=found.run_id, logical_date=date, state=found.last_task)
