"""The write order: one run at a time writes a partition, the earlier first (C28)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import TimeWindow

#: States of a work task that has begun and may go on writing; without a start it has not begun.
BUSY_STATES = ("running", "deferred", "scheduled", "queued", "restarting")
#: Seconds after its own start at which a writer may trust a listing: those that began before it are visible by then.
SETTLING_SECONDS = 2.0


@dataclass(frozen=True)
class Writer:
    """A work task that has begun, and the whole partitions that it writes."""

    run_id: str
    start: float  #: seconds since the epoch; waiting does not change it, a retry does
    window: TimeWindow

    @property
    def order(self) -> tuple[float, str]:
        return self.start, self.run_id

    def overlaps(self, other: Writer) -> bool:
        return self.window.start < other.window.end and other.window.start < self.window.end


def writers_before(me: Writer, others: Iterable[Writer]) -> tuple[Writer, ...]:
    """The writers that must finish before ``me`` may write, the earliest first; empty when there are none.

    The order is total and no place in it changes during a wait, so that two never wait for each other.
    """
    predecessors = [
        other for other in others if other.run_id != me.run_id and other.overlaps(me) and other.order < me.order
    ]
    return tuple(sorted(predecessors, key=lambda writer: writer.order))
