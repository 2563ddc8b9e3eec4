"""What the tests ask of a real Airflow beyond what the demo does: triggers, pauses, marks, backfills; and a patient wait."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx
from airflow_api import AirflowApi, ApiError, DagRun, Json, TaskInstance, run_of

Answer = TypeVar("Answer")


class AirflowClient(AirflowApi):
    """The demo's client, and what else a user does to DAGs and runs."""

    def dags(self) -> list[Json]:
        """Every DAG that is not stale."""
        return list(self.pages("/dags", "dags"))

    def dag(self, dag_id: str) -> Json | None:
        """One DAG with ``is_paused``, ``is_stale``, ``next_dagrun_run_after``…, or None when there is no such DAG."""
        try:
            return self.request("GET", f"/dags/{dag_id}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def dag_versions(self, dag_id: str) -> list[Json]:
        """Every version Airflow has kept of a DAG."""
        return list(self.pages(f"/dags/{dag_id}/dagVersions", "dag_versions"))

    def unpause(self, dag_id: str) -> None:
        self.request("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def pause(self, dag_id: str) -> None:
        self.request("PATCH", f"/dags/{dag_id}", json={"is_paused": True})

    def trigger(
        self,
        dag_id: str,
        *,
        partition_key: str | None = None,
        params: Mapping[str, Any] | None = None,
        logical_date: datetime | None = None,
        interval: tuple[datetime, datetime] | None = None,
    ) -> DagRun:
        """Start a manual run; ``interval`` is ``[start, end)`` and needs a logical date."""
        body: Json = {"logical_date": _text(logical_date), "conf": dict(params or {})}
        if partition_key is not None:
            body["partition_key"] = partition_key
        if interval is not None:
            body["data_interval_start"], body["data_interval_end"] = map(_text, interval)
        return run_of(self.request("POST", f"/dags/{dag_id}/dagRuns", json=body))

    def run(self, dag_id: str, run_id: str) -> DagRun:
        return run_of(self.request("GET", f"/dags/{dag_id}/dagRuns/{quote(run_id)}"))

    def task_states(self, run: DagRun) -> dict[str, str | None]:
        """State by task id of one run."""
        return {task.task_id: task.state for task in self.tasks(run.dag_id, run.run_id)}

    def mark_task(self, task: TaskInstance, state: str) -> None:
        """Set a task's state by hand: ``success`` or ``failed``; a job that works is stopped."""
        path = f"/dags/{task.dag_id}/dagRuns/{quote(task.run_id)}/taskInstances/{task.task_id}"
        self.request("PATCH", path, json={"new_state": state})

    def mark_run(self, run: DagRun, state: str) -> None:
        """Set a run's state by hand: ``success`` or ``failed``; its tasks that have not ended are stopped."""
        self.request("PATCH", f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}", json={"state": state})

    def log_text(self, task: TaskInstance, *, try_number: int | None = None) -> str:
        """The log as text: one line an event, with whatever fields and error details it carries."""
        lines = []
        for item in self.log(task, try_number=try_number):
            more = {key: value for key, value in item.items() if key not in ("event", "timestamp")}
            lines.append(f"{item.get('event', '')} {json.dumps(more, ensure_ascii=False) if more else ''}".rstrip())
        return "\n".join(lines)

    def backfill(
        self,
        dag_id: str,
        *,
        start: datetime,
        end: datetime,
        reprocess: str = "none",
        max_active_runs: int = 10,
        backwards: bool = False,
    ) -> Json:
        """Create a backfill over the partition dates from ``start`` to ``end``, both inclusive.

        ``reprocess`` is ``none``, ``failed`` or ``completed``.
        """
        body = {
            "dag_id": dag_id,
            "from_date": _text(start),
            "to_date": _text(end),
            "reprocess_behavior": reprocess,
            "max_active_runs": max_active_runs,
            "run_backwards": backwards,
        }
        return self.request("POST", "/backfills", json=body)

    def backfills(self, dag_id: str) -> list[Json]:
        """Each with ``id`` and ``completed_at``."""
        return list(self.pages("/backfills", "backfills", query={"dag_id": dag_id}))

    def asset_events(self, *, dag_id: str | None = None, run_id: str | None = None) -> list[Json]:
        """Each with ``uri``, ``partition_key``, ``extra``, ``created_dagruns``; oldest first."""
        query = {"source_dag_id": dag_id, "source_run_id": run_id, "order_by": "timestamp"}
        return list(self.pages("/assets/events", "asset_events", query=query))


def wait_until(
    condition: Callable[[], Answer | Literal[False] | None], *, timeout: float, why: str, every: float = 0.5
) -> Answer:
    """Ask ``condition`` until its answer is true, and return that answer.

    After ``timeout`` seconds it raises :class:`TimeoutError` with ``why`` (what was waited for) and the last answer
    seen. An :class:`ApiError` counts as not yet, since the server may be restarting, and is told at the end.
    """
    deadline = time.monotonic() + timeout
    while True:
        seen: object
        try:
            answer = condition()
            if answer:
                return answer
            seen = answer
        except (ApiError, httpx.TransportError) as error:
            seen = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"{why}: not after {timeout:g} s; last seen: {seen!r}")
        time.sleep(every)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
