"""The protocol of an Airflow: what the REST client does, and the fake of tests."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from airflow_chronon.airflow_api.records import (
    BackfillRecord,
    BackfillRequest,
    DagRecord,
    ImportErrorRecord,
    RunRecord,
    TaskRecord,
)
from airflow_chronon.core.calendar.instants import Instant, TimeWindow


@runtime_checkable
class AirflowServer(Protocol):
    """What this package asks of an Airflow.

    Every call blocks on I/O. Lists are complete: pages are fetched until there are no more.

    Raises :class:`airflow_chronon.airflow_api.errors.AirflowRefused` (or its subclasses ``NotThere``, ``Conflict``,
    ``NoRights``) when Airflow says no, and ``AirflowUnreachable`` when it does not answer.
    """

    def dags(self, *, tags: Sequence[str] = (), like: str = "") -> tuple[DagRecord, ...]:
        """The DAGs that carry every tag, by id. ``like`` is a part of their ids, where ``_`` stands for any one character."""

    def dag(self, dag_id: str) -> DagRecord | None:
        """One DAG, or None when Airflow does not know it."""

    def set_paused(self, dag_id: str, *, paused: bool) -> None: ...

    def parse_soon(self, dag_id: str) -> None:
        """Have Airflow fetch the bundle of a DAG and parse its file now; when it was asked for already, that is enough.
        ``NotThere`` when it does not know the DAG."""

    def delete_dag(self, dag_id: str) -> None:
        """Drop a DAG with all its history. ``Conflict`` while a task of it runs, ``NotThere`` when it is gone."""

    def runs(
        self,
        dag_id: str | None = None,
        *,
        states: Sequence[str] = (),
        run_types: Sequence[str] = (),
        run_after: tuple[Instant | None, Instant | None] = (None, None),
        days: TimeWindow | None = None,
    ) -> tuple[RunRecord, ...]:
        """The runs of a DAG, or of all of them, oldest first; ``run_after`` bounds both ends, inclusive.

        ``days`` keeps the runs whose partition starts on one of the days that it touches; only with a ``dag_id``.
        """

    def newest_scheduled(self, dag_id: str) -> tuple[RunRecord, ...]:
        """The newest scheduled run of a DAG; nothing when it has none."""

    def run(self, dag_id: str, run_id: str) -> RunRecord: ...

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
        """Task instances of a run, of a DAG, or of all whose ids hold ``dags_like``, as in :meth:`dags`.

        With ``ended_since``, those that ended at that instant or later.
        """

    def earlier_tries(self, task: TaskRecord) -> tuple[TaskRecord, ...]:
        """The tries of a task instance before the present one, oldest first."""

    def newest_tasks(self, dag_id: str, *, task_id: str, states: Sequence[str], limit: int) -> tuple[TaskRecord, ...]:
        """The task instances of a DAG's runs that began last, newest first; at most ``limit``, which is at most 100."""

    def log_lines(self, task: TaskRecord) -> tuple[str, ...]:
        """The lines of the log of a task's last try, oldest first; nothing when there is none."""

    def patch_run(self, dag_id: str, run_id: str, *, state: str | None = None, note: str | None = None) -> None:
        """Set the state (``failed``, ``success``, ``queued``) or the note of a run."""

    def clear_failed(self, dag_id: str, run_id: str) -> None:
        """Let the failed tasks of a run, and what they held up, be done again."""

    def trigger(
        self,
        dag_id: str,
        *,
        partition_key: str | None = None,
        params: Mapping[str, Any] | None = None,
        note: str | None = None,
        run_id: str | None = None,
    ) -> RunRecord:
        """Start a run by its partition key, or by its params, or by neither."""

    def plan_backfill(self, request: BackfillRequest) -> tuple[str, ...]:
        """The partition keys that Airflow would run; nothing is created."""

    def create_backfill(self, request: BackfillRequest) -> BackfillRecord:
        """``Conflict`` when the DAG has an active backfill."""

    def backfills(self, dag_id: str) -> tuple[BackfillRecord, ...]:
        """Every backfill of a DAG, oldest first."""

    def import_errors(self) -> tuple[ImportErrorRecord, ...]: ...

    def task_state(self, dag_id: str, run_id: str, *, task_id: str, key: str) -> Any:
        """The value kept under ``key`` in the state store of a task; None when there is none."""

    def handed_on(self, dag_id: str, key: str, run_ids: Container[str]) -> Mapping[str, tuple[Any, ...]]:
        """What tasks of these runs of a DAG have handed on under ``key`` (Airflow's XComs), by run; runs without any are left out."""

    def asset_state(self, asset: str, key: str) -> Any:
        """The value kept under ``key`` in the state store of the asset with this URI; None when there is none."""

    def asset_states(self, asset: str) -> Mapping[str, Any]:
        """Every value in that state store by its key."""

    def keep_asset_state(self, asset: str, key: str, value: Any) -> bool:
        """Keep a value under ``key`` in the state store of an asset; False where Airflow does not know the asset."""

    def drop_asset_state(self, asset: str, key: str) -> None:
        """Forget what is kept under ``key``, if anything is."""

    def add_asset_event(self, asset: str, partition_key: str, extra: Mapping[str, Any]) -> bool:
        """Add an event of one partition to an asset; False where Airflow does not know the asset."""

    def config_value(self, section: str, option: str) -> str | None:
        """One of Airflow's own settings; None when the server does not show its settings."""
