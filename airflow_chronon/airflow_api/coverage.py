"""From Airflow's records to the partitions and intervals that they cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import BackfillRecord, RunRecord
from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.runs.states import KnownRun
from airflow_chronon.core.runs.task_ids import GATE_PREFIX, LAST_TASK, READY_TASK, WAIT_PREFIX
from airflow_chronon.core.schedules.base import AnySchedule
from airflow_chronon.core.schedules.request import RunRequest, given_parameters
from airflow_chronon.core.waits.max_lag import LAGGING_KEY, lagging_from_json

_BEGUN = ("running", "restarting", "deferred", "up_for_reschedule", "up_for_retry", "success", "failed")
#: A scheduled run is named by its newest partition, and its oldest may be that many seconds older: a yearly one's.
LONGEST_RUN = 366 * DAY


def request_of_record(record: RunRecord) -> RunRequest:
    """What the run of a record was asked for."""
    return RunRequest(
        partition_key=record.partition_key or "",
        is_scheduled=record.run_type == "scheduled",
        interval=record.window,
        asked_at=record.run_after or None,
        **given_parameters(record.conf),
    )


def known_runs(records: Iterable[RunRecord], schedule: AnySchedule, *, now: Instant) -> list[KnownRun]:
    """The runs that are for partitions, or intervals of a job, each with its window."""
    found = []
    for record in records:
        request = request_of_record(record)
        run = schedule.recorded(request, now=now)
        if run is not None:
            window = TimeWindow(schedule.starts_of(run)[0], run.end)
            order = (float(record.start or record.run_after), record.run_id)
            fills = schedule.fills(run)
            found.append(
                KnownRun(record.run_id, record.state, request.is_scheduled, window, order, fills, conf=record.conf)
            )
    return found


def with_skipped(runs: Iterable[KnownRun], server: AirflowServer, dag_id: str) -> list[KnownRun]:
    """The runs of a conf, those marked that ended well and were skipped: their last task tells (C30)."""
    skipped = {task.run_id for task in server.tasks(dag_id, task_id=LAST_TASK, states=("skipped",))}
    return [replace(run, was_skipped=run.state == "success" and run.run_id in skipped) for run in runs]


def with_lagging(runs: Iterable[KnownRun], server: AirflowServer, dag_id: str) -> list[KnownRun]:
    """The runs of a conf, each with what it went without (``max_lag``): its waits have kept it."""
    found = list(runs)
    kept = server.handed_on(dag_id, LAGGING_KEY, {run.run_id for run in found})
    return [
        replace(run, lagging=tuple(each for value in kept.get(run.run_id, ()) for each in lagging_from_json(value)))
        for run in found
    ]


def has_begun_work(server: AirflowServer, run: RunRecord) -> bool:
    """Whether a task of an active run has begun that does the run's own work: one that is no wait, nor only joins them."""
    if run.state == "queued":
        return False
    return any(
        task.start is not None and task.state in _BEGUN
        for task in server.tasks(run.dag_id, run.run_id)
        if task.task_id != READY_TASK and not task.task_id.startswith((WAIT_PREFIX, GATE_PREFIX))
    )


def stranded_runs(server: AirflowServer, records: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """Those of the runs that are queued and that Airflow never starts: they were cleared after their backfill was cancelled.

    Airflow starts no run of a cancelled backfill, and does not tell of which backfill a run is: of one whose partition lies in a
    cancelled one, and in none that is active, it is taken that it is stranded. Asked is one list per DAG, where such a
    run may be.
    """
    queued = [run for run in records if run.run_type == "backfill" and run.state == "queued"]
    backfills = {dag_id: server.backfills(dag_id) for dag_id in sorted({run.dag_id for run in queued})}
    return tuple(run for run in queued if _is_stranded(run, backfills[run.dag_id]))


def _is_stranded(run: RunRecord, backfills: Sequence[BackfillRecord]) -> bool:
    date = run.partition_date
    found = [each for each in backfills if date is not None and each.first <= date <= each.last]
    return any(each.was_cancelled for each in found) and all(each.completed is not None for each in found)


def with_stranded(runs: Iterable[KnownRun], records: Iterable[RunRecord], server: AirflowServer) -> list[KnownRun]:
    """The runs of one DAG, those marked that Airflow never starts; ``records`` are what they were read from."""
    stranded = {record.run_id for record in stranded_runs(server, records)}
    return [replace(run, is_stranded=run.run_id in stranded) for run in runs]


def runs_covering(
    server: AirflowServer, dag_id: str, window: TimeWindow, *, grid: PartitionGrid | None, states: Sequence[str] = ()
) -> tuple[RunRecord, ...]:
    """The runs that may cover partitions of a window: by their keys, or manual ones by their params. A job has no grid."""
    # only a daily grid has runs of more than one partition (C2, C6)
    reach = TimeWindow(window.start, window.end + (LONGEST_RUN if grid is not None and grid.interval == DAY else 0))
    keyed = server.runs(dag_id, states=states, days=reach)
    if grid is None:
        return keyed
    seen = {record.run_id for record in keyed}
    manual = server.runs(dag_id, states=states, run_types=("manual",), run_after=(window.start, None))
    return (*keyed, *(record for record in manual if record.run_id not in seen and record.partition_key is None))
