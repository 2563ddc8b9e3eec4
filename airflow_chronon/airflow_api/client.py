"""The real Airflow behind :class:`AirflowServer`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, wraps
from types import FunctionType
from typing import Any, TypeVar

from airflow_chronon.airflow_api.errors import AirflowRefused, AirflowUnreachable, Conflict, NotThere
from airflow_chronon.airflow_api.login import Login
from airflow_chronon.airflow_api.records import (
    BackfillRecord,
    BackfillRequest,
    DagRecord,
    ImportErrorRecord,
    RunRecord,
    TaskRecord,
)
from airflow_chronon.airflow_api.transport import Json, Transport
from airflow_chronon.core.calendar.instants import Instant, TimeWindow, from_datetime, to_datetime
from airflow_chronon.core.confs.naming import in_run_id

PAGE = 100  #: the server's own limit
ANY = "~"  #: stands for every DAG or every run in a path

_STATE = "assets/{id}/state-store"
_DAG, _RUNS, _RUN = "dags/{dag}", "dags/{dag}/dagRuns", "dags/{dag}/dagRuns/{run}"


_T = TypeVar("_T")


def _in_one_sentence(kind: type[_T]) -> type[_T]:
    """Make every public method say in one sentence that an answer has another shape than Airflow 3's."""

    def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: AirflowRest, *arguments: Any, **named: Any) -> Any:
            try:
                return method(self, *arguments, **named)
            except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
                problem = f"answers in a shape that is not known ({type(error).__name__}: {error})"
                raise AirflowUnreachable(self.url, problem, "is it an Airflow 3 api-server?") from error

        return call

    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(kind, name, guarded(method))
    return kind


