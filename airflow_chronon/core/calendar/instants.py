"""Instants and half-open windows.

An :data:`Instant` is a whole number of seconds since the epoch, UTC. Integers keep grid arithmetic exact and fast;
only the edges turn them into text or datetimes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

Instant: TypeAlias = int

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR

#: The instants that people may name: the years 1970 to 2199.
SCHEDULABLE = range(7_258_118_400)
#: Seconds of the longest window, offset and lookback: whatever is worked out from them lies within the years of the calendar.
LONGEST_WINDOW = 500 * 366 * DAY


def to_datetime(instant: Instant) -> datetime:
    """The instant as an aware UTC datetime."""
    return datetime.fromtimestamp(instant, UTC)


def from_datetime(value: datetime) -> Instant:
    """The instant of a datetime, its fraction of a second dropped; a naive datetime is UTC (H19)."""
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return int(aware.timestamp() // 1)


def parse_instant(text: str) -> Instant:
    """Read ISO-8601 text; without an offset it is UTC. Raises ValueError on anything else, and outside 1970 to 2199."""
    cleaned = text.strip()
    behind_the_date = cleaned[10:11] if cleaned[4:5] == "-" else cleaned[8:9]
    if behind_the_date not in ("", "T", "t", " "):  # the datetime module takes any character there, and would read the
        raise ValueError(f"{text!r} is no ISO-8601 text")  # minutes of a label as an offset, 1980010112000 as a date
    if cleaned.endswith(("Z", "z")):
        cleaned = cleaned[:-1] + "+00:00"
    instant = from_datetime(datetime.fromisoformat(cleaned))
    if instant not in SCHEDULABLE:
        raise ValueError(f"{text!r} is not within the years 1970 to 2199")
    return instant


def iso(instant: Instant) -> str:
    """ISO-8601 UTC in whole seconds with a ``Z`` (H5)."""
    return to_datetime(instant).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A half-open window ``[start, end)``: closed at the start, open at the end, never empty."""

    start: Instant
    end: Instant

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise ValueError(f"a window must end after it starts: [{self.start}, {self.end})")

    def __str__(self) -> str:
        return f"[{iso(self.start)}, {iso(self.end)})"


def duration_text(seconds: int) -> str:
    """A duration as ``15m``, ``3h`` or ``1d``, in the largest unit that divides it."""
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        if seconds % size == 0 and (seconds or unit == "m"):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
