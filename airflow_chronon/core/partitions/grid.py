"""Partition grids: an interval and an offset, counted from the epoch (C4, C5, C13)."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant, duration_text, iso
from airflow_chronon.errors import ChrononError, Fault

#: Every legal interval, in seconds, shortest first (C4).
LEGAL_INTERVALS: tuple[int, ...] = (
    *(minutes * MINUTE for minutes in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 6, 8, 12)),
    DAY,
)

_LEGAL = frozenset(LEGAL_INTERVALS)
_LEGAL_TEXT = "1d, 1 2 3 4 6 8 12 hours, or 1 2 3 4 5 6 10 12 15 20 30 minutes"


class IllegalGrid(ChrononError):
    """The interval or the offset breaks C4 or C5."""


@dataclass(frozen=True, slots=True)
class PartitionGrid:
    """Boundaries are the instants ``t`` with ``(t - offset) mod interval = 0``. Both are seconds.

    Raises :class:`IllegalGrid` when built with an interval or offset that C4 or C5 forbid, so that no illegal grid exists.
    """

    interval: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.interval not in _LEGAL:
            text = duration_text(self.interval)
            raise IllegalGrid(
                Fault(
                    "C4",
                    "partitionInterval",
                    f"an interval of {text} is none that a table may have",
                    f"use {_LEGAL_TEXT}",
                )
            )
        if not 0 <= self.offset < self.interval:
            text = (
                f"an offset of {duration_text(self.offset)} does not fit an interval of {duration_text(self.interval)}"
            )
            raise IllegalGrid(Fault("C5", "partitionOffset", text, "choose 0 <= offset < interval"))

    def __str__(self) -> str:
        return duration_text(self.interval) + (f"@{duration_text(self.offset)}" if self.offset else "")

    @property
    def is_legacy_daily(self) -> bool:
        """A day that starts at midnight: the grid of confs that say nothing (C3)."""
        return self.interval == DAY and self.offset == 0

    def floor(self, instant: Instant) -> Instant:
        """The newest boundary at or before ``instant``."""
        return (instant - self.offset) // self.interval * self.interval + self.offset

    def ceil(self, instant: Instant) -> Instant:
        """The oldest boundary at or after ``instant``."""
        return -((self.offset - instant) // self.interval) * self.interval + self.offset

    def is_boundary(self, instant: Instant) -> bool:
        return (instant - self.offset) % self.interval == 0

    def starts(self, start: Instant, end: Instant) -> range:
        """The starts of the partitions that overlap ``[start, end)``, oldest first; empty when ``end <= start``."""
        return range(self.floor(start), end, self.interval) if end > start else range(0)

    def lines_up_with(self, producer: PartitionGrid) -> bool:
        """Whether every boundary of this grid is a boundary of the producer's (C13)."""
        return self.interval % producer.interval == 0 and (self.offset - producer.offset) % producer.interval == 0

    def first_cut(self, producer: PartitionGrid) -> Instant:
        """The first boundary since the epoch that falls inside a partition of ``producer``.

        Only for grids that do not line up.
        """
        boundary = self.ceil(0)
        while producer.is_boundary(boundary):
            boundary += self.interval
        return boundary

    def fitting(self, producer: PartitionGrid) -> PartitionGrid:
        """A grid near this one that lines up with ``producer``: the smallest legal interval that is not finer than
        either, on the producer's offset."""
        interval = next(i for i in LEGAL_INTERVALS if i >= self.interval and i % producer.interval == 0)
        step = gcd(interval, producer.interval)
        offset = producer.offset % step + self.offset // step * step
        return PartitionGrid(interval, offset % interval)


def legacy_daily() -> PartitionGrid:
    """The grid of a conf that declares none: midnight days (C3)."""
    return PartitionGrid(DAY)


def misalignment(consumer: PartitionGrid, producer: PartitionGrid) -> str:
    """What C13 says of two grids that do not line up: both grids and the first boundary that cuts."""
    cut = consumer.first_cut(producer)
    start = producer.floor(cut)
    return (
        f"the boundaries of grid {consumer} do not line up with {producer}: {iso(cut)[11:16]} cuts the partition "
        f"[{iso(start)[11:16]}, {_clock_at_end(start, start + producer.interval)})"
    )


def _clock_at_end(start: Instant, end: Instant) -> str:
    """The time of day at which ``[start, end)`` ends: midnight is 24:00, and a day's own start is on the next day."""
    clock = iso(end)[11:16]
    if end % DAY == 0:
        return "24:00"
    return f"{clock} the next day" if end - start == DAY else clock
