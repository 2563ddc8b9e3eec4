"""What became of a conf's partitions over a long time, run-length encoded: no object per partition.

It says the same as :func:`airflow_chronon.core.runs.states.partition_rows`, for which decades of minutes would be too many.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.states import Known, PartitionRow, PartitionStates, State
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule

_MOST_SCHEDULES = (
    20  #: revisions of a schedule whose edges are looked for; with more, each partition is judged by itself
)


@dataclass(frozen=True)
class Span:
    """Neighbouring partitions of which the same is true."""

    state: State
    count: int
    reason: str = ""  #: empty where it differs from one to the next


def timeline(
    schedule: PartitionedSchedule, window: TimeWindow, landed: StartRanges, known: Known, *, now: Instant
) -> list[Span]:
    """The partitions that start in a window, as spans, oldest first.

    ``landed`` stands for ``known.landed``, which is not read.
    """
    starts = schedule.starts(window.start, window.end)
    if not starts:
        return []
    states = PartitionStates(schedule, replace(known, landed=_Labels(landed, schedule)), now=now)
    first, end, step = starts[0], starts[-1] + schedule.grid.interval, schedule.grid.interval
    closed_until = min(end, max(first, schedule.grid.floor(now)))  # starts before it have closed
    spans = _Spans()
    at = first
    stale = known.staleness.ranges(first, closed_until) if known.staleness else StartRanges(step)
    special = sorted(start for start in states.runs if first <= start < closed_until)
    for part in (*landed.within(first, closed_until), range(closed_until, closed_until)):
        _judge_gap(spans, range(at, part.start, step), special, states, known, schedule, now)
        _landed_part(spans, part, special, states, stale)
        at = part.stop
    spans.add(State.OPEN, "", (end - closed_until) // step)
    return spans.found


class _Spans:
    """Spans that grow while they are written."""

    def __init__(self) -> None:
        self.found: list[Span] = []

    def add(self, state: State, reason: str, count: int = 1) -> None:
        if count <= 0:
            return
        last = self.found[-1] if self.found else None
        if last is not None and (last.state, last.reason) == (state, reason):
            self.found[-1] = replace(last, count=last.count + count)
        else:
            self.found.append(Span(state, count, reason))

    def add_row(self, row: PartitionRow) -> None:
        self.add(row.state, _lasting_reason(row))


@dataclass(frozen=True)
class _Labels:
    """Landed ranges, asked by label."""

    ranges: StartRanges
    schedule: PartitionedSchedule

    def __contains__(self, label: object) -> bool:
        return self.schedule.spec.format.decode(str(label)) in self.ranges


def _landed_part(
    spans: _Spans, part: range, special: Sequence[Instant], states: PartitionStates, stale: StartRanges
) -> None:
    """Landed partitions, but for those of which a run says something else."""
    at = part.start
    for start in special[bisect_left(special, part.start) : bisect_left(special, part.stop)]:
        _landed_stretch(spans, range(at, start, part.step), stale)
        spans.add_row(states.row(start))
        at = start + part.step
    _landed_stretch(spans, range(at, part.stop, part.step), stale)


def _landed_stretch(spans: _Spans, stretch: range, stale: StartRanges) -> None:
    """Landed partitions of which no run says anything else."""
    at = stretch.start
    for part in stale.within(stretch.start, stretch.stop):
        spans.add(State.LANDED, "", (part.start - at) // stretch.step)
        spans.add(State.STALE, "", len(part))
        at = part.stop
    spans.add(State.LANDED, "", (stretch.stop - at) // stretch.step)


def _judge_gap(
    spans: _Spans,
    gap: range,
    special: Sequence[Instant],
    states: PartitionStates,
    known: Known,
    schedule: PartitionedSchedule,
    now: Instant,
) -> None:
    """Partitions that have not landed: one judgement for all between two edges."""
    if not gap:
        return
    with_run = special[bisect_left(special, gap.start) : bisect_left(special, gap.stop)]
    edges = {*with_run, *(start + gap.step for start in with_run), *_edges(gap, states, known, schedule, now)}
    cuts = sorted(edge for edge in edges if gap.start < edge < gap.stop)
    for first, stop in zip((gap.start, *cuts), (*cuts, gap.stop), strict=True):
        row = states.row(first)
        spans.add(row.state, _lasting_reason(row), (stop - first) // gap.step)


def _edges(
    gap: range, states: PartitionStates, known: Known, schedule: PartitionedSchedule, now: Instant
) -> Iterable[Instant]:
    """The starts at which the reason for having no run may change.

    A reason depends on where the partition starts and closes, when its run fires and where that ends, compared with a few
    instants. Each of these grows with the start, so that its edge is found by bisection.
    """
    if known.runs is None:
        return ()
    held = [revision.schedule for revision in known.revisions if isinstance(revision.schedule, PartitionedSchedule)]
    schedules: list[PartitionedSchedule] = []
    for each in (schedule, *held):
        if each not in schedules:
            schedules.append(each)
    if len(schedules) > _MOST_SCHEDULES or any(_leaves_out(each) for each in schedules):
        return gap
    instants = {now, *(revision.since for revision in known.revisions), *states.skips.instants(schedules)}
    measures: list[Callable[[Instant], Instant]] = [lambda start: start, schedule.end_of]
    for each in schedules:
        measures += [_fire(each), _run_end(each)]
    return {edge for instant in instants for measure in measures for edge in _crossings(gap, measure, instant)}


def _crossings(gap: range, measure: Callable[[Instant], Instant], instant: Instant) -> Iterator[Instant]:
    """Where a measure reaches an instant, and where it passes it."""
    for place in (bisect_left(gap, instant, key=measure), bisect_left(gap, instant + 1, key=measure)):
        if place < len(gap):
            yield gap[place]


def _leaves_out(schedule: PartitionedSchedule) -> bool:
    """Whether the schedule has no run for some partitions."""
    of = schedule.modes.get(schedule.main_mode)
    return of is not None and of.only_newest


def _fire(schedule: PartitionedSchedule) -> Callable[[Instant], Instant]:
    of = schedule.modes.get(schedule.main_mode)
    return (lambda start: start) if of is None else lambda start: of.schedule.first_at_or_after(schedule.end_of(start))


def _run_end(schedule: PartitionedSchedule) -> Callable[[Instant], Instant]:
    fire = _fire(schedule)
    return lambda start: schedule.grid.floor(fire(start))


def _lasting_reason(row: PartitionRow) -> str:
    """The reason of a row, where its neighbours may share it."""
    return "" if row.state in (State.DUE, State.STRANDED, State.STALE) else row.reason


def spans_of(rows: Iterable[PartitionRow]) -> list[Span]:
    """The spans of rows that follow each other, of a job's intervals too."""
    spans = _Spans()
    for row in rows:
        spans.add_row(row)
    return spans.found


def count_of(spans: Iterable[Span], *states: State) -> int:
    """How many partitions are in one of some states."""
    return sum(span.count for span in spans if span.state in states)
