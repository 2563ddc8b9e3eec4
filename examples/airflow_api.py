"""A small client of Airflow's REST API for the demo and the integration tests: what they ask, and no more."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

import httpx

PAGE = 100  #: the server's own limit
ANY = "~"  #: stands for every DAG or every run in a path

Answer = TypeVar("Answer")
Json = dict[str, Any]


class ApiError(RuntimeError):
    """The server refused a request; ``detail`` is its own sentence."""

    def __init__(self, *, method: str, path: str, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(f"{method} {path}: {status} {detail}")


@dataclass(frozen=True)
class DagRun:
    """One run as the API lists it; the interval is half open and absent in replays."""

    dag_id: str
    run_id: str
    state: str
    run_type: str
    partition_key: str | None
    partition_date: datetime | None
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    run_after: datetime
    start_date: datetime | None
    end_date: datetime | None
    note: str | None
    conf: Json = field(default_factory=dict)


@dataclass(frozen=True)
class TaskInstance:
    """One task of one run; ``state`` is None before the scheduler has looked at it."""

    dag_id: str
    run_id: str
    task_id: str
    state: str | None
    try_number: int
    start_date: datetime | None
    end_date: datetime | None
    operator: str | None
    note: str | None
    pid: int | None  #: of the worker's process; None when no worker ever held it


class AirflowApi:
    """The REST API of one Airflow, logged in with a password.

    A 5xx answer is asked again, since SQLite may be locked for a moment; a 401 logs in anew.
    """

    def __init__(self, *, url: str, user: str, password: str) -> None:
        self._login = {"username": user, "password": password}
        self._http = httpx.Client(base_url=url, timeout=70, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def log_in(self) -> str:
        """Take a token, use it from now on, and return it."""
        answer = self._http.post("/auth/token", json=self._login)
        if answer.is_error:
            raise ApiError(method="POST", path="/auth/token", status=answer.status_code, detail=answer.text)
        token = str(answer.json()["access_token"])
        self._http.headers["Authorization"] = f"Bearer {token}"
        return token

    # DAGs

    def dags(self) -> list[Json]:
        """Every DAG that is not stale."""
        return list(self._pages("/dags", "dags"))

    def dag(self, dag_id: str) -> Json | None:
        """One DAG with ``is_paused``, ``is_stale``, ``next_dagrun_run_after``…, or None when there is no such DAG."""
        try:
            return self._request("GET", f"/dags/{dag_id}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def dag_versions(self, dag_id: str) -> list[Json]:
        """Every version Airflow has kept of a DAG."""
        return list(self._pages(f"/dags/{dag_id}/dagVersions", "dag_versions"))

    def unpause(self, dag_id: str) -> None:
        self._request("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def pause(self, dag_id: str) -> None:
        self._request("PATCH", f"/dags/{dag_id}", json={"is_paused": True})

    def delete_dag(self, dag_id: str) -> None:
        """Delete a DAG with its runs and their history; it comes back empty while a file still yields it."""
        self._request("DELETE", f"/dags/{dag_id}")

    def import_errors(self) -> list[Json]:
        """Each with ``filename`` and ``stack_trace``."""
        return list(self._pages("/importErrors", "import_errors"))

    # runs

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
        return _run(self._request("POST", f"/dags/{dag_id}/dagRuns", json=body))

    def runs(self, dag_id: str = ANY, *, state: str | None = None, run_type: str | None = None) -> list[DagRun]:
        """The runs of one DAG or of all, oldest ``run_after`` first."""
        query = {"order_by": "run_after", "state": state, "run_type": run_type}
        return [_run(item) for item in self._pages(f"/dags/{dag_id}/dagRuns", "dag_runs", query=query)]

    def run(self, dag_id: str, run_id: str) -> DagRun:
        return _run(self._request("GET", f"/dags/{dag_id}/dagRuns/{quote(run_id)}"))

    def tasks(self, dag_id: str = ANY, run_id: str = ANY, *, state: str | None = None) -> list[TaskInstance]:
        """The task instances of one run, of one DAG's runs or of all."""
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='~')}/taskInstances"
        return [_task(item) for item in self._pages(path, "task_instances", query={"state": state})]

    def task_states(self, run: DagRun) -> dict[str, str | None]:
        """State by task id of one run."""
        return {task.task_id: task.state for task in self.tasks(run.dag_id, run.run_id)}

    def mark_task(self, task: TaskInstance, state: str) -> None:
        """Set a task's state by hand: ``success`` or ``failed``; a job that works is stopped."""
        path = f"/dags/{task.dag_id}/dagRuns/{quote(task.run_id)}/taskInstances/{task.task_id}"
        self._request("PATCH", path, json={"new_state": state})

    def mark_run(self, run: DagRun, state: str) -> None:
        """Set a run's state by hand: ``success`` or ``failed``; its tasks that have not ended are stopped."""
        self._request("PATCH", f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}", json={"state": state})

    def log(self, task: TaskInstance, *, try_number: int | None = None) -> list[Json]:
        """The events of one try (the last one by default), each with ``event`` and perhaps ``level`` and others."""
        number = task.try_number if try_number is None else try_number
        path = f"/dags/{task.dag_id}/dagRuns/{quote(task.run_id)}/taskInstances/{task.task_id}/logs/{number}"
        content = self._request("GET", path, params={"full_content": True})["content"]
        return [item if isinstance(item, dict) else {"event": item} for item in content]

    def log_text(self, task: TaskInstance, *, try_number: int | None = None) -> str:
        """The log as text: one line an event, with whatever fields and error details it carries."""
        lines = []
        for item in self.log(task, try_number=try_number):
            more = {key: value for key, value in item.items() if key not in ("event", "timestamp")}
            lines.append(f"{item.get('event', '')} {json.dumps(more, ensure_ascii=False) if more else ''}".rstrip())
        return "\n".join(lines)

    def xcom(self, task: TaskInstance, *, key: str = "return_value") -> Any:
        path = f"/dags/{task.dag_id}/dagRuns/{quote(task.run_id)}/taskInstances/{task.task_id}/xcomEntries/{key}"
        return self._request("GET", path, params={"deserialize": True})["value"]

    # backfills

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
        return self._request("POST", "/backfills", json=body)

    def backfills(self, dag_id: str) -> list[Json]:
        """Each with ``id`` and ``completed_at``."""
        return list(self._pages("/backfills", "backfills", query={"dag_id": dag_id}))

    # assets

    def assets(self, *, dag_id: str | None = None) -> list[Json]:
        """Each with ``uri``, ``name``, ``producing_tasks``; of one DAG or of all."""
        return list(self._pages("/assets", "assets", query={"dag_ids": dag_id}))

    def asset_events(self, *, dag_id: str | None = None, run_id: str | None = None) -> list[Json]:
        """Each with ``uri``, ``partition_key``, ``extra``, ``created_dagruns``; oldest first."""
        query = {"source_dag_id": dag_id, "source_run_id": run_id, "order_by": "timestamp"}
        return list(self._pages("/assets/events", "asset_events", query=query))

    def _pages(self, path: str, key: str, *, query: Mapping[str, Any] | None = None) -> Iterator[Json]:
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        offset = 0
        while True:
            page = self._request("GET", path, params={**asked, "limit": PAGE, "offset": offset})[key]
            yield from page
            offset += PAGE
            if len(page) < PAGE:
                return

    def _request(self, method: str, path: str, **options: Any) -> Json:
        if "Authorization" not in self._http.headers:
            self.log_in()
        for attempt in range(5):
            answer = self._http.request(method, f"/api/v2{path}", **options)
            if answer.status_code == httpx.codes.UNAUTHORIZED and attempt == 0:
                self.log_in()
            elif answer.is_server_error and attempt < 4:
                time.sleep(0.3 * (attempt + 1))
            else:
                break
        if answer.is_error:
            raise ApiError(method=method, path=path, status=answer.status_code, detail=_detail(answer))
        return dict(answer.json()) if answer.content else {}


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


