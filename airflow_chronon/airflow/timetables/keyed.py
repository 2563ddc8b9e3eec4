"""The base class of the timetables of confs and of jobs: runs with a partition key, in the form that Airflow needs.

Airflow's own words: the *partition key* names the interval, the *partition date* is the interval's start. A scheduled run
has both and a data interval; a replay and a manual run by key have a key and no interval. The key always wins.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic

import pendulum
from airflow.exceptions import InvalidPartitionKeyError
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable
from airflow.utils.types import DagRunType

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.timetables.run_history import holds_logical_date, newest_scheduled, was_only_waiting
from airflow_chronon.core.calendar.instants import Instant, from_datetime, to_datetime
from airflow_chronon.core.partitions.labels import PartitionKey, in_run_id
from airflow_chronon.core.partitions.limits import MOST_OF_A_RUN
from airflow_chronon.core.schedules.base import RunT, Schedule
from airflow_chronon.errors import ChrononError, Fault

if TYPE_CHECKING:
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun


class KeyedTimetable(Timetable, Generic[RunT]):
    """Runs of a schedule of intervals (H8 to H12).

    Every method is total: what could be wrong fails when the schedule is built, never inside the scheduler.
    """

    partitioned = True
    periodic = True
    run_ordering = ("partition_date", "run_after")

    def __init__(self, schedule: Schedule[RunT], *, summary: str) -> None:
        self._schedule = schedule
        self._summary = summary

    @property
    def summary(self) -> str:
        return self._summary

    @property
    def runs(self) -> Schedule[RunT]:
        """The schedule that says which runs there are."""
        return self._schedule

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyedTimetable) and type(other) is type(self) and other._schedule == self._schedule

    def __hash__(self) -> int:
        return hash(self._summary)

    @abstractmethod
    def _end_of(self, info: DagRunInfo | None) -> Instant | None:
        """Where the run that an info stands for ends; None when it stands for none."""

    def _counts_from(self, last: DagRunInfo | None) -> Instant | None:
        """Lower bound for catch-up besides ``last``: earlier fires are neither missed nor pending (H14)."""
        return None

    def _tiled(self, run: RunT, last: DagRunInfo | None) -> RunT:
        """The run as it follows ``last``."""
        return run

    def next_dagrun_info_v2(
        self, *, last_dagrun_info: DagRunInfo | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The next run after the newest scheduled one. The schedule's own start, end and catch-up hold, not
        ``restriction``."""
        known = (self._end_of(last_dagrun_info), self._counts_from(last_dagrun_info))
        run = self._schedule.next_run(max((each for each in known if each is not None), default=None), now())
        if run is None:
            return None
        # A manual run may hold the logical date of this one, and Airflow allows each once: then the key alone must do.
        is_taken = last_dagrun_info is not None and last_dagrun_info.data_interval is not None
        return self._info(self._tiled(run, last_dagrun_info), with_interval=not is_taken)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The same for callers that know intervals only; Airflow itself asks :meth:`next_dagrun_info_v2`."""
        last = last_automated_data_interval
        run = self._schedule.next_run(None if last is None else self._schedule.floor(from_datetime(last.end)), now())
        return None if run is None else self._info(run, with_interval=True)

    def next_run_info_from_dag_model(self, *, dag_model: DagModel) -> DagRunInfo | None:
        """The run to create now. What was planned before an outage may have been overtaken since (H8, H10)."""
        planned = super().next_run_info_from_dag_model(dag_model=dag_model)
        end = self._end_of(planned)
        if planned is None or end is None:
            return planned
        newest = newest_scheduled(dag_model)
        last = None if newest is None else self._info_of_dag_run(newest)
        run = self._waiting_run(dag_model, newest, last) or self._schedule.next_run(end - 1, now())
        if run is None or run.end == end or run.fire > now():
            return planned
        run = self._tiled(run, last)
        # Airflow looks for a run that holds the planned logical date, not this one; a second holder ends the scheduler.
        is_free = not holds_logical_date(dag_model, moment_of(run.interval.start))
        return self._info(run, with_interval=planned.data_interval is not None and is_free)

    def _waiting_run(self, dag_model: DagModel, newest: DagRun | None, last: DagRunInfo | None) -> RunT | None:
        """The run after the newest scheduled one, if its fire has come and was not missed: a busy slot is not an outage (H12)."""
        end = self._end_of(last)
        if newest is None or end is None:
            return None
        run = self._first_waiting(end, dag_model, newest)
        # asked last, and seldom: it may take a look into the audit log
        since = None if run is None else self._counts_from(self.run_info_from_dag_run(dag_run=newest))
        if run is None or since is None or run.fire > since:
            return run
        return self._first_waiting(since, dag_model, newest)

    def _first_waiting(self, end: Instant, dag_model: DagModel, newest: DagRun) -> RunT | None:
        run = self._schedule.first_after(end)
        if run is None or run.fire > now():
            return None
        return run if was_only_waiting(moment_of(run.fire), dag_model, newest) else None

    def iter_partition_dagrun_infos(self, *, earliest: datetime, latest: datetime) -> Iterable[DagRunInfo]:
        """One replay per interval that has ended and starts in ``[earliest, latest]``, both inclusive, whatever the
        schedule. Airflow reads days in its own default zone: their wall clock counts, in UTC.

        More than one replay may have are refused before any is made: Airflow would make their list in its api-server (S7).
        """
        present = now()
        first, last = map(self.localize_partition_datetime, (earliest, latest))
        found = self._schedule.starts(from_datetime(first), min(from_datetime(last) + 1, present))
        starts = tuple(islice(found, MOST_OF_A_RUN + 1))
        if len(starts) > MOST_OF_A_RUN:
            raise _too_many(self._schedule.label(starts[-2]))
        for start in starts:
            if self._schedule.end_of(start) > present:
                return
            yield self._replay_info(start)

    def _decode_partition_date(self, partition_key: str) -> datetime:
        """Where the interval of a key starts. Airflow stores the key as typed, so only its canonical spelling may pass (C27)."""
        try:
            return moment_of(self._schedule.start_of_key(partition_key, now=now()))
        except ChrononError as error:
            raise InvalidPartitionKeyError(str(error)) from None

    def run_info_from_dag_run(self, *, dag_run: DagRun) -> DagRunInfo:
        """What the next run is worked out from: the newest *scheduled* run.

        Airflow offers the newest of scheduled and replayed runs. A replay far ahead would tear a hole into catch-up.
        """
        if dag_run.run_type == DagRunType.SCHEDULED:
            return self._info_of_dag_run(dag_run)
        newest = newest_scheduled(dag_run)
        info = self._of_no_run(dag_run) if newest is None else self._info_of_dag_run(newest)
        if dag_run.run_type == DagRunType.MANUAL and dag_run.logical_date is not None:
            # only asked of a manual run when it holds the logical date of the next scheduled one
            return info._replace(data_interval=DataInterval.exact(pendulum.instance(dag_run.logical_date)))
        return info

    def infer_manual_data_interval(self, *, run_after: pendulum.DateTime) -> DataInterval:
        """A logical date alone does not name an interval (H7): it is empty, and nothing reads it."""
        return DataInterval.exact(run_after)

    def localize_partition_datetime(self, dt: datetime) -> pendulum.DateTime:
        """A bound of partition dates, from the API or the command line: its wall clock is UTC, whatever ``[core]
        default_timezone`` says."""
        return pendulum.instance(dt.replace(tzinfo=None), tz=pendulum.UTC)

    def generate_run_id(
        self, *, run_type: DagRunType, run_after: pendulum.DateTime, data_interval: DataInterval | None, **extra: Any
    ) -> str:
        """``scheduled__<key>``; every other run also has a random part, since a key may be replayed any number
        of times."""
        key: PartitionKey | None = extra.get("partition_key")
        if run_type == DagRunType.SCHEDULED and key:
            return run_type.generate_run_id(suffix=in_run_id(key))
        name = in_run_id(key) if key else run_after.isoformat()
        return run_type.generate_run_id(suffix=f"{name}__{secrets.token_hex(4)}")

    def _info(self, run: RunT, *, with_interval: bool) -> DagRunInfo:
        start, interval = self._schedule.start_of(run), run.interval
        data_interval = DataInterval(moment_of(interval.start), moment_of(interval.end)) if with_interval else None
        return DagRunInfo(moment_of(run.fire), data_interval, moment_of(start), self._schedule.label(start))

    def _replay_info(self, start: Instant) -> DagRunInfo:
        """A replay. Without an interval: Airflow allows one run per logical date, and a replay must work any number of
        times."""
        return DagRunInfo(moment_of(self._schedule.end_of(start)), None, moment_of(start), self._schedule.label(start))

    def _of_no_run(self, dag_run: DagRun) -> DagRunInfo:
        """What a DAG goes on from that has runs, and no scheduled one."""
        return DagRunInfo(pendulum.instance(dag_run.run_after), None)

    def _info_of_dag_run(self, dag_run: DagRun) -> DagRunInfo:
        run_after = pendulum.instance(dag_run.run_after)
        date = None if dag_run.partition_date is None else pendulum.instance(dag_run.partition_date)
        return DagRunInfo(run_after, None, date, dag_run.partition_key)


def moment_of(instant: Instant) -> pendulum.DateTime:
    """The instant as Airflow wants it."""
    # built from its parts: pendulum.from_timestamp takes thirty times as long
    at = to_datetime(instant)
    return pendulum.DateTime(at.year, at.month, at.day, at.hour, at.minute, at.second, tzinfo=pendulum.UTC)


def _too_many(last: PartitionKey) -> Exception:
    """An error of the kind that Airflow's API answers in one sentence."""
    from airflow.models.backfill import InvalidBackfillDateRange  # late: the models of the database come with it

    problem = f"these are more than {MOST_OF_A_RUN} runs, and one backfill has at most so many"
    return InvalidBackfillDateRange(str(Fault("S7", "to_date", problem, f"replay them in pieces, first up to {last}")))
