"""Crons: parsed by croniter, stepped by integers.

croniter decides what an expression means, as it does inside Airflow. Its answers are kept as the fire times of a day and the
matching days of a month, so that stepping costs a few integer operations.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache

from croniter import CroniterBadDateError, CroniterError, croniter

from airflow_chronon.core.calendar.instants import DAY, MINUTE, Instant
from airflow_chronon.errors import ChrononError, Fault

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_RANDOM_OR_HASHED = re.compile(r"(^|,)[RH](\(|/|,|$)", re.I)
_REMEDY = "use five cron fields, @daily or @never"


class IllegalCron(ChrononError):
    """The text is not a cron of five fields, or one that never fires (C1)."""


@dataclass(frozen=True)
class Cron:
    """Five cron fields in the sense of croniter, in UTC. Raises :class:`IllegalCron` when built from anything else."""

    text: str
    times: tuple[int, ...] = field(
        init=False, repr=False, compare=False
    )  #: the fires of a day, in seconds after midnight
    every_day: bool = field(init=False, repr=False, compare=False)  #: whether no day field restricts it

    def __post_init__(self) -> None:
        fields = self.text.split()
        if len(fields) != 5:
            raise _illegal(self.text, f"it has {len(fields)} fields, not 5")
        if any(_RANDOM_OR_HASHED.search(part) for part in fields):
            raise _illegal(self.text, "R and H pick a time at random, so its fires cannot be known")
        try:
            parsed = croniter(self.text)
            minutes, hours, *days = (_values(each) for each in parsed.expanded[:5])
        except (CroniterError, ValueError, KeyError, IndexError) as error:
            raise _illegal(self.text, f"it is not a cron: {error}") from None
        times = tuple(
            sorted(
                (hour * 60 + minute) * MINUTE
                for hour in (range(24) if hours is None else hours)
                for minute in (range(60) if minutes is None else minutes)
            )
        )
        object.__setattr__(self, "times", times)
        exotic = bool(parsed.nth_weekday_of_month or parsed.nearest_weekday)
        object.__setattr__(self, "every_day", not exotic and _every_day(days))
        if not self.every_day:
            try:
                croniter(self.text, datetime(2024, 1, 1, tzinfo=UTC)).get_next(float)
            except CroniterBadDateError:
                raise _illegal(self.text, "it never fires") from None

    def first_at_or_after(self, instant: Instant) -> Instant:
        """The oldest fire at or after ``instant``."""
        day, second = divmod(instant, DAY)
        if not self.every_day:
            matching = self._next_day(day)
            if matching != day:
                return matching * DAY + self.times[0]
        index = bisect_left(self.times, second)
        if index < len(self.times):
            return day * DAY + self.times[index]
        return (day + 1 if self.every_day else self._next_day(day + 1)) * DAY + self.times[0]

    def last_before(self, instant: Instant) -> Instant:
        """The newest fire strictly before ``instant``."""
        day, second = divmod(instant, DAY)
        if not self.every_day:
            matching = self._previous_day(day)
            if matching != day:
                return matching * DAY + self.times[-1]
        index = bisect_left(self.times, second) - 1
        if index >= 0:
            return day * DAY + self.times[index]
        return (day - 1 if self.every_day else self._previous_day(day - 1)) * DAY + self.times[-1]

    def back(self, fire: Instant, count: int, *, not_before: Instant) -> Instant:
        """The fire ``count`` fires before ``fire``, or ``not_before`` when that is later; both are fires themselves."""
        day, second = divmod(fire, DAY)
        days, index = divmod(bisect_left(self.times, second) - count, len(self.times))
        first_day = not_before // DAY
        if self.every_day:
            day += days
        while days < 0 and day >= first_day and not self.every_day:
            day, days = self._previous_day(day - 1), days + 1
        return max(not_before, day * DAY + self.times[index])

    def _next_day(self, day: int) -> int:
        """The first matching day at or after ``day``, both in days since the epoch."""
        at = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month = at.year, at.month
        while True:
            days = _matching_days(self.text, year, month)
            index = bisect_left(days, day)
            if index < len(days):
                return days[index]
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)

    def _previous_day(self, day: int) -> int:
        """The last matching day at or before ``day``."""
        at = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month = at.year, at.month
        while True:
            days = _matching_days(self.text, year, month)
            index = bisect_left(days, day + 1) - 1
            if index >= 0:
                return days[index]
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)


def _illegal(text: str, problem: str) -> IllegalCron:
    return IllegalCron(Fault("C1", "", f"schedule {text!r}: {problem}", _REMEDY))


def _values(expanded: Sequence[int | str]) -> frozenset[int] | None:
    """The values of a field as croniter expanded it; None for a star, alone or in a list. ``l`` (last day) counts for none."""
    return None if "*" in expanded else frozenset(value for value in expanded if isinstance(value, int))


def _every_day(days: Sequence[frozenset[int] | None]) -> bool:
    """Whether day of month, month and weekday are each unrestricted: a star or a list of everything (C2)."""
    everything = ({*range(1, 32)}, {*range(1, 13)}, {*range(7)})
    return all(values is None or full <= values for values, full in zip(days, everything, strict=True))


@lru_cache(maxsize=4096)
def _matching_days(text: str, year: int, month: int) -> tuple[int, ...]:
    """The days of one month on which the cron fires, in days since the epoch."""
    first = date(year, month, 1).toordinal() - _EPOCH_ORDINAL
    end = (first + monthrange(year, month)[1]) * DAY
    at_midnight = " ".join(["0", "0", *text.split()[2:]])
    steps = croniter(at_midnight, float(first * DAY - 1), ret_type=float)
    days = []
    while (fire := steps.get_next(float)) < end:
        days.append(int(fire) // DAY)
    return tuple(days)
