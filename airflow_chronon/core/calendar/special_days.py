"""Crons that fire on days which five fields cannot say: by their place in the month, or in some years only (H1)."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import TypeAlias

from airflow_chronon.core.calendar.cron import EPOCH_ORDINAL, Cron
from airflow_chronon.core.calendar.instants import Instant

#: From a month's first weekday (0 = SUN) and its length to one of its days; None when it does not have the asked day.
DayRule: TypeAlias = Callable[[int, int], int | None]

_SATURDAY, _SUNDAY = 6, 0


@dataclass(frozen=True)
class CronByMonth(Cron):
    """A cron that fires on at most one day of a month, such as its last Friday."""

    at: Cron = field(repr=False, compare=False)  #: its times of day, on every day
    months: frozenset[int] = field(repr=False, compare=False)
    rule: DayRule = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", self.at.times)
        object.__setattr__(self, "every_day", False)

    def _days_of(self, year: int, month: int) -> Sequence[int]:
        return _day_by_rule(self, year, month) if month in self.months else ()


@dataclass(frozen=True)
class CronOfYears(Cron):
    """A cron that fires in some years only."""

    any_year: Cron = field(repr=False, compare=False)  #: the same in every year
    only: tuple[int, ...] = field(repr=False, compare=False)  #: the years, in order

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", self.any_year.times)
        object.__setattr__(self, "every_day", False)

    @property
    def years(self) -> Sequence[int]:
        return self.only

    def boundary_at_or_after(self, instant: Instant) -> Instant:
        first = self.first_at_or_after(instant)
        before = self.last_before(first)
        return before if instant <= before and not self.fires_at(before) else first

    def _days_of(self, year: int, month: int) -> Sequence[int]:
        return self.any_year._days_of(year, month)

    def _newest_day(self, day: int) -> int:
        found = self._previous_day(day)
        return self.any_year._newest_day(day) if found is None else found


def last_day(before: int) -> DayRule:
    """``L``, ``L-3``: the last day of a month, or some days before it."""
    return lambda first, length: length - before if length > before else None


def nearest_weekday(wanted: int | None) -> DayRule:
    """``15W``, ``LW``: the working day nearest to a day, or to the last one, within the month."""

    def rule(first: int, length: int) -> int | None:
        day = length if wanted is None else wanted
        if day > length:
            return None
        weekday = (first + day - 1) % 7
        if weekday == _SATURDAY:
            return day - 1 if day > 1 else day + 2
        if weekday == _SUNDAY:
            return day + 1 if day < length else day - 2
        return day

    return rule


def nth_weekday(weekday: int, nth: int) -> DayRule:
    """``MON#3``: the third Monday; ``weekday`` counts from 0 = SUN."""

    def rule(first: int, length: int) -> int | None:
        day = 1 + (weekday - first) % 7 + 7 * (nth - 1)
        return day if day <= length else None

    return rule


def last_weekday(weekday: int) -> DayRule:
    """``FRIL``: the last Friday; ``weekday`` counts from 0 = SUN."""
    return lambda first, length: length - (first + length - 1 - weekday) % 7


@lru_cache(maxsize=4096)
def _day_by_rule(cron: CronByMonth, year: int, month: int) -> tuple[int, ...]:
    begin = date(year, month, 1).toordinal()  # 7 is a Sunday
    day = cron.rule(begin % 7, monthrange(year, month)[1])
    return () if day is None else (begin - EPOCH_ORDINAL + day - 1,)