def _detail(answer: httpx.Response) -> str:
    try:
        detail = answer.json().get("detail", answer.text)
    except (ValueError, AttributeError):
        detail = answer.text
    return detail if isinstance(detail, str) else json.dumps(detail)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _run(item: Json) -> DagRun:
    run_after = _moment(item["run_after"])
    assert run_after is not None
    return DagRun(
        dag_id=item["dag_id"],
        run_id=item["dag_run_id"],
        state=item["state"],
        run_type=item["run_type"],
        partition_key=item["partition_key"],
        partition_date=_moment(item["partition_date"]),
        logical_date=_moment(item["logical_date"]),
        data_interval_start=_moment(item["data_interval_start"]),
        data_interval_end=_moment(item["data_interval_end"]),
        run_after=run_after,
        start_date=_moment(item["start_date"]),
        end_date=_moment(item["end_date"]),
        note=item["note"],
        conf=item["conf"] or {},
    )


def _task(item: Json) -> TaskInstance:
    return TaskInstance(
        dag_id=item["dag_id"],
        run_id=item["dag_run_id"],
        task_id=item["task_id"],
        state=item["state"],
        try_number=item["try_number"],
        start_date=_moment(item["start_date"]),
        end_date=_moment(item["end_date"]),
        operator=item.get("operator"),
        note=item.get("note"),
        pid=item.get("pid"),
    )
