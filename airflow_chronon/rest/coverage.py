"""From Airflow's records to the partitions that they cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from airflow_chronon.core.conf import Mode
from airflow_chronon.core.grid import PartitionGrid
from airflow_chronon.core.instants import DAY, Instant, TimeWindow
from airflow_chronon.core.partition_states import KnownRun
from airflow_chronon.core.requests import RunRequest, requested_run
from airflow_chronon.core.runs import Run, RunSchedule
from airflow_chronon.core.turns import BUSY_STATES, Writer
from airflow_chronon.errors import ChrononError
from airflow_chronon.rest.errors import NotThere
from airflow_chronon.rest.protocol import AirflowServer
from airflow_chronon.rest.records import RunRecord

#: A scheduled run is named by its newest partition, and its oldest may be that many seconds older: a yearly one's.
LONGEST_RUN = 366 * DAY


def run_of_record(record: RunRecord, schedule: RunSchedule, *, now: Instant) -> Run | None:
    """The run that a record stands for; None when it asks for no partition, or for one that there cannot be."""
    request = RunRequest(
        partition_key=record.partition_key or "",
        is_scheduled=record.run_type == "scheduled",
        start_ds=_text(record, "start_ds"),
        end_ds=_text(record, "end_ds"),
        window=record.window,
    )
    try:
        return requested_run(request, schedule, now=now)
    except ChrononError:  # it fails in its own first task, and writes nothing
        return None


def known_runs(records: Iterable[RunRecord], schedule: RunSchedule, *, now: Instant) -> list[KnownRun]:
    """The runs that cover partitions, each with its window."""
    found = []
    for record in records:
        run = run_of_record(record, schedule, now=now)
        if run is not None:
            order = (float(record.start or record.run_after), record.run_id)
            is_scheduled = record.run_type == "scheduled"
            found.append(KnownRun(record.run_id, record.state, is_scheduled, run.window, order))
    return found


def runs_covering(
    server: AirflowServer, dag_id: str, window: TimeWindow, *, grid: PartitionGrid, states: Sequence[str] = ()
) -> tuple[RunRecord, ...]:
    """The runs that may cover partitions of a window: by their keys, or manual ones by their params."""
    # only a daily grid has runs of more than one partition (C2, C6)
    reach = TimeWindow(window.start, window.end + (LONGEST_RUN if grid.interval == DAY else 0))
    keyed = server.runs(dag_id, states=states, days=reach)
    seen = {record.run_id for record in keyed}
    manual = server.runs(dag_id, states=states, run_types=("manual",), run_after=(window.start, None))
    return (*keyed, *(record for record in manual if record.run_id not in seen and record.partition_key is None))


def writers(
    server: AirflowServer, dag_id: str, task_id: str, mode: Mode, schedule: RunSchedule, *, now: Instant, but: str
) -> Iterator[Writer]:
    """The work tasks of a DAG that have begun and not ended, with the partitions that they write; not the run ``but``.

    One call when nobody else is at work, else one more per other run.
    """
    for task in server.tasks(dag_id, task_id=task_id, states=BUSY_STATES):
        if task.start is None or task.run_id == but:
            continue
        try:
            record = server.run(dag_id, task.run_id)
        except NotThere:  # deleted meanwhile
            continue
        run = run_of_record(record, schedule, now=now)
        of = None if run is None else run.modes.get(mode)
        if of is not None:
            yield Writer(task.run_id, task.start, of.window)


def _text(record: RunRecord, name: str) -> str:
    value = record.conf.get(name)
    return value if isinstance(value, str) else ""