@_in_one_sentence
class AirflowRest:
    """Airflow's REST API; nothing is asked before the first call."""

    def __init__(self, login: Login) -> None:
        self.url = login.url
        self._login = login

    @property
    def calls(self) -> int:
        """How many requests have been answered."""
        return self._transport.calls

    # DAGs

    def dags(self, *, tags: Sequence[str] = ()) -> tuple[DagRecord, ...]:
        query: Json = {"exclude_stale": False, "order_by": "dag_id"}
        if tags:
            query |= {"tags": tags, "tags_match_mode": "all"}
        return tuple(_dag(item) for item in self._pages("listing the DAGs", "dags", "dags", query=query))

    def dag(self, dag_id: str) -> DagRecord | None:
        try:
            return _dag(self._call(f"looking at {dag_id}", "GET", _DAG, at={"dag": dag_id}))
        except NotThere:
            return None

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        what = f"{'pausing' if paused else 'unpausing'} {dag_id}"
        self._call(what, "PATCH", _DAG, at={"dag": dag_id}, body={"is_paused": paused})

    def delete_dag(self, dag_id: str) -> None:
        self._call(f"deleting {dag_id}", "DELETE", _DAG, at={"dag": dag_id})

    # runs

    def runs(
        self,
        dag_id: str | None = None,
        *,
        states: Sequence[str] = (),
        run_types: Sequence[str] = (),
        run_after: tuple[Instant | None, Instant | None] = (None, None),
        days: TimeWindow | None = None,
    ) -> tuple[RunRecord, ...]:
        first, last = (None if each is None else to_datetime(each) for each in run_after)
        query = {
            "state": states,
            "run_type": run_types,
            "run_after_gte": first,
            "run_after_lte": last,
            "partition_date_gte": None if days is None else to_datetime(days.start).date(),
            "partition_date_lte": None if days is None else to_datetime(days.end - 1).date(),
            "order_by": ("run_after", "id"),
            "cursor": "",
        }
        what = f"listing the runs of {dag_id or 'all DAGs'}"
        return tuple(
            _run(item) for item in self._pages(what, _RUNS, "dag_runs", at={"dag": dag_id or ANY}, query=query)
        )

    def newest_scheduled(self, dag_id: str) -> tuple[RunRecord, ...]:
        query = {"run_type": "scheduled", "order_by": "-run_after", "limit": 1}
        answer = self._call(f"looking for the newest run of {dag_id}", "GET", _RUNS, at={"dag": dag_id}, query=query)
        return tuple(_run(item) for item in answer["dag_runs"])

    def run(self, dag_id: str, run_id: str) -> RunRecord:
        what = f"looking at the run {run_id} of {dag_id}"
        return _run(self._call(what, "GET", _RUN, at={"dag": dag_id, "run": run_id}))

    def tasks(
        self,
        dag_id: str | None = None,
        run_id: str | None = None,
        *,
        task_id: str | None = None,
        states: Sequence[str] = (),
    ) -> tuple[TaskRecord, ...]:
        query = {"task_id": task_id, "state": states, "order_by": "id", "cursor": ""}
        what, at = f"listing the tasks of {dag_id or 'all DAGs'}", {"dag": dag_id or ANY, "run": run_id or ANY}
        return tuple(
            _task(item) for item in self._pages(what, f"{_RUN}/taskInstances", "task_instances", at=at, query=query)
        )

    def earlier_tries(self, task: TaskRecord) -> tuple[TaskRecord, ...]:
        what = f"listing the tries of {task.task_id} in {task.run_id} of {task.dag_id}"
        at = {"dag": task.dag_id, "run": task.run_id, "task": task.task_id}
        found = map(_task, self._call(what, "GET", f"{_RUN}/taskInstances/{{task}}/tries", at=at)["task_instances"])
        return tuple(sorted((each for each in found if each.try_number < task.try_number), key=_by_try))

    def patch_run(self, dag_id: str, run_id: str, *, state: str | None = None, note: str | None = None) -> None:
        given = {name: value for name, value in (("state", state), ("note", note)) if value is not None}
        at = {"dag": dag_id, "run": run_id}
        self._call(
            f"changing the run {run_id} of {dag_id}", "PATCH", _RUN, at=at, query={"update_mask": [*given]}, body=given
        )

    def trigger(
        self,
        dag_id: str,
        *,
        partition_key: str | None = None,
        params: Mapping[str, Any] | None = None,
        note: str | None = None,
        run_id: str | None = None,
    ) -> RunRecord:
        # a name of its own: when the first answer was lost, the next try finds the run instead of making another
        name = run_id or f"manual__{in_run_id(partition_key or 'run')}__{secrets.token_hex(8)}"
        body: Json = {"logical_date": None, "conf": dict(params or {}), "dag_run_id": name}
        body |= {key: value for key, value in (("partition_key", partition_key), ("note", note)) if value is not None}
        try:
            return _run(self._call(f"triggering {dag_id}", "POST", _RUNS, at={"dag": dag_id}, body=body))
        except Conflict:
            if run_id is not None:
                raise
            return self.run(dag_id, name)

    # backfills

    def plan_backfill(self, request: BackfillRequest) -> tuple[str, ...]:
        what = f"planning a backfill of {request.dag_id}"
        answer = self._call(what, "POST", "backfills/dry_run", body=_backfill_body(request))
        return tuple(str(item["partition_key"]) for item in answer["backfills"])

    def create_backfill(self, request: BackfillRequest) -> BackfillRecord:
        return _backfill(self._call(f"backfilling {request.dag_id}", "POST", "backfills", body=_backfill_body(request)))

    def backfills(self, dag_id: str) -> tuple[BackfillRecord, ...]:
        query = {"dag_id": dag_id, "order_by": "id"}
        found = self._pages(f"listing the backfills of {dag_id}", "backfills", "backfills", query=query)
        return tuple(_backfill(item) for item in found)

    # the rest

    def import_errors(self) -> tuple[ImportErrorRecord, ...]:
        found = self._pages("listing the import errors", "importErrors", "import_errors", query={"order_by": "id"})
        return tuple(
            ImportErrorRecord(item["filename"], item.get("bundle_name"), item["stack_trace"]) for item in found
        )

    def asset_state(self, asset: str, key: str) -> Any:
        for found in self._asset_ids(asset):
            at = {"id": found, "key": key}
            try:
                return self._call(f"reading the state of {asset}", "GET", f"{_STATE}/{{key}}", at=at)["value"]
            except NotThere:
                return None
        return None

    def asset_states(self, asset: str) -> Mapping[str, Any]:
        what = f"reading the state of {asset}"
        return {
            item["key"]: item["value"]
            for found in self._asset_ids(asset)
            for item in self._pages(what, _STATE, "asset_state_store", at={"id": found}, query={})
        }

    def _asset_ids(self, asset: str) -> list[int]:
        """The id of the asset with this URI; none when Airflow does not know it."""
        found = self._pages(f"looking for the asset {asset}", "assets", "assets", query={"uri_pattern": asset})
        return [item["id"] for item in found if item["uri"] == asset]

    def config_value(self, section: str, option: str) -> str | None:
        at = {"section": section, "option": option}
        try:
            answer = self._call(
                f"reading [{section}] {option}", "GET", "config/section/{section}/option/{option}", at=at
            )
        except AirflowRefused as error:
            if error.status in (403, 404):
                return None
            raise
        value = answer["sections"][0]["options"][0]["value"]
        return None if value is None else str(value)

    def _pages(
        self, what: str, path: str, key: str, *, query: Json, at: Mapping[str, object] | None = None
    ) -> Iterator[Json]:
        """Every item of a list. Runs and tasks are asked for by cursor, after the last one seen: by offset, one of those
        that are active would be left out when others end between two pages (C28)."""
        offset = 0
        while True:
            answer = self._call(what, "GET", path, at=at, query={**query, "limit": PAGE, "offset": offset})
            page = answer[key]
            yield from page
            offset += len(page)
            query = {**query, "cursor": answer.get("next_cursor")}
            is_last = query["cursor"] is None if "next_cursor" in answer else len(page) < PAGE
            if is_last:
                return

    def _call(self, what: str, method: str, path: str, **more: Any) -> Json:
        return self._transport.call(what, method, path, **more)

    @cached_property
    def _transport(self) -> Transport:
        return Transport(self._login)


