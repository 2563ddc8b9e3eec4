"""The timetable: runs on a partition grid, told to Airflow as data interval and partition key together.

Airflow's own words: the *partition key* is the label, the *partition date* the partition's start. A scheduled run has both
and a data interval; a replay and a manual run by label have a key and no interval. The key always wins.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.exceptions import InvalidPartitionKeyError
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable
from airflow.utils.types import DagRunType

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.run_history import holds_logical_date, newest_scheduled, was_only_waiting
from airflow_chronon.core.instants import Instant, TimeWindow, from_datetime, to_datetime
from airflow_chronon.core.labels import PartitionKey
from airflow_chronon.core.manual import check_closed
from airflow_chronon.core.runs import Run, RunSchedule
from airflow_chronon.core.wire import schedule_from_json, schedule_to_json
from airflow_chronon.errors import ChrononError

if TYPE_CHECKING:
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun


class PartitionTimetable(Timetable):
    """Runs of one conf version on its partition grid (C8 to C10, C29, H8 to H11).

    Every method is total: what could be wrong fails when the :class:`RunSchedule` is built, never inside the scheduler.
    """

    partitioned = True
    periodic = True
    run_ordering = ("partition_date", "run_after")

    def __init__(self, schedule: RunSchedule) -> None:
        self._runs = schedule
        crons = dict.fromkeys(of.schedule.text for of in schedule.modes.values())
        self._summary = " | ".join(crons) or "@never"
        self.description = f"{self._summary} over partitions of {schedule.spec.grid}"

    @property
    def summary(self) -> str:
        return self._summary

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionTimetable) and other._runs == self._runs

    def __hash__(self) -> int:
        return hash(self._summary)

    def serialize(self) -> dict[str, Any]:
        return schedule_to_json(self._runs)

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(schedule_from_json(data))

    def next_dagrun_info_v2(
        self, *, last_dagrun_info: DagRunInfo | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The next run after the newest scheduled one. The conf's own start, end and catch-up hold, not ``restriction``."""
        last_end = self._end_of(last_dagrun_info)
        run = self._runs.next_run(last_end, now())
        if run is None:
            return None
        # A manual run may hold the logical date of this one, and Airflow allows each once: then the key alone must do.
        is_taken = last_dagrun_info is not None and last_dagrun_info.data_interval is not None
        return self._info(run, with_interval=not is_taken)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The same for callers that know intervals only; Airflow itself asks :meth:`next_dagrun_info_v2`."""
        last = last_automated_data_interval
        run = self._runs.next_run(None if last is None else self._runs.spec.grid.floor(from_datetime(last.end)), now())
        return None if run is None else self._info(run, with_interval=True)

    def next_run_info_from_dag_model(self, *, dag_model: DagModel) -> DagRunInfo | None:
        """The run to create now. What was planned before an outage may have been overtaken since (H8, H10)."""
        planned = super().next_run_info_from_dag_model(dag_model=dag_model)
        end = self._end_of(planned)
        if planned is None or end is None:
            return planned
        run = self._waiting_run(dag_model) or self._runs.next_run(end - self._runs.spec.grid.interval, now())
        if run is None or run.end == end:
            return planned
        # Airflow looks for a run that holds the planned logical date, not this one; a second holder ends the scheduler.
        is_free = not holds_logical_date(dag_model, _moment(run.window.start))
        return self._info(run, with_interval=planned.data_interval is not None and is_free)

    def _waiting_run(self, dag_model: DagModel) -> Run | None:
        """The run after the newest scheduled one, if its fire has come and was not missed: a busy slot is no outage (H12)."""
        last = newest_scheduled(dag_model)
        end = None if last is None else self._end_of(self._info_of_dag_run(last))
        run = None if end is None else self._runs.first_after(end)
        if last is None or run is None or run.fire > now():
            return None
        return run if was_only_waiting(_moment(run.fire), dag_model, last) else None

    def run_info_from_dag_run(self, *, dag_run: DagRun) -> DagRunInfo:
        """What the next run is worked out from: the newest *scheduled* run.

        Airflow offers the newest of scheduled and replayed runs. A replay far ahead would tear a hole into catch-up.
        """
        if dag_run.run_type == DagRunType.SCHEDULED:
            return self._info_of_dag_run(dag_run)
        newest = newest_scheduled(dag_run)
        info = (
            DagRunInfo(pendulum.instance(dag_run.run_after), None) if newest is None else self._info_of_dag_run(newest)
        )
        if dag_run.run_type == DagRunType.MANUAL and dag_run.logical_date is not None:
            # only asked of a manual run when it holds the logical date of the next scheduled one
            return info._replace(data_interval=DataInterval.exact(pendulum.instance(dag_run.logical_date)))
        return info

    def iter_partition_dagrun_infos(self, *, earliest: datetime, latest: datetime) -> Iterable[DagRunInfo]:
        """One replay per closed partition that starts in ``[earliest, latest]``, both inclusive, whatever the schedule."""
        grid, spec = self._runs.spec.grid, self._runs.spec
        newest_start = grid.floor(now()) - grid.interval
        for start in range(
            grid.ceil(from_datetime(earliest)), min(from_datetime(latest), newest_start) + 1, grid.interval
        ):
            # without an interval: Airflow allows one run per logical date, and a replay must work any number of times
            yield DagRunInfo(_moment(start + grid.interval), None, _moment(start), spec.label(start))

    def _decode_partition_date(self, partition_key: str) -> datetime:
        """The start of the partition of a key. Airflow stores the key as typed, so only the canonical label may pass (C27)."""
        spec = self._runs.spec
        try:
            start = spec.start_of(partition_key)
            canonical = spec.label(start)
            if canonical != partition_key:
                raise InvalidPartitionKeyError(f"partition_key: {partition_key!r} is written {canonical!r} (C27).")
            check_closed(TimeWindow(start, start + spec.grid.interval), spec, now=now(), field="partition_key")
        except ChrononError as error:
            raise InvalidPartitionKeyError(str(error)) from None
        return _moment(start)

    def infer_manual_data_interval(self, *, run_after: pendulum.DateTime) -> DataInterval:
        """A logical date alone names no partition (H7): the interval is empty and nothing reads it."""
        return DataInterval.exact(run_after)

    def generate_run_id(
        self, *, run_type: DagRunType, run_after: pendulum.DateTime, data_interval: DataInterval | None, **extra: Any
    ) -> str:
        """``scheduled__<label>``; every other run is also told apart by chance, since a label may be replayed any number
        of times."""
        key: PartitionKey | None = extra.get("partition_key")
        if run_type == DagRunType.SCHEDULED and key:
            return run_type.generate_run_id(suffix=key)
        return run_type.generate_run_id(suffix=f"{key or run_after.isoformat()}__{secrets.token_hex(4)}")

    def _info(self, run: Run, *, with_interval: bool) -> DagRunInfo:
        spec = self._runs.spec
        start = run.end - spec.grid.interval
        interval = DataInterval(_moment(run.window.start), _moment(run.end)) if with_interval else None
        return DagRunInfo(_moment(run.fire), interval, _moment(start), spec.label(start))

    def _info_of_dag_run(self, dag_run: DagRun) -> DagRunInfo:
        run_after = pendulum.instance(dag_run.run_after)
        date = None if dag_run.partition_date is None else pendulum.instance(dag_run.partition_date)
        return DagRunInfo(run_after, None, date, dag_run.partition_key)

    def _end_of(self, info: DagRunInfo | None) -> Instant | None:
        """The end of the partition that a run wrote; on a changed grid, the newest boundary by then (C22)."""
        if info is None or info.partition_date is None:
            return None
        grid = self._runs.spec.grid
        return grid.floor(from_datetime(info.partition_date) + grid.interval)


def _moment(instant: Instant) -> pendulum.DateTime:
    # built from its parts: pendulum.from_timestamp takes thirty times as long
    at = to_datetime(instant)
    return pendulum.DateTime(at.year, at.month, at.day, at.hour, at.minute, at.second, tzinfo=pendulum.UTC)
