"""A small client of Airflow's REST API: what the demo asks, and no more."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, TypeVar
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

    def import_errors(self) -> list[Json]:
        """Each with ``filename`` and ``stack_trace``."""
        return list(self.pages("/importErrors", "import_errors"))

    def runs(self, dag_id: str = ANY, *, state: str | None = None, run_type: str | None = None) -> list[DagRun]:
        """The runs of one DAG or of all, oldest ``run_after`` first."""
        query = {"order_by": "run_after", "state": state, "run_type": run_type}
        return [run_of(item) for item in self.pages(f"/dags/{dag_id}/dagRuns", "dag_runs", query=query)]

    def tasks(self, dag_id: str = ANY, run_id: str = ANY, *, state: str | None = None) -> list[TaskInstance]:
        """The task instances of one run, of one DAG's runs or of all."""
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id, safe='~')}/taskInstances"
        return [_task(item) for item in self.pages(path, "task_instances", query={"state": state})]

    def log(self, task: TaskInstance, *, try_number: int | None = None) -> list[Json]:
        """The events of one try (the last one by default), each with ``event`` and perhaps ``level`` and others."""
        number = task.try_number if try_number is None else try_number
        path = f"/dags/{task.dag_id}/dagRuns/{quote(task.run_id)}/taskInstances/{task.task_id}/logs/{number}"
        content = self.request("GET", path, params={"full_content": True})["content"]
        return [item if isinstance(item, dict) else {"event": item} for item in content]

    def assets(self, *, dag_id: str | None = None) -> list[Json]:
        """Each with ``uri``, ``name``, ``producing_tasks``; of one DAG or of all."""
        return list(self.pages("/assets", "assets", query={"dag_ids": dag_id}))

    def pages(self, path: str, key: str, *, query: Mapping[str, Any] | None = None) -> Iterator[Json]:
        """Every item of a listing, whatever the page size; ``key`` is where an answer holds them."""
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        offset = 0
        while True:
            page = self.request("GET", path, params={**asked, "limit": PAGE, "offset": offset})[key]
            yield from page
            offset += PAGE
            if len(page) < PAGE:
                return

    def request(self, method: str, path: str, **options: Any) -> Json:
        """The answer to one request below ``/api/v2``. Raises :class:`ApiError` when the server refuses it."""
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


def _detail(answer: httpx.Response) -> str:
    try:
        detail = answer.json().get("detail", answer.text)
    except (ValueError, AttributeError):
        detail = answer.text
    return detail if isinstance(detail, str) else json.dumps(detail)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def run_of(item: Json) -> DagRun:
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
