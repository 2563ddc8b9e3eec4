"""Which partitions are still to be replayed: missed before the settings changed, and never run since (H10, H11, H13)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.limits import MOST, MOST_OF_A_RUN
from airflow_chronon.core.records.record import PendingBackfill
from airflow_chronon.core.runs.states import KnownRun, newest_runs
from airflow_chronon.core.schedules.base import AnySchedule, ScheduledRun
from airflow_chronon.core.schedules.ranges import LabelRange, label_ranges

WHY_PENDING = "missed, and made due by a change of its settings"  #: for plans and for the notes of replays


def pending_ranges(
    pending: PendingBackfill, schedule: AnySchedule, past: Sequence[KnownRun]
) -> tuple[PendingBackfill | None, tuple[LabelRange, ...]]:
    """What is still pending, None once all of it has a run; and what of it can be replayed, as ranges, oldest first.

    While the schedule is off or has not run yet, all stays pending and nothing is replayed.

    The skip date comes first, then the cap over the fires that were missed; the cap is applied once, and remembered as
    ``first``, since a replay makes the missed ones fewer. What follows the newest scheduled run is the timetable's, and
    counts for the cap: so do its runs there. At most :data:`MOST_OF_A_RUN` fires are worked out at a time, the oldest; the rest
    stays pending (S7).
    """
    if not schedule.is_on:
        return pending, ()
    newest = max((run.window.end for run in past if run.is_scheduled), default=None)
    counted = [run for run in past if not pending.forgets or run.is_active or run.order[0] >= pending.until]
    filled, ends = newest_runs(schedule, counted), {run.window.end for run in counted}

    def lacking(run: ScheduledRun) -> list[Instant]:
        """The partitions of a fire that have no run; of one of uploads alone, which has no run that ends with it (C10)."""
        if schedule.fills(run):
            return [start for start in schedule.starts_of(run) if start not in filled]
        return [] if run.end in ends else list(schedule.starts_of(run))

    unlimited = schedule.with_catch_up(replace(schedule.catch_up, enabled=True, max_runs=None))
    limit = schedule.catch_up.max_runs
    if pending.first is None and limit is not None:
        kept = islice(filter(lacking, _newest_first(unlimited, pending.until)), min(limit, MOST))
        missed = list(deque(kept, MOST_OF_A_RUN))[::-1]  # the oldest of those that the cap keeps
    else:
        missed = list(islice(filter(lacking, unlimited.missed(pending.first, pending.until)), MOST_OF_A_RUN))
    if pending.first is None and missed:
        pending = replace(pending, first=min(schedule.starts_of(missed[0])))
    if newest is None:
        return pending, ()
    starts = sorted({start for run in missed if run.end <= newest for start in lacking(run)})
    skip_to = schedule.catch_up.skip_to
    starts = [start for start in starts if skip_to is None or start >= skip_to]
    return pending if starts else None, label_ranges(starts, schedule)


def _newest_first(schedule: AnySchedule, now: Instant) -> Iterator[ScheduledRun]:
    """The runs that have fired by ``now`` and that the skip date keeps, without those before them being worked out."""
    run = schedule.last_run(now)
    while run is not None and schedule.is_kept(run):
        yield run
        run = schedule.newest_before(run.end)
