"""What will become of partitions of a produced table that are not there (C30).

A wait on a table that confs of this tree write must not go on for partitions that no run will ever write. Whether one will
is told by the schedules of the modes that write the table, and by a few facts about the runs that Airflow has made of them.
Nothing here asks Airflow: :class:`WriterHistory` holds what was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.labels import in_run_id
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule, Run

SCHEDULED = "scheduled__"  #: how the ids of scheduled runs begin; the key of the run follows


class Outlook(Enum):
    """What will become of a partition that is not there, the most hopeful first."""

    TO_COME = "to come"  #: a run writes it, or will by itself
    FAILED = "failed"  #: the run that was to write it failed; it may be tried again
    GONE = "gone"  #: it was written, and is not there any more
    PASSED_OVER = "passed over"  #: its run was skipped, since its own inputs will never come
    NEVER = "never"  #: no run will write it

    @property
    def is_hopeless(self) -> bool:
        """Whether waiting for it is waiting for ever."""
        return self in (Outlook.PASSED_OVER, Outlook.NEVER)


_HOPE = {outlook: place for place, outlook in enumerate(Outlook)}


class RunEnd(Enum):
    """How the scheduled run of a partition stands, as its last task tells."""

    UNFINISHED = "unfinished"
    LANDED = "landed"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class TableWriter:
    """One mode of one conf that writes a table, and the DAG that runs it."""

    dag_id: str
    mode: Mode
    schedule: PartitionedSchedule | None  #: None: it cannot be told, as of a conf that is rejected
    is_in_a_cycle: bool = False  #: it reads what the reader writes: it cannot begin before someone gives it a partition

    @property
    def is_known(self) -> bool:
        """Whether the schedule tells which partitions it writes; one that is off may be run by hand (C12)."""
        return self.schedule is not None and self.mode in self.schedule.modes

    @property
    def interval(self) -> int:
        """Of the grid, in seconds."""
        assert self.schedule is not None
        return self.schedule.grid.interval

    def run_of(self, start: Instant) -> Run | None:
        """The scheduled run that writes the partition that starts at ``start``, start and end dates aside."""
        assert self.schedule is not None
        return self.schedule.covering_run(start, mode=self.mode)

    def run_id(self, run: Run) -> str:
        """The id of a scheduled run: the timetable names it so."""
        assert self.schedule is not None
        return f"{SCHEDULED}{in_run_id(self.schedule.key_of(run))}"

    def run_ids_at(self, ends: Iterable[Instant]) -> dict[str, Instant]:
        """The ids of scheduled runs that end at these boundaries, whatever the cron was when Airflow made them (H20)."""
        assert self.schedule is not None
        schedule = self.schedule
        return {f"{SCHEDULED}{in_run_id(schedule.label(end - self.interval))}": end for end in ends}

    def run_ids_before(self, end: Instant, counts: Iterable[int]) -> Iterator[dict[str, Instant]]:
        """The ids of scheduled runs that end before ``end``, each with where it ends, newest first and in batches.

        ``counts`` says how many there are after each batch. Whether Airflow made these runs nobody knows here.
        """
        assert self.schedule is not None
        schedule, total = self.schedule.without_bounds(), 0
        run = schedule.last_run(end - 1)
        while run is not None and (following := schedule.run_after(run.end)) is not None and following.end < end:
            run = following  # it has closed, and fires later
        for count in counts:
            found: dict[str, Instant] = {}
            while run is not None and total < count:
                found[self.run_id(run)] = run.end
                total, run = (
                    total + 1,
                    schedule.last_run(run.end - 1),
                )  # its fire comes before this one's partition closes
            if found:
                yield found


@dataclass(frozen=True)
class WriterHistory:
    """What Airflow knows of the runs of one writer."""

    newest_end: Instant | None  #: where the newest scheduled run ends; None: there is none yet
    ends: Mapping[str, RunEnd] = field(
        default_factory=dict
    )  #: by run id, of the runs that were asked about and are there
    former: Mapping[Instant, RunEnd] = field(default_factory=dict)  #: by where they end, of runs of another cron (H20)
    #: How replays and runs by hand ended, by key as in a run id.
    replays: Mapping[str, RunEnd] = field(default_factory=dict)
    is_replaying: bool = False  #: whether runs are unfinished that are not scheduled ones: they may write anything
    first_start: Instant | None = None  #: no scheduled run's partitions start before this instant, as far as was asked


@dataclass(frozen=True)
class Forecast:
    """What will become of one partition, and by which writer."""

    outlook: Outlook
    dag_id: str
    start: Instant
    key: str = ""  #: its label as the writer writes it; empty where its schedule cannot be told
    is_before_first: bool = False  #: it lies before all scheduled runs of its writer: the table begins later
    is_in_a_cycle: bool = False
    note: str = ""


def runs_to_ask(writer: TableWriter, starts: Iterable[Instant], newest_end: Instant) -> tuple[dict[str, Run], bool]:
    """The scheduled runs, by id, whose state decides about these partitions: those up to the newest one.

    And whether there are partitions that no scheduled run writes, as between those of a schedule that covers the newest only.
    """
    found: dict[str, Run] = {}
    is_outside = False
    for start in starts:
        run = writer.run_of(start)
        is_outside = is_outside or run is None
        if run is not None and run.end <= newest_end:
            found[writer.run_id(run)] = run
    return found, is_outside


def replays_by_key(ends: Mapping[str, RunEnd]) -> dict[str, RunEnd]:
    """How the replays and runs by hand of each partition ended, by its key as in a run id; ``ends`` are all runs by id.

    Their ids do not tell which of several is the newest: one that failed counts, then one that landed.
    """
    found: dict[str, RunEnd] = {}
    for run_id, end in ends.items():
        if run_id.startswith(SCHEDULED) or end not in (RunEnd.FAILED, RunEnd.LANDED):
            continue
        key = run_id.partition("__")[2].rpartition("__")[0]
        if key and found.get(key) is not RunEnd.FAILED:
            found[key] = end
    return found


def former_run_ids(writer: TableWriter, runs: Iterable[Run], *, most: int) -> dict[str, Instant]:
    """The ids, each with where it ends, that runs of another cron have which wrote what these runs would (H20).

    ``runs`` are those of today's cron that are not there; one that ends where one of these does has its id. Those of the
    newest runs come first; no further run is looked at when there are ``most``.
    """
    found: dict[str, Instant] = {}
    for run in sorted(runs, key=lambda run: run.end, reverse=True):
        if len(found) >= most:
            break
        ends = range(run.modes[writer.mode].window.start + writer.interval, _end_of_next(writer, run), writer.interval)
        found |= writer.run_ids_at(end for end in ends if end != run.end)
    return found


def forecast(writer: TableWriter, start: Instant, history: WriterHistory, *, now: Instant) -> Forecast:
    """What one writer will make of the partition that starts at ``start`` and is not there.

    ``start`` is a boundary of the table's grid.
    """
    schedule = writer.schedule
    key = "" if schedule is None else schedule.label(start)
    found = Forecast(Outlook.TO_COME, writer.dag_id, start, key, is_in_a_cycle=writer.is_in_a_cycle)
    if schedule is None or not writer.is_known:
        return replace(found, note=f"{writer.dag_id} has no schedule here: it may be run by hand")
    if history.newest_end is None:
        return replace(found, note=f"{writer.dag_id} has not had a scheduled run yet")
    run = writer.run_of(start)
    end = None if run is None or _is_cut_off(schedule, start, run) else _end_of(writer, start, run, history)
    if history.is_replaying and end in (None, RunEnd.SKIPPED):
        return replace(found, note=f"{writer.dag_id} is being replayed")
    if end in (None, RunEnd.SKIPPED):
        end = history.replays.get(in_run_id(key), end)
    if end is not None:
        return replace(found, outlook=_OUTLOOKS[end])
    if run is not None and _is_to_come(schedule, run, history.newest_end, now):
        return found
    before_first = history.first_start is not None and start < history.first_start
    if run is not None and not before_first and _will_be_replayed(schedule, start, run, now):
        return replace(found, note=f"{writer.dag_id} catches up")
    return replace(found, outlook=Outlook.NEVER, is_before_first=before_first)


def best(forecasts: Sequence[Forecast]) -> Forecast:
    """The most hopeful of the forecasts of several writers; among equal ones, that of a writer which had begun by then."""
    return min(forecasts, key=lambda each: (_HOPE[each.outlook], each.is_before_first))


_OUTLOOKS = {
    RunEnd.UNFINISHED: Outlook.TO_COME,
    RunEnd.LANDED: Outlook.GONE,
    RunEnd.SKIPPED: Outlook.PASSED_OVER,
    RunEnd.FAILED: Outlook.FAILED,
}


def _end_of(writer: TableWriter, start: Instant, run: Run, history: WriterHistory) -> RunEnd | None:
    """How the run stands that was to write the partition; None when none is known.

    Where today's cron made none, it is the first one of another cron that ended after the partition's start, unless that
    landed: then it began after it, perhaps. Where there is one that landed, it may be another cron's too, and an earlier
    one was to write the partition.
    """
    found = history.ends.get(writer.run_id(run))
    if found not in (None, RunEnd.LANDED):
        return found
    until = _end_of_next(writer, run) if found is None else run.end
    after = [end for end in history.former if start < end < until]
    former = history.former[min(after)] if after else None
    return found if former in (None, RunEnd.LANDED) else former


def _end_of_next(writer: TableWriter, run: Run) -> Instant:
    """About where the run after this one ends: until there, one of another cron may have been due instead of this one."""
    window = run.modes[writer.mode].window
    return run.end + window.end - window.start


def _is_cut_off(schedule: PartitionedSchedule, start: Instant, run: Run) -> bool:
    """Whether the start date lies within the run, after this partition: the run leaves it out (H9)."""
    return schedule.first_start is not None and start < schedule.first_start < run.end


def _is_to_come(schedule: PartitionedSchedule, run: Run, newest_end: Instant, now: Instant) -> bool:
    """Whether Airflow will create this run by itself: it is not older than the next one that it creates."""
    if run.end <= newest_end:
        return False
    following = schedule.next_run(newest_end, now)
    return following is not None and run.end >= following.end


def _will_be_replayed(schedule: PartitionedSchedule, start: Instant, run: Run, now: Instant) -> bool:
    """Whether a schedule that catches up owes the partition, though a later run is there already (H10, H11, H13)."""
    policy = schedule.catch_up
    if not policy.enabled or (policy.skip_to is not None and start < policy.skip_to):
        return False
    if schedule.first_start is not None and start < schedule.first_start:
        return False
    if policy.end is not None and run.end > policy.end:
        return False
    oldest = schedule.next_run(None, now)  # as if it were new: what the cap keeps
    return policy.max_runs is None or (oldest is not None and run.end >= oldest.end)
