"""When the table of a conf and what it reads were written, as Airflow tells it: from which follows what is stale."""

from __future__ import annotations

from airflow_chronon.airflow_api.coverage import known_runs, runs_covering
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.stale import Staleness, WriteTimes, read_windows
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule


def find_staleness(server: AirflowServer, plan: ConfPlan, window: TimeWindow, *, now: Instant) -> Staleness | None:
    """What tells which partitions of a conf's main table in a window are stale; None where no write of it is known.

    A partition was written when the task that does the work of its mode ended well. Of what a conf reads, only what ended after the
    oldest of its own writes is asked for.
    """
    mode, grid = plan.schedule.main_mode, plan.spec.grid
    reads = plan.dependencies.get(mode, ())
    tables = {read.table for read in reads if read.spec is not None} & set(plan.writers)
    if not tables:
        return None
    written = _write_times(server, plan.dag_id, mode, plan.schedule, window, since=window.start, now=now)
    if not written.times:
        return None
    last = TimeWindow(window.end - grid.interval, window.end)
    sources = {}
    for table in sorted(tables):
        # a later partition reads nothing older than an earlier one does, and nothing less new
        found = [
            found
            for read in reads
            for each in (window, last)
            if read.table == table
            for found in read_windows(read, each.start, min(each.end, each.start + grid.interval), grid=grid)
        ]
        if not found:
            continue
        hull = TimeWindow(max(0, min(first or 0 for first, _ in found)), max(end for _, end in found))
        writes = [
            _write_times(server, writer.dag_id, writer.mode, writer.schedule, hull, since=min(written.times), now=now)
            for writer in plan.writers[table]
            if writer.schedule is not None and server.dag(writer.dag_id) is not None
        ]
        sources[table] = WriteTimes.of(
            write for each in writes for write in zip(each.stretches, each.times, strict=True)
        )
    return Staleness(grid, reads, written, sources)


def _write_times(
    server: AirflowServer,
    dag_id: str,
    mode: Mode,
    schedule: PartitionedSchedule,
    window: TimeWindow,
    *,
    since: Instant,
    now: Instant,
) -> WriteTimes:
    """When a mode of a DAG wrote the partitions of a window, as far as that was at ``since`` or later."""
    tasks = server.tasks(dag_id, task_id=mode.value, states=("success",), ended_since=since)
    ended = {task.run_id: int(task.end) for task in tasks if task.end is not None}
    if not ended:
        return WriteTimes()
    records = runs_covering(server, dag_id, window, grid=schedule.grid)
    runs = known_runs((record for record in records if record.run_id in ended), schedule, now=now)
    writes = []
    for run in runs:
        # an upload writes the newest partition of its run (C11)
        start = run.window.end - schedule.grid.interval if mode is Mode.UPLOAD else run.window.start
        writes.append((TimeWindow(start, run.window.end), ended[run.run_id]))
    return WriteTimes.of(writes)
