"""Tasks whose job runs elsewhere, as Airflow keeps them over their tries and clears."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.module_loading import import_string  # type: ignore[attr-defined]
from airflow.triggers.base import TriggerEvent

from airflow_chronon.airflow.operators.remote import RemoteTrigger
from airflow_chronon.dags import build_dags
from tests.support import airflow_jobs
from tests.support.conf_roots import ConfRootOnDisk

KEY = "2026-06-01"
DAG_ID = "staging_query.orders.daily__1"


class State(dict[str, Any]):
    """Stands for the state that Airflow keeps of an asset."""

    set = dict.__setitem__


class TaskState(dict[str, Any]):
    """Stands for the state that Airflow keeps of a task: JSON, over retries and clears."""

    def set(self, key: str, value: Any, *, retention: Any = None) -> None:
        self[key] = json.loads(json.dumps(value))


@dataclass(frozen=True)
class ConfRootAt:
    """A conf root that is there."""

    path: Path


class Task:
    """One task over its tries, as Airflow keeps it."""

    def __init__(
        self,
        root: ConfRootOnDisk | ConfRootAt,
        *,
        dag_id: str = DAG_ID,
        task_id: str = "backfill",
        run: Any = None,
    ) -> None:
        self.operator: Any = build_dags(conf_root=root.path)[dag_id].get_task(task_id)
        self.state, self.grids = TaskState(), defaultdict[Any, State](State)
        self.run = run or airflow_jobs.context(KEY)
        started = datetime(2026, 6, 10, tzinfo=UTC) - timedelta(hours=1)
        self.ti = SimpleNamespace(dag_id=dag_id, task_id=task_id, try_number=1, max_tries=3, start_date=started)
        self.run["dag_run"].clear_number = 0
        self.run["params"] |= {"start_ds": None, "end_ds": None}

    def begins(self, event: Any = None, *, failed: str = "") -> None:
        """Begin, or go on with what a trigger said, or with why it failed."""
        more = {"ti": self.ti, "task_state_store": self.state, "asset_state_store": self.grids}
        if failed:
            self.operator.resume_execution("__fail__", {"error": failed, "traceback": ["x"]}, {**self.run, **more})
        else:
            self.operator.execute({**self.run, **more}, event)

    def defers(self, event: Any = None, *, failed: str = "") -> RemoteTrigger:
        with pytest.raises(TaskDeferred) as deferred:
            self.begins(event, failed=failed)
        trigger = deferred.value.trigger
        assert isinstance(trigger, RemoteTrigger)
        assert deferred.value.method_name == "execute"
        path, arguments = trigger.serialize()
        again = import_string(path)(**json.loads(json.dumps(arguments)))  # as Airflow keeps it
        assert isinstance(again, RemoteTrigger)
        return again

    def is_tried_again(self) -> None:
        self.ti.try_number += 1

    def is_cleared(self) -> None:
        self.run["dag_run"].clear_number += 1
        self.ti.max_tries = self.ti.try_number + 3
        self.ti.try_number += 1


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert holds()


async def first_event(trigger: RemoteTrigger) -> TriggerEvent:
    async for event in trigger.run():
        return event
    raise AssertionError("it never fired")


def fire(trigger: RemoteTrigger) -> Any:
    """What a trigger says when it fires."""
    return asyncio.run(asyncio.wait_for(first_event(trigger), 60)).payload
