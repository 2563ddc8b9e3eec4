"""The timetable of jobs: the intervals between the fires of a schedule. The partition key is the logical date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.timetables.base import DagRunInfo, Timetable

from airflow_chronon.airflow.timetables.keyed import KeyedTimetable
from airflow_chronon.airflow.timetables.run_history import held_until
from airflow_chronon.core.calendar.instants import Instant, from_datetime
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.job_runs import JobRun
from airflow_chronon.core.schedules.serialization import job_schedule_from_json, job_schedule_to_json

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


class HeldRunInfo(DagRunInfo):
    """The run to go on from, of a DAG that was paused by hand after it (H14)."""

    held_until: Instant


class JobTimetable(KeyedTimetable[JobRun]):
    """Runs of one job version (H2, H4, H8 to H15). A scheduled run's data interval is ``[P, F)``.

    The window that the job gets is worked out from it and the schedule: moved or widened, it is not an interval (H2, H3).
    """

    def __init__(self, schedule: IntervalSchedule) -> None:
        cron = schedule.cron.text
        super().__init__(schedule, summary=cron if schedule.enabled else f"{cron} (off)")
        self._job = schedule
        self.description = f"between the fires of {cron} (UTC)"

    def serialize(self) -> dict[str, Any]:
        return job_schedule_to_json(self._job)

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(job_schedule_from_json(data))

    def run_info_from_dag_run(self, *, dag_run: DagRun) -> DagRunInfo:
        """What the next run is worked out from, and until when a pause after it reached: for :meth:`_counts_from`."""
        info = super().run_info_from_dag_run(dag_run=dag_run)
        held = None if self._job.catch_up.enabled else held_until(dag_run, since=info.run_after)
        if held is None:
            return info
        found = HeldRunInfo(*info)
        found.held_until = from_datetime(held)
        return found

    def _counts_from(self, last: DagRunInfo | None) -> Instant | None:
        """Without catch-up nothing of a pause is made up: a DAG that is paused goes on from now, and one that was, from
        when it was unpaused, or seen to be on again."""
        if self._job.catch_up.enabled:
            return None
        known = (self._job.active_since, last.held_until if isinstance(last, HeldRunInfo) else None)
        return max((each for each in known if each is not None), default=None)

    def _tiled(self, run: JobRun, last: DagRunInfo | None) -> JobRun:
        """Under a changed cron too, an interval begins where the one before it ended, if not later: logical dates of one
        job only ever grow, and Airflow allows each once."""
        if last is None or last.partition_key is None:
            return run
        end = from_datetime(last.run_after)
        return self._job.run(end, run.fire) if run.logical_date < end < run.fire else run

    def _end_of(self, info: DagRunInfo | None) -> Instant | None:
        """The fire of a run."""
        return None if info is None or info.partition_date is None else from_datetime(info.run_after)
