"""The client of Airflow's REST API: the real :class:`AirflowServer`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from airflow_chronon.airflow_api.answers import (
    Answer,
    backfill_of,
    dag_of,
    import_error_of,
    log_lines_of,
    run_of,
    task_of,
)
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
from airflow_chronon.core.calendar.instants import Instant, TimeWindow, to_datetime
from airflow_chronon.core.partitions.labels import in_run_id

PAGE = 100  #: the server's own limit
MOST_PAGES = 20_000  #: of one list: two million runs are four years of minutes
LISTING_SECONDS = 900  #: for all pages of one list
LISTING_BYTES = 2**30  #: of all pages of one list
ANY = "~"  #: stands for every DAG or every run in a path

_STATE = "assets/{id}/state-store"
_DAG, _RUNS, _RUN = "dags/{dag}", "dags/{dag}/dagRuns", "dags/{dag}/dagRuns/{run}"


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

    def dags(self, *, tags: Sequence[str] = (), like: str = "") -> tuple[DagRecord, ...]:
        query: Json = {"exclude_stale": False, "order_by": "dag_id", "dag_id_pattern": like or None}
        if tags:
            query |= {"tags": tags, "tags_match_mode": "all"}
        return tuple(dag_of(item) for item in self._pages("listing the DAGs", "dags", "dags", query=query))

    def dag(self, dag_id: str) -> DagRecord | None:
        try:
            return dag_of(self._call(f"looking at {dag_id}", "GET", _DAG, at={"dag": dag_id}))
        except NotThere:
            return None

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        what = f"{'pausing' if paused else 'unpausing'} {dag_id}"
        self._call(what, "PATCH", _DAG, at={"dag": dag_id}, body={"is_paused": paused})

    def parse_soon(self, dag_id: str) -> None:
        what = f"having the file of {dag_id} parsed"
        token = self._call(what, "GET", _DAG, at={"dag": dag_id}).text("file_token")
        with suppress(Conflict):
            self._call(what, "PUT", "parseDagFile/{token}", at={"token": token})

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
            run_of(item) for item in self._pages(what, _RUNS, "dag_runs", at={"dag": dag_id or ANY}, query=query)
        )

    def newest_scheduled(self, dag_id: str) -> tuple[RunRecord, ...]:
        query = {"run_type": "scheduled", "order_by": "-run_after", "limit": 1}
        answer = self._call(f"looking for the newest run of {dag_id}", "GET", _RUNS, at={"dag": dag_id}, query=query)
        return tuple(run_of(item) for item in answer.items("dag_runs"))

    def run(self, dag_id: str, run_id: str) -> RunRecord:
        what = f"looking at the run {run_id} of {dag_id}"
        return run_of(self._call(what, "GET", _RUN, at={"dag": dag_id, "run": run_id}))

    def tasks(
        self,
        dag_id: str | None = None,
        run_id: str | None = None,
        *,
        task_id: str | None = None,
        states: Sequence[str] = (),
        dags_like: str = "",
        ended_since: Instant | None = None,
    ) -> tuple[TaskRecord, ...]:
        query: Json = {"task_id": task_id, "state": states, "order_by": "id", "cursor": ""}
        query |= {"dag_id_pattern": dags_like or None}
        query |= {"end_date_gte": None if ended_since is None else to_datetime(ended_since)}
        what, at = f"listing the tasks of {dag_id or 'all DAGs'}", {"dag": dag_id or ANY, "run": run_id or ANY}
        return tuple(
            task_of(item) for item in self._pages(what, f"{_RUN}/taskInstances", "task_instances", at=at, query=query)
        )

    def earlier_tries(self, task: TaskRecord) -> tuple[TaskRecord, ...]:
        what = f"listing the tries of {task.task_id} in {task.run_id} of {task.dag_id}"
        at = {"dag": task.dag_id, "run": task.run_id, "task": task.task_id}
        found = map(
            task_of, self._call(what, "GET", f"{_RUN}/taskInstances/{{task}}/tries", at=at).items("task_instances")
        )
        return tuple(sorted((each for each in found if each.try_number < task.try_number), key=_by_try))

    def newest_tasks(self, dag_id: str, *, task_id: str, states: Sequence[str], limit: int) -> tuple[TaskRecord, ...]:
        query = {"task_id": task_id, "state": states, "order_by": "-start_date", "limit": limit}
        what, at = f"listing the last tasks of {dag_id}", {"dag": dag_id, "run": ANY}
        answer = self._call(what, "GET", f"{_RUN}/taskInstances", at=at, query=query)
        return tuple(map(task_of, answer.items("task_instances")))

    def log_lines(self, task: TaskRecord) -> tuple[str, ...]:
        at = {"dag": task.dag_id, "run": task.run_id, "task": task.task_id, "try": task.try_number}
        what = f"reading the log of {task.task_id} in {task.run_id} of {task.dag_id}"
        path = f"{_RUN}/taskInstances/{{task}}/logs/{{try}}"
        try:
            return log_lines_of(self._call(what, "GET", path, at=at, query={"full_content": True}))
        except NotThere:
            return ()

    def patch_run(self, dag_id: str, run_id: str, *, state: str | None = None, note: str | None = None) -> None:
        given = {name: value for name, value in (("state", state), ("note", note)) if value is not None}
        at = {"dag": dag_id, "run": run_id}
        self._call(
            f"changing the run {run_id} of {dag_id}", "PATCH", _RUN, at=at, query={"update_mask": [*given]}, body=given
        )

    def clear_failed(self, dag_id: str, run_id: str) -> None:
        what, at = f"clearing the failed tasks of {run_id} of {dag_id}", {"dag": dag_id, "run": run_id}
        self._call(what, "POST", f"{_RUN}/clear", at=at, body={"dry_run": False, "only_failed": True})

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
            return run_of(self._call(f"triggering {dag_id}", "POST", _RUNS, at={"dag": dag_id}, body=body))
        except Conflict:
            if run_id is not None:
                raise
            return self.run(dag_id, name)

    # backfills

    def plan_backfill(self, request: BackfillRequest) -> tuple[str, ...]:
        what = f"planning a backfill of {request.dag_id}"
        answer = self._call(what, "POST", "backfills/dry_run", body=_backfill_body(request))
        return tuple(item.text("partition_key") for item in answer.items("backfills"))

    def create_backfill(self, request: BackfillRequest) -> BackfillRecord:
        return backfill_of(
            self._call(f"backfilling {request.dag_id}", "POST", "backfills", body=_backfill_body(request))
        )

    def backfills(self, dag_id: str) -> tuple[BackfillRecord, ...]:
        query = {"dag_id": dag_id, "order_by": "id"}
        found = self._pages(f"listing the backfills of {dag_id}", "backfills", "backfills", query=query)
        return tuple(backfill_of(item) for item in found)

    # the rest

    def import_errors(self) -> tuple[ImportErrorRecord, ...]:
        found = self._pages("listing the import errors", "importErrors", "import_errors", query={"order_by": "id"})
        return tuple(import_error_of(item) for item in found)

    def task_state(self, dag_id: str, run_id: str, *, task_id: str, key: str) -> Any:
        what, at = f"reading the state of {task_id} in {run_id} of {dag_id}", {"dag": dag_id, "run": run_id}
        try:
            path = f"{_RUN}/taskInstances/{{task}}/state-store/{{key}}"
            return self._call(what, "GET", path, at={**at, "task": task_id, "key": key}).value("value")
        except NotThere:
            return None

    def handed_on(self, dag_id: str, key: str, run_ids: Container[str]) -> Mapping[str, tuple[Any, ...]]:
        what, path = f"reading what tasks of {dag_id} have handed on", f"{_RUN}/taskInstances/{{task}}/xcomEntries"
        everywhere = {"dag": dag_id, "run": ANY, "task": ANY}
        found: dict[str, tuple[Any, ...]] = {}
        for item in self._pages(what, path, "xcom_entries", at=everywhere, query={"xcom_key": key}):
            run_id, task_id = item.text("run_id"), item.text("task_id")
            if run_id not in run_ids:
                continue
            at = {"dag": dag_id, "run": run_id, "task": task_id, "key": key}
            with suppress(NotThere):  # cleared meanwhile
                value = self._call(what, "GET", f"{path}/{{key}}", at=at, query={"stringify": False}).value("value")
                found[run_id] = (*found.get(run_id, ()), value)
        return found

    def asset_state(self, asset: str, key: str) -> Any:
        for found in self._asset_ids(asset):
            at = {"id": found, "key": key}
            try:
                return self._call(f"reading the state of {asset}", "GET", f"{_STATE}/{{key}}", at=at).value("value")
            except NotThere:
                return None
        return None

    def asset_states(self, asset: str) -> Mapping[str, Any]:
        what = f"reading the state of {asset}"
        return {
            item.text("key"): item.value("value")
            for found in self._asset_ids(asset)
            for item in self._pages(what, _STATE, "asset_state_store", at={"id": found}, query={})
        }

    def keep_asset_state(self, asset: str, key: str, value: Any) -> bool:
        found = self._asset_ids(asset)
        for each in found:
            at = {"id": each, "key": key}
            self._call(f"keeping a state of {asset}", "PUT", f"{_STATE}/{{key}}", at=at, body={"value": value})
        return bool(found)

    def drop_asset_state(self, asset: str, key: str) -> None:
        for each in self._asset_ids(asset):
            self._call(f"dropping a state of {asset}", "DELETE", f"{_STATE}/{{key}}", at={"id": each, "key": key})

    def add_asset_event(self, asset: str, partition_key: str, extra: Mapping[str, Any]) -> bool:
        found = self._asset_ids(asset)
        for each in found:
            body: Json = {"asset_id": each, "partition_key": partition_key, "extra": dict(extra)}
            self._call(f"adding an event to {asset}", "POST", "assets/events", body=body)
        return bool(found)

    def _asset_ids(self, asset: str) -> list[int]:
        """The id of the asset with this URI; none when Airflow does not know it."""
        found = self._pages(f"looking for the asset {asset}", "assets", "assets", query={"uri_pattern": asset})
        return [item.number("id") for item in found if item.text("uri") == asset]

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
        found = [each.value("value") for part in answer.items("sections") for each in part.items("options")]
        return None if not found or found[0] is None else str(found[0])

    def _pages(
        self, what: str, path: str, key: str, *, query: Json, at: Mapping[str, object] | None = None
    ) -> Iterator[Answer]:
        """Every item of a list. Runs and tasks are asked for by cursor, after the last one seen: by offset, one of those
        that are active would be left out when others end between two pages (C28).

        A list is as long as the server says, within bounds (S8). Raises :class:`AirflowUnreachable` beyond them.
        """
        offset, before, began = 0, None, (time.monotonic(), self._transport.received)
        for _ in range(MOST_PAGES):
            answer = self._call(what, "GET", path, at=at, query={**query, "limit": PAGE, "offset": offset})
            page = tuple(answer.items(key))
            yield from page
            offset += len(page)
            query = {**query, "cursor": answer.text_or_none("next_cursor")}
            is_last = query["cursor"] is None if answer.has("next_cursor") else len(page) < PAGE
            if is_last:
                return
            if not page or answer.raw == before:
                raise self._endless(what, f"says that there is more after {offset} items, and gives no other")
            before = answer.raw
            if time.monotonic() - began[0] > LISTING_SECONDS:
                raise self._endless(what, f"has given {offset} items in {LISTING_SECONDS} seconds, and has more")
            if self._transport.received - began[1] > LISTING_BYTES:
                raise self._endless(what, f"has given {LISTING_BYTES // 2**20} MB, and has more")
        raise self._endless(what, f"has given {offset} items on {MOST_PAGES} pages, and has more")

    def _endless(self, what: str, problem: str) -> AirflowUnreachable:
        return AirflowUnreachable(self.url, f"{problem} ({what})", "is it an Airflow 3 api-server?")

    def _call(self, what: str, method: str, path: str, **more: Any) -> Answer:
        return Answer(self._transport.call(what, method, path, **more), url=self.url, what=what)

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
        "dag_run_conf": dict(request.conf),
    }


def _by_try(task: TaskRecord) -> int:
    return task.try_number