def _backfill_body(request: BackfillRequest) -> Json:
    return {
        "dag_id": request.dag_id,
        "from_date": to_datetime(request.first).isoformat(),
        "to_date": to_datetime(request.last).isoformat(),
        "reprocess_behavior": request.reprocess.value,
        "max_active_runs": request.max_active_runs,
        "run_backwards": request.backwards,
    }


def _dag(item: Json) -> DagRecord:
    return DagRecord(
        dag_id=item["dag_id"],
        tags=frozenset(tag["name"] for tag in item.get("tags") or ()),
        bundle=item.get("bundle_name"),
        is_paused=item["is_paused"],
        is_stale=item["is_stale"],
        has_import_errors=item.get("has_import_errors", False),
        file=item.get("relative_fileloc"),
    )


def _run(item: Json) -> RunRecord:
    start, end = _instant(item.get("data_interval_start")), _instant(item.get("data_interval_end"))
    return RunRecord(
        dag_id=item["dag_id"],
        run_id=item["dag_run_id"],
        run_type=item["run_type"],
        state=item["state"],
        partition_key=item.get("partition_key"),
        partition_date=_instant(item.get("partition_date")),
        window=TimeWindow(start, end) if start is not None and end is not None and end > start else None,
        logical_date=_instant(item.get("logical_date")),
        run_after=_instant(item.get("run_after")) or 0,
        start=_instant(item.get("start_date")),
        end=_instant(item.get("end_date")),
        conf=item.get("conf") or {},
        note=item.get("note"),
        raw=item,
    )


def _by_try(task: TaskRecord) -> int:
    return task.try_number


def _task(item: Json) -> TaskRecord:
    return TaskRecord(
        dag_id=item["dag_id"],
        run_id=item["dag_run_id"],
        task_id=item["task_id"],
        state=item.get("state"),
        try_number=item.get("try_number") or 0,
        start=_seconds(item.get("start_date")),
        end=_seconds(item.get("end_date")),
        note=item.get("note"),
        raw=item,
    )


def _backfill(item: Json) -> BackfillRecord:
    first, last = _instant(item["from_date"]), _instant(item["to_date"])
    assert first is not None
    assert last is not None
    return BackfillRecord(
        item["id"], item["dag_id"], first, last, item["is_paused"], _instant(item.get("completed_at"))
    )


def _instant(text: str | None) -> Instant | None:
    return None if text is None else from_datetime(datetime.fromisoformat(text.replace("Z", "+00:00")))


def _seconds(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
