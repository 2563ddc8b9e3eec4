"""The tasks of all DAGs that may write what a task is about to write, with their tickets (C28).

Whoever may write a table has its name in the id of his DAG, so that one list tells of all deployments of one Airflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from airflow_chronon.airflow_api.coverage import LONGEST_RUN, request_of_record, runs_covering
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import DagRecord, RunRecord
from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow, duration_text
from airflow_chronon.core.confs.table_ids import UPLOAD, ids_like, may_write
from airflow_chronon.core.partitions.grid import LEGAL_INTERVALS
from airflow_chronon.core.runs.write_order import BUSY_STATES, TaskKey, Ticket, Writer
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule

TICKET_KEY = "chronon_ticket"  #: of a ticket in the state of its task
_TABLE_TASKS = (Mode.BACKFILL.value, Mode.UPLOAD.value)  #: a conf's own table may be called like another's ``__upload``


@dataclass
class Rivals:
    """Those who may write the same as one task, as Airflow lists them now."""

    server: AirflowServer
    task: TaskKey
    ticket: Ticket
    table: str  #: that of the conf: DAG ids hold its name
    _apart: dict[tuple[TaskKey, int], Ticket] = field(default_factory=dict)  #: of tries that write something else

    def writers(self) -> tuple[Writer, ...]:
        """All that have drawn a ticket of the table and have not ended, whatever their partitions.

        One call, and one more for each of them whose ticket may have changed.
        """
        return tuple(self._writers())

    def _writers(self) -> Iterator[Writer]:
        for task_id in _tasks_beside(self.task[2], self.table):
            listed = self.server.tasks(task_id=task_id, states=BUSY_STATES, dags_like=ids_like(self.table))
            for record in listed:
                task, attempt = (record.dag_id, record.run_id, record.task_id), record.try_number
                is_nobody = task == self.task or record.start is None
                if is_nobody or not (task[0] == self.task[0] or may_write(task[0], self.table)):
                    continue
                ticket = self._apart.get((task, attempt)) or ticket_of(self.server, task)
                if ticket is None or ticket.attempt != attempt:
                    continue  # it draws when it begins, and finds this one
                if not ticket.overlaps(self.ticket):
                    self._apart[task, attempt] = ticket
                yield Writer(task, ticket, str(record.state))

    def tasks_of_other_dags(self) -> Iterator[tuple[TaskKey, Ticket]]:
        """Tasks of other DAGs, in whatever state, that drew a ticket for something that overlaps."""
        for dag in self.server.dags(like=ids_like(self.table)):
            if dag.dag_id == self.task[0] or not may_write(dag.dag_id, self.table):
                continue
            for run_id in _runs_near(self.server, dag, self.ticket.window):
                for task_id in _tasks_beside(self.task[2], self.table):
                    task = (dag.dag_id, run_id, task_id)
                    ticket = ticket_of(self.server, task)
                    if ticket is not None and ticket.overlaps(self.ticket):
                        yield task, ticket


def ticket_of(server: AirflowServer, task: TaskKey) -> Ticket | None:
    """The newest ticket of a task; None when it has not drawn one."""
    dag_id, run_id, task_id = task
    data = server.task_state(dag_id, run_id, task_id=task_id, key=TICKET_KEY)
    return None if data is None else Ticket.from_json(data)


def other_runs_of(
    task: TaskKey, window: TimeWindow, mode: Mode, server: AirflowServer, schedule: PartitionedSchedule, *, now: Instant
) -> tuple[str, ...]:
    """The ids of the other runs of its DAG, in whatever state, in which the mode of a task writes partitions of a window."""
    found = []
    for record in runs_covering(server, task[0], window, grid=schedule.spec.grid):
        run = None if record.run_id == task[1] else schedule.recorded(request_of_record(record), now=now)
        of = None if run is None else run.modes.get(mode)
        if of is not None and _overlap(of.window, window):
            found.append(record.run_id)
    return tuple(found)


def _tasks_beside(task_id: str, table: str) -> tuple[str, ...]:
    """The ids of tasks that may write the same as one of this id."""
    is_upload = task_id == Mode.UPLOAD.value or (task_id == Mode.BACKFILL.value and table.endswith(UPLOAD))
    return _TABLE_TASKS if is_upload else (task_id,)


def _runs_near(server: AirflowServer, dag: DagRecord, window: TimeWindow) -> Iterator[str]:
    """The runs of another DAG that may be for partitions of a window: what exactly they write, their tickets tell."""
    grids = [tag.removeprefix("grid:").partition("@")[0] for tag in dag.tags if tag.startswith("grid:")]
    interval = next((each for each in LEGAL_INTERVALS if duration_text(each) in grids), DAY)
    reach = LONGEST_RUN if interval == DAY else 0
    wide = TimeWindow(window.start - interval, window.end + reach)
    seen = set()
    for run in server.runs(dag.dag_id, days=wide):
        seen.add(run.run_id)
        if _may_cover(run, window, interval=interval, reach=reach):
            yield run.run_id
    for run in server.runs(dag.dag_id, run_types=("manual",), run_after=(window.start, None)):
        if run.partition_key is None and run.run_id not in seen:
            yield run.run_id


def _may_cover(run: RunRecord, window: TimeWindow, *, interval: int, reach: int) -> bool:
    start = window.start if run.partition_date is None else run.partition_date
    if run.window is None:
        return _overlap(TimeWindow(start, start + interval), window)
    return _overlap(TimeWindow(min(start, run.window.start) - reach, max(run.window.end, start + interval)), window)


def _overlap(one: TimeWindow, other: TimeWindow) -> bool:
    return one.start < other.end and other.start < one.end
