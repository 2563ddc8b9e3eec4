"""Neighbouring intervals as one range: what Airflow can replay at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.schedules.base import AnySchedule


@dataclass(frozen=True)
class LabelRange:
    """Neighbouring partitions or intervals, both ends inclusive."""

    first: Instant  #: start of the oldest
    last: Instant  #: start of the newest
    labels: tuple[PartitionKey, ...]


def label_ranges(starts: Iterable[Instant], schedule: AnySchedule) -> tuple[LabelRange, ...]:
    """The starts as contiguous ranges; ``starts`` and the result are oldest first."""
    groups: list[list[Instant]] = []
    for start in starts:
        if groups and schedule.end_of(groups[-1][-1]) == start:
            groups[-1].append(start)
        else:
            groups.append([start])
    return tuple(LabelRange(group[0], group[-1], tuple(map(schedule.label, group))) for group in groups)
