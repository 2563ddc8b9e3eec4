"""An Airflow in memory, for tests of whatever stands on :class:`AirflowServer`."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_chronon.airflow_api.errors import Conflict, NotThere
from airflow_chronon.airflow_api.records import (
    BackfillRecord,
    BackfillRequest,
    DagRecord,
    ImportErrorRecord,
    Reprocess,
    RunRecord,
    TaskRecord,
)
from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow, parse_instant
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.waits.said import SAID_ASSET


@dataclass
class FakeAirflow:
    """Behaves like the real one where this package relies on it; ``calls`` tells what was asked, in order.

    A DAG with an entry in ``specs``, or a job in ``jobs``, takes backfills: one queued run per label, as the timetable
    gives them.
    ``before`` is called with each call's name first, and may raise.
    """

    dag_records: dict[str, DagRecord] = field(default_factory=dict)
    run_records: list[RunRecord] = field(default_factory=list)
    task_records: list[TaskRecord] = field(default_factory=list)
    backfill_records: list[BackfillRecord] = field(default_factory=list)
    errors: list[ImportErrorRecord] = field(default_factory=list)
    specs: dict[str, PartitionSpec] = field(default_factory=dict)
    jobs: dict[str, IntervalSchedule] = field(default_factory=dict)
    states: dict[tuple[str, str], Any] = field(default_factory=dict)
    assets: set[str] = field(default_factory=lambda: {SAID_ASSET})  #: the URIs of those that it knows
    task_states: dict[tuple[str, str, str, str], Any] = field(default_factory=dict)  #: by DAG, run, task and key
    xcoms: dict[tuple[str, str, str, str], Any] = field(default_factory=dict)  #: by DAG, run, task and key
    logs: dict[tuple[str, str, str], tuple[str, ...]] = field(default_factory=dict)  #: by DAG, run and task
    config: dict[tuple[str, str], str] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    before: Callable[[str], None] = lambda name: None

    def dags(self, *, tags: Sequence[str] = (), like: str = "") -> tuple[DagRecord, ...]:
        self._called("dags", *tags)
        found = (dag for _, dag in sorted(self.dag_records.items()))
        return tuple(dag for dag in found if dag.tags >= set(tags) and _is_like(dag.dag_id, like))

    def dag(self, dag_id: str) -> DagRecord | None:
        self._called("dag", dag_id)
        return self.dag_records.get(dag_id)

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        self._called("pause" if paused else "unpause", dag_id)
        self.dag_records[dag_id] = replace(self._known(dag_id), is_paused=paused)

    def parse_soon(self, dag_id: str) -> None:
        self._called("parse_soon", dag_id)
        self._known(dag_id)

    def delete_dag(self, dag_id: str) -> None:
        self._called("delete_dag", dag_id)
        self._known(dag_id)
        if any(task.dag_id == dag_id and task.state == "running" for task in self.task_records):
            raise Conflict(f"deleting {dag_id}", status=409, detail="Task instances of the Dag are still running")
        del self.dag_records[dag_id]
        self.run_records = [run for run in self.run_records if run.dag_id != dag_id]
        self.task_records = [task for task in self.task_records if task.dag_id != dag_id]

    def runs(
        self,
        dag_id: str | None = None,
        *,
        states: Sequence[str] = (),
        run_types: Sequence[str] = (),
        run_after: tuple[Instant | None, Instant | None] = (None, None),
        days: TimeWindow | None = None,
    ) -> tuple[RunRecord, ...]:
        self._called("runs", dag_id, *states)
        first, last = run_after
        found = [
            run
            for run in self.run_records
            if (dag_id is None or run.dag_id == dag_id)
            and (not states or run.state in states)
            and (not run_types or run.run_type in run_types)
            and (first is None or run.run_after >= first)
            and (last is None or run.run_after <= last)
            and (days is None or _is_of_days(run, days))
        ]
        return tuple(sorted(found, key=lambda run: run.run_after))

    def newest_scheduled(self, dag_id: str) -> tuple[RunRecord, ...]:
        self._called("newest_scheduled", dag_id)
        found = [run for run in self.run_records if run.dag_id == dag_id and run.run_type == "scheduled"]
        return tuple(sorted(found, key=lambda run: run.run_after)[-1:])

    def run(self, dag_id: str, run_id: str) -> RunRecord:
        self._called("run", dag_id, run_id)
        return self._run(dag_id, run_id)

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
        self._called("tasks", dag_id, run_id)
        return tuple(
            task
            for task in self.task_records
            if dag_id in (None, task.dag_id)
            and run_id in (None, task.run_id)
            and task_id in (None, task.task_id)
            and (not states or task.state in states)
            and _is_like(task.dag_id, dags_like)
            and (ended_since is None or (task.end is not None and task.end >= ended_since))
        )

    def earlier_tries(self, task: TaskRecord) -> tuple[TaskRecord, ...]:
        self._called("earlier_tries", task.dag_id, task.run_id, task.task_id)
        return tuple(replace(task, try_number=number, state="failed") for number in range(1, task.try_number))

    def newest_tasks(self, dag_id: str, *, task_id: str, states: Sequence[str], limit: int) -> tuple[TaskRecord, ...]:
        self._called("newest_tasks", dag_id, task_id)
        found = self.tasks(dag_id, task_id=task_id, states=states)
        self.calls.pop()
        return tuple(sorted(found, key=lambda task: task.start or 0, reverse=True)[:limit])

    def log_lines(self, task: TaskRecord) -> tuple[str, ...]:
        self._called("log_lines", task.dag_id, task.run_id, task.task_id)
        return self.logs.get((task.dag_id, task.run_id, task.task_id), ())

    def patch_run(self, dag_id: str, run_id: str, *, state: str | None = None, note: str | None = None) -> None:
        self._called("patch_run", dag_id, run_id, state, note)
        run = self._run(dag_id, run_id)
        changed = replace(run, state=state or run.state, note=run.note if note is None else note)
        self.run_records[self.run_records.index(run)] = changed
        if state == "failed":  # as Airflow does with the tasks of a run that is failed by hand
            self.task_records = [
                replace(task, state="failed") if (task.dag_id, task.run_id) == (dag_id, run_id) else task
                for task in self.task_records
            ]

    def clear_failed(self, dag_id: str, run_id: str) -> None:
        self._called("clear_failed", dag_id, run_id)
        run = self._run(dag_id, run_id)
        self.run_records[self.run_records.index(run)] = replace(run, state="queued")

    def trigger(
        self,
        dag_id: str,
        *,
        partition_key: str | None = None,
        params: Mapping[str, Any] | None = None,
        note: str | None = None,
        run_id: str | None = None,
    ) -> RunRecord:
        self._called("trigger", dag_id, partition_key, dict(params or {}))
        self._known(dag_id)
        date = self._date_of(dag_id, partition_key) if partition_key else None
        return self._add(dag_id, "manual", key=partition_key, date=date, conf=params or {}, note=note, run_id=run_id)

    def plan_backfill(self, request: BackfillRequest) -> tuple[str, ...]:
        self._called("plan_backfill", request)
        self._known(request.dag_id)
        starts = [start for start in self._dates(request) if self._runs_again(request, start)]
        labels = [self._label(request.dag_id, start) for start in starts]
        return tuple(reversed(labels) if request.backwards else labels)

    def create_backfill(self, request: BackfillRequest) -> BackfillRecord:
        self._called("create_backfill", request)
        if any(each.completed is None and each.dag_id == request.dag_id for each in self.backfill_records):
            detail = f"There is already a running backfill for dag {request.dag_id}"
            raise Conflict(f"backfilling {request.dag_id}", status=409, detail=detail)
        labels = self.plan_backfill(request)
        self.calls.pop()
        for label in labels:
            date = self._date_of(request.dag_id, label)
            self._add(request.dag_id, "backfill", key=label, date=date, conf=request.conf, note=None, run_id=None)
        record = BackfillRecord(len(self.backfill_records) + 1, request.dag_id, request.first, request.last)
        self.backfill_records.append(record)
        return record

    def backfills(self, dag_id: str) -> tuple[BackfillRecord, ...]:
        self._called("backfills", dag_id)
        return tuple(each for each in self.backfill_records if each.dag_id == dag_id)

    def import_errors(self) -> tuple[ImportErrorRecord, ...]:
        self._called("import_errors")
        return tuple(self.errors)

    def task_state(self, dag_id: str, run_id: str, *, task_id: str, key: str) -> Any:
        self._called("task_state", dag_id, run_id, task_id, key)
        return self.task_states.get((dag_id, run_id, task_id, key))

    def handed_on(self, dag_id: str, key: str, run_ids: Container[str]) -> Mapping[str, tuple[Any, ...]]:
        self._called("handed_on", dag_id, key)
        found: dict[str, tuple[Any, ...]] = {}
        for (of, run_id, _, name), value in sorted(self.xcoms.items()):
            if (of, name) == (dag_id, key) and run_id in run_ids:
                found[run_id] = (*found.get(run_id, ()), value)
        return found

    def asset_state(self, asset: str, key: str) -> Any:
        self._called("asset_state", asset, key)
        return self.states.get((asset, key))

    def asset_states(self, asset: str) -> Mapping[str, Any]:
        self._called("asset_states", asset)
        return {key: value for (of, key), value in self.states.items() if of == asset}

    def keep_asset_state(self, asset: str, key: str, value: Any) -> bool:
        self._called("keep_asset_state", asset, key)
        if asset not in self.assets:
            return False
        self.states[asset, key] = value
        return True

    def drop_asset_state(self, asset: str, key: str) -> None:
        self._called("drop_asset_state", asset, key)
        self.states.pop((asset, key), None)

    def add_asset_event(self, asset: str, partition_key: str, extra: Mapping[str, Any]) -> bool:
        self._called("add_asset_event", asset, partition_key)
        return asset in self.assets

    def config_value(self, section: str, option: str) -> str | None:
        self._called("config_value", section, option)
        return self.config.get((section, option))

    def _called(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, *arguments))
        self.before(name)

    def _known(self, dag_id: str) -> DagRecord:
        if dag_id not in self.dag_records:
            raise NotThere(f"looking for {dag_id}", status=404, detail=f"The Dag with ID: `{dag_id}` was not found")
        return self.dag_records[dag_id]

    def _run(self, dag_id: str, run_id: str) -> RunRecord:
        for run in self.run_records:
            if (run.dag_id, run.run_id) == (dag_id, run_id):
                return run
        raise NotThere(f"looking for the run {run_id} of {dag_id}", status=404, detail="no such run")

    def _date_of(self, dag_id: str, key: str) -> Instant | None:
        if dag_id in self.jobs:
            return parse_instant(key)
        return self.specs[dag_id].start_of(key) if dag_id in self.specs else None

    def _dates(self, request: BackfillRequest) -> Sequence[Instant]:
        if request.dag_id in self.jobs:
            return list(self.jobs[request.dag_id].starts(request.first, request.last + 1))
        grid = self.specs[request.dag_id].grid
        return range(grid.ceil(request.first), request.last + 1, grid.interval)

    def _label(self, dag_id: str, start: Instant) -> str:
        return self.jobs[dag_id].label(start) if dag_id in self.jobs else self.specs[dag_id].label(start)

    def _runs_again(self, request: BackfillRequest, start: Instant) -> bool:
        """As Airflow decides it: by the newest run of the partition; a run under way is never doubled."""
        earlier = [run for run in self.run_records if run.dag_id == request.dag_id and run.partition_date == start]
        if not earlier:
            return True
        newest = earlier[-1].state
        return (newest == "failed" and request.reprocess is Reprocess.FAILED) or (
            request.reprocess is Reprocess.COMPLETED and newest in ("success", "failed")
        )

    def _add(
        self,
        dag_id: str,
        kind: str,
        *,
        key: str | None,
        date: Instant | None,
        conf: Mapping[str, Any],
        note: str | None,
        run_id: str | None,
    ) -> RunRecord:
        name = run_id or f"{kind}__{key or 'none'}__{len(self.run_records)}"
        if any((run.dag_id, run.run_id) == (dag_id, name) for run in self.run_records):
            raise Conflict(f"triggering {dag_id}", status=409, detail=f"there is a run {name} already")
        run = RunRecord(dag_id, name, kind, "queued", key, date, conf=dict(conf), note=note)
        self.run_records.append(run)
        return run


def _is_like(dag_id: str, part: str) -> bool:
    """As SQL's ILIKE with a part of a name: ``_`` is any one character."""
    pattern = "".join("." if letter == "_" else re.escape(letter) for letter in part)
    return re.search(pattern, dag_id, re.IGNORECASE) is not None


def _is_of_days(run: RunRecord, days: TimeWindow) -> bool:
    return run.partition_date is not None and days.start // DAY <= run.partition_date // DAY <= (days.end - 1) // DAY
