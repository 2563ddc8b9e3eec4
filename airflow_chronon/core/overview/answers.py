"""What the page is told: all confs at a glance, one conf over time, one partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from itertools import groupby
from typing import Any

from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow, from_datetime, to_datetime
from airflow_chronon.core.overview.snapshot import ConfSnapshot
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.freshness import judge_freshness
from airflow_chronon.core.runs.skip_reasons import Reason
from airflow_chronon.core.runs.states import Known, KnownRun, PartitionStates, State
from airflow_chronon.core.runs.timeline import Span, timeline
from airflow_chronon.core.waits.dependencies import Wait, merged

Json = dict[str, Any]

#: A letter for each state, in JSON and on the page.
LETTERS = {
    State.LANDED: "L",
    State.STALE: "T",
    State.RUNNING: "R",
    State.QUEUED: "Q",
    State.STRANDED: "W",
    State.FAILED: "F",
    State.MISSING: "M",
    State.ABSENT: "A",
    State.SKIPPED: "S",
    State.DUE: "D",
    State.OPEN: "O",
}
#: Of several partitions in one cell the first that there is, is shown.
_WORST = "FWMTRQDSALO"
MOST_CELLS = 400_000  #: of one answer


class Zoom(Enum):
    """What one cell stands for."""

    PARTITION = "partition"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True)
class LiveDag:
    """What Airflow knows of the DAG of a conf: the runs of a window that say more than that a partition has landed."""

    runs: Sequence[KnownRun] = ()
    halted: Reason | None = None

    def known(self, conf: ConfSnapshot) -> Known:
        return Known(runs=self.runs, revisions=conf.revisions, halted=self.halted)


def overview(
    confs: Iterable[ConfSnapshot], dags: Callable[[ConfSnapshot], LiveDag], *, days: int, now: Instant
) -> list[Json]:
    """A row per conf: how fresh it is, and the worst of each of the last days."""
    last = now // DAY * DAY
    window = TimeWindow(last - (days - 1) * DAY, last + DAY)
    return [_row(conf, dags(conf), window, now=now) for conf in confs]


def _row(conf: ConfSnapshot, dag: LiveDag, window: TimeWindow, *, now: Instant) -> Json:
    schedule, landed = conf.schedule, conf.landed or StartRanges(conf.schedule.grid.interval)
    spans = timeline(schedule, window, landed, dag.known(conf), now=now)
    fresh = judge_freshness(schedule, landed, freshness=conf.freshness, now=now)
    counts = _counts(spans)
    coming = schedule.next_run(None, now)
    days = [_day(letters) for _, letters in _cells(spans, _starts(conf, window), Zoom.DAY)]
    return {
        "dag_id": conf.dag_id,
        "key": conf.key,
        "type": conf.type,
        "team": conf.team,
        "name": conf.name,
        "version": conf.version,
        "tags": list(conf.tags),
        "table": conf.table,
        "grid": str(schedule.grid),
        "interval": schedule.grid.interval,
        "schedule": " | ".join(dict.fromkeys(of.schedule.text for of in schedule.modes.values())),
        "words": conf.words,
        "paused": dag.halted is not None,
        "next_fire": None if coming is None else _next_fire(conf, now),
        "seen": conf.seen,
        "lag": fresh.lag,
        "freshness": conf.freshness,
        "late": len(fresh.late),
        "missing": fresh.missing,
        "failed": counts[State.FAILED] + counts[State.STRANDED],
        "running": counts[State.RUNNING] + counts[State.QUEUED],
        "lamp": _lamp(conf, dag, counts, is_late=bool(fresh.late), is_missing=fresh.missing > 0),
        "cells": [[letter, len(list(group)), *share] for (letter, *share), group in groupby(days)],
    }


def _next_fire(conf: ConfSnapshot, now: Instant) -> Instant | None:
    run = conf.schedule.run_after(conf.schedule.floor(now) - 1)
    while run is not None and run.fire <= now:
        run = conf.schedule.run_after(run.end)
    return None if run is None else run.fire


def neighbour(conf: ConfSnapshot, dag: LiveDag, window: TimeWindow, *, now: Instant) -> Json:
    """A conf beside another one: what it writes, and its lamp for a window."""
    schedule, landed = conf.schedule, conf.landed or StartRanges(conf.schedule.grid.interval)
    fresh = judge_freshness(schedule, landed, freshness=conf.freshness, now=now)
    counts = _counts(timeline(schedule, window, landed, dag.known(conf), now=now))
    lamp = _lamp(conf, dag, counts, is_late=bool(fresh.late), is_missing=fresh.missing > 0)
    return {"dag_id": conf.dag_id, "key": conf.key, "table": conf.table, "grid": str(schedule.grid), "lamp": lamp}


def _counts(spans: Iterable[Span]) -> Counter[State]:
    counts = Counter[State]()
    for span in spans:
        counts[span.state] += span.count
    return counts


def _lamp(conf: ConfSnapshot, dag: LiveDag, counts: Counter[State], *, is_late: bool, is_missing: bool) -> str:
    if conf.landed is None:
        return "unknown"
    if dag.halted is not None:
        return "off"
    if is_late or counts[State.FAILED] or counts[State.STRANDED]:
        return "bad" if counts[State.FAILED] or counts[State.STRANDED] else "late"
    return "late" if is_missing and counts[State.MISSING] else "good"


def timeline_of(conf: ConfSnapshot, dag: LiveDag, window: TimeWindow, zoom: Zoom, *, now: Instant) -> Json:
    """The partitions of one conf that start in a window, each by itself or folded into days or months."""
    schedule, landed = conf.schedule, conf.landed or StartRanges(conf.schedule.grid.interval)
    starts = _starts(conf, window)
    spans = timeline(schedule, window, landed, dag.known(conf), now=now)
    late = judge_freshness(schedule, landed, freshness=conf.freshness, now=now).late
    within = (start for start in late if window.start <= start < window.end)
    answer: Json = {
        "dag_id": conf.dag_id,
        "key": conf.key,
        "table": conf.table,
        "interval": schedule.grid.interval,
        "offset": schedule.grid.offset,
        "format": schedule.spec.format.pattern,
        "seen": conf.seen,
        "zoom": zoom.value,
        "first": starts[0] if starts else None,
        "late": StartRanges.of_starts(within, interval=schedule.grid.interval).to_json(),
    }
    if zoom is Zoom.PARTITION:
        reasons = list(dict.fromkeys(span.reason for span in spans if span.reason))
        place = {reason: number for number, reason in enumerate(reasons)}
        found = [[LETTERS[span.state], span.count, *([place[span.reason]] if span.reason else [])] for span in spans]
        return answer | {"spans": found, "reasons": reasons}
    cells = [[first, sum(letters.values()), dict(letters)] for first, letters in _cells(spans, starts, zoom)]
    return answer | {"cells": cells}


def partition_of(
    conf: ConfSnapshot,
    dag: LiveDag,
    start: Instant,
    confs: Mapping[str, ConfSnapshot],
    *,
    now: Instant,
) -> Json:
    """One partition: its state, what it waits for as far as tables were seen, and what reads it."""
    schedule, landed = conf.schedule, conf.landed or StartRanges(conf.schedule.grid.interval)
    labels = frozenset([schedule.label(start)] if start in landed else [])
    known = Known(labels, dag.runs, revisions=conf.revisions, halted=dag.halted, freshness=conf.freshness)
    row = PartitionStates(schedule, known, now=now).row(start)
    run = schedule.covering_run(start)
    return {
        **row.as_json(),
        "start": start,
        "end": schedule.end_of(start),
        "late_since": row.late_since,
        "reason": row.reason,
        "run_id": row.run_id,
        "fire": None if run is None else run.fire,
        "waits": [_wait_json(conf, wait, confs) for wait in _waits(conf, start)],
        "readers": list(_readers(conf, start, confs)),
    }


def _waits(conf: ConfSnapshot, start: Instant) -> tuple[Wait, ...]:
    run = conf.schedule.covering_run(start)
    of = None if run is None else run.modes.get(conf.schedule.main_mode)
    window = conf.schedule.partition(start) if of is None else of.window
    grid = conf.schedule.grid
    return merged(wait for read in conf.reads for wait in read.waits(window.start, window.end, grid=grid))


def _wait_json(conf: ConfSnapshot, wait: Wait, confs: Mapping[str, ConfSnapshot]) -> Json:
    writer = next((confs[dag_id] for dag_id in conf.writers.get(wait.table, ()) if dag_id in confs), None)
    missing: list[str] | None = None
    if writer is not None and writer.landed is not None and wait.spec is not None:
        decode = wait.spec.format.decode
        missing = [label for label in wait.labels if decode(label) not in writer.landed]
    return {
        "table": wait.table,
        "labels": list(wait.labels),
        "until": wait.until,
        "missing": missing,
        "dag_id": None if writer is None else writer.dag_id,
        "seen": None if writer is None else writer.seen,
    }


def _readers(conf: ConfSnapshot, start: Instant, confs: Mapping[str, ConfSnapshot]) -> Iterator[Json]:
    """The confs that read a partition, with those of their partitions that need it near it."""
    label = conf.schedule.label(start)
    for other in confs.values():
        if not any(conf.dag_id in writers for writers in other.writers.values()) or other.dag_id == conf.dag_id:
            continue
        grid = other.schedule.grid
        near = grid.starts(start, conf.schedule.end_of(start) + 2 * grid.interval)
        found = [
            other.schedule.label(each)
            for each in near
            if any(wait.table == conf.table and label in wait.labels for wait in _waits(other, each))
        ]
        yield {"dag_id": other.dag_id, "key": other.key, "labels": found}


def _starts(conf: ConfSnapshot, window: TimeWindow) -> Sequence[Instant]:
    return conf.schedule.starts(window.start, window.end)


def _cells(spans: Iterable[Span], starts: Sequence[Instant], zoom: Zoom) -> Iterator[tuple[Instant, Counter[str]]]:
    """How many partitions of each state each day or month has, with where its first one starts; oldest first."""
    at, cell = 0, Counter[str]()
    first: Instant | None = None
    until = 0
    for span in spans:
        left = span.count
        while left:
            start = starts[at]
            if first is None or start >= until:
                if first is not None:
                    yield first, cell
                first, cell, until = start, Counter(), _end_of_cell(start, zoom)
            step = starts[1] - starts[0] if len(starts) > 1 else 1
            fits = min(left, max(1, -((start - until) // step)))
            cell[LETTERS[span.state]] += fits
            at, left = at + fits, left - fits
    if first is not None:
        yield first, cell


def _end_of_cell(start: Instant, zoom: Zoom) -> Instant:
    if zoom is Zoom.DAY:
        return (start // DAY + 1) * DAY
    month = to_datetime(start).replace(day=1, hour=0, minute=0, second=0)
    return from_datetime((month + timedelta(days=32)).replace(day=1))


def _day(letters: Mapping[str, int]) -> tuple[str] | tuple[str, int]:
    """The worst letter of a day, and how many eighths of what has closed have not landed where some have."""
    worst = next(letter for letter in _WORST if letters.get(letter))
    closed = sum(letters.values()) - letters.get("O", 0)
    lacking = closed - letters.get("L", 0) - letters.get("T", 0)
    if not lacking or lacking == closed:
        return (worst,)
    return worst, min(7, max(1, round(8 * lacking / closed)))
