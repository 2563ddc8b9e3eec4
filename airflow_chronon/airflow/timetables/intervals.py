"""The timetable of jobs: the intervals between the fires of a schedule. The partition key is the logical date."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.timetables.base import DagRunInfo, TimeRestriction, Timetable

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.timetables.keyed import KeyedTimetable, moment_of
from airflow_chronon.airflow.timetables.run_history import (
    held_until,
    held_until_here,
    holds_logical_date,
    newest_scheduled,
)
from airflow_chronon.core.calendar.instants import Instant, from_datetime, to_datetime
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.job_runs import JobRun
from airflow_chronon.core.schedules.serialization import job_schedule_from_json, job_schedule_to_json

if TYPE_CHECKING:
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun


class HeldRunInfo(DagRunInfo):
    """The run to go on from, of a DAG that was paused by hand (H14)."""

    held_until: Instant


class FellIntoPauseError(Exception):
    """A run was planned whose fire came while the DAG was paused: Airflow logs this, and makes none."""


class JobTimetable(KeyedTimetable[JobRun]):
    """Runs of one job (H2, H4, H8 to H15). A scheduled run's data interval is ``[P, F)``.

    The window that the job gets is worked out from it and the schedule: moved or widened, it is not an interval (H2, H3).
    """

    def __init__(self, schedule: IntervalSchedule, dag_id: str = "") -> None:
        cron = schedule.cron.text
        super().__init__(schedule, summary=cron if schedule.enabled else f"{cron} (off)")
        self._job, self._dag_id = schedule, dag_id
        self.description = f"between the fires of {cron} (UTC)"

    def serialize(self) -> dict[str, Any]:
        return {**job_schedule_to_json(self._job), "dag_id": self._dag_id}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(job_schedule_from_json(data), data.get("dag_id", ""))

    def run_info_from_dag_run(self, *, dag_run: DagRun) -> DagRunInfo:
        """What the next run is worked out from, and until when a pause reached: for :meth:`_counts_from`."""
        info = super().run_info_from_dag_run(dag_run=dag_run)
        held = None if self._job.catch_up.enabled else held_until(dag_run)
        return info if held is None else _held(info, held)

    def next_run_info_from_dag_model(self, *, dag_model: DagModel) -> DagRunInfo | None:
        """The run to create now. One that was planned for a fire within a pause gives way to the next (H14).

        Raises :class:`FellIntoPauseError` when that one is yet to come, and plans it.
        """
        info = super().next_run_info_from_dag_model(dag_model=dag_model)
        held = None if info is None or self._job.catch_up.enabled else held_until(dag_model)
        if info is None or held is None or info.run_after > held:
            return info
        newest = newest_scheduled(dag_model)
        last = DagRunInfo(moment_of(from_datetime(held)), None) if newest is None else self._info_of_dag_run(newest)
        following = self.next_dagrun_info_v2(last_dagrun_info=_held(last, held), restriction=_FREE)
        if following is not None and following.run_after <= to_datetime(now()):
            is_taken = holds_logical_date(dag_model, following.logical_date) if following.logical_date else False
            return following._replace(data_interval=None) if is_taken else following
        _plan(dag_model, following)
        raise FellIntoPauseError(
            f"{dag_model.dag_id} was paused until {held}: the run of {info.run_after} is not made up"
        )

    def _counts_from(self, last: DagRunInfo | None) -> Instant | None:
        """Without catch-up nothing of a pause is made up: a DAG that is paused goes on from now, and one that was, from
        when it was unpaused, or seen to be on again."""
        if self._job.catch_up.enabled:
            return None
        held = last.held_until if isinstance(last, HeldRunInfo) else None
        if last is None and (until := held_until_here(self._dag_id)) is not None:
            held = from_datetime(until)
        return max((each for each in (self._job.active_since, held) if each is not None), default=None)

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


_FREE = TimeRestriction(None, None, catchup=True)  #: the schedule's own bounds hold


def _held(info: DagRunInfo, until: datetime) -> HeldRunInfo:
    found = HeldRunInfo(*info)
    found.held_until = from_datetime(until)
    return found


def _plan(dag_model: DagModel, info: DagRunInfo | None) -> None:
    """What Airflow remembers of the next run, as it does itself."""
    dag_model.next_dagrun = None if info is None else info.logical_date
    dag_model.next_dagrun_data_interval = None if info is None else info.data_interval
    dag_model.next_dagrun_partition_key = None if info is None else info.partition_key
    dag_model.next_dagrun_partition_date = None if info is None else info.partition_date
    dag_model.next_dagrun_create_after = None if info is None else info.run_after
