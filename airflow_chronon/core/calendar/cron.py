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
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime
from functools import lru_cache

from croniter import CroniterBadDateError, CroniterError, croniter

from airflow_chronon.core.calendar.instants import DAY, MINUTE, SCHEDULABLE, Instant
from airflow_chronon.errors import ChrononError, Fault

#: What stands for the next fire where there is none: the last second of the calendar, at which no cron fires.
NEVER: Instant = SCHEDULABLE.stop - 1
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_RANDOM_OR_HASHED = re.compile(r"(^|,)[RH](\(|/|,|$)", re.I)
_ANY_YEAR = range(MINYEAR, MAXYEAR + 1)
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

    @property
    def years(self) -> Sequence[int]:
        """The years in which it fires, in order: all that the calendar has, unless it is of some years only (H1)."""
        return _ANY_YEAR

    def first_at_or_after(self, instant: Instant) -> Instant:
        """The oldest fire at or after ``instant``; :data:`NEVER` when its years leave none."""
        day, second = divmod(instant, DAY)
        if self.every_day:
            index = bisect_left(self.times, second)
            return day * DAY + self.times[index] if index < len(self.times) else (day + 1) * DAY + self.times[0]
        matching = self._next_day(day)
        if matching == day and second <= self.times[-1]:
            return day * DAY + self.times[bisect_left(self.times, second)]
        if matching == day:
            matching = self._next_day(day + 1)
        return NEVER if matching is None else matching * DAY + self.times[0]

    def last_before(self, instant: Instant) -> Instant:
        """The newest fire strictly before ``instant``; where its years leave none, what it would be without them (H1)."""
        day, second = divmod(instant, DAY)
        if not self.every_day:
            matching = self._newest_day(day)
            if matching != day:
                return matching * DAY + self.times[-1]
        index = bisect_left(self.times, second) - 1
        if index >= 0:
            return day * DAY + self.times[index]
        return (day - 1 if self.every_day else self._newest_day(day - 1)) * DAY + self.times[-1]

    def fires_at(self, instant: Instant) -> bool:
        """Whether it fires at this very instant."""
        return self.first_at_or_after(instant) == instant

    def boundary_at_or_after(self, instant: Instant) -> Instant:
        """The oldest instant at or after ``instant`` at which an interval may begin: a fire, or the one before the first."""
        return self.first_at_or_after(instant)

    def back(self, fire: Instant, count: int, *, not_before: Instant) -> Instant:
        """The fire ``count`` fires before ``fire``, or ``not_before`` when that is later; both are fires themselves."""
        day, second = divmod(fire, DAY)
        days, index = divmod(bisect_left(self.times, second) - count, len(self.times))
        first_day = not_before // DAY
        if self.every_day:
            day += days
        while days < 0 and day >= first_day and not self.every_day:
            day, days = self._newest_day(day - 1), days + 1
        return max(not_before, day * DAY + self.times[index])

    def _days_of(self, year: int, month: int) -> Sequence[int]:
        """The days of a month on which it fires, in days since the epoch."""
        return _matching_days(self.text, year, month)

    def _next_day(self, day: int) -> int | None:
        """The first matching day at or after ``day``, both in days since the epoch; None when its years leave none."""
        at = date.fromordinal(day + EPOCH_ORDINAL)
        for year in self.years[bisect_left(self.years, at.year) :]:
            for month in range(at.month if year == at.year else 1, 13):
                days = self._days_of(year, month)
                index = bisect_left(days, day)
                if index < len(days):
                    return days[index]
        return None

    def _previous_day(self, day: int) -> int | None:
        """The last matching day at or before ``day``; None when its years leave none."""
        at = date.fromordinal(day + EPOCH_ORDINAL)
        for year in reversed(self.years[: bisect_left(self.years, at.year + 1)]):
            for month in range(at.month if year == at.year else 12, 0, -1):
                days = self._days_of(year, month)
                index = bisect_left(days, day + 1) - 1
                if index >= 0:
                    return days[index]
        return None

    def _newest_day(self, day: int) -> int:
        """The last matching day at or before ``day``, in whatever year."""
        found = self._previous_day(day)
        assert found is not None  # it fires, and time has no beginning
        return found


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
    first = date(year, month, 1).toordinal() - EPOCH_ORDINAL
    end = (first + monthrange(year, month)[1]) * DAY
    at_midnight = " ".join(["0", "0", *text.split()[2:]])
    steps = croniter(at_midnight, float(first * DAY - 1), ret_type=float)
    days = []
    while (fire := steps.get_next(float)) < end:
        days.append(int(fire) // DAY)
    return tuple(days)
