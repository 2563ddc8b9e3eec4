"""Crons of jobs: Unix fields, Quartz fields and shorthands, all read as one :class:`Cron` (H1).

A Quartz expression is taken apart here and written as five Unix fields when both fire at the same instants. Two things
differ that look alike: Quartz counts weekdays from 1 = SUN, and it never joins day of month and weekday by "or". What five
fields cannot say, a day by its place in the month and years, is laid over them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from airflow_chronon.core.calendar.cron import NEVER, Cron, IllegalCron
from airflow_chronon.core.calendar.special_days import (
    CronByMonth,
    CronOfYears,
    DayRule,
    last_day,
    last_weekday,
    nearest_weekday,
    nth_weekday,
)
from airflow_chronon.errors import Fault

SHORTHANDS: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_REMEDY = f"use five Unix fields, six or seven Quartz fields such as '0 0 * ? * *', or {', '.join(SHORTHANDS)}"
_ITEM = re.compile(r"(?P<first>\*|[0-9]{1,4}|[A-Z]{3})?(?:-(?P<last>[0-9]{1,4}|[A-Z]{3}))?(?:/(?P<step>[0-9]{1,4}))?")
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_ANY = "?"


@dataclass(frozen=True)
class _Field:
    """What one Quartz field may hold."""

    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)


_MINUTE, _HOUR = _Field("minute", 0, 59), _Field("hour", 0, 23)
_DAY = _Field("day-of-month", 1, 31)
_MONTH = _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)})
_WEEKDAY = _Field("weekday", 1, 7, {name: number for number, name in enumerate(_WEEKDAYS, 1)})
_YEAR = _Field("year", 1970, 2099)
_BY_END = re.compile(r"L(?:-([0-9]{1,2}))?")  #: day of month: the last one, or some days before it
_NEAREST = re.compile(r"([0-9]{1,2}|L)W")  #: day of month: the working day nearest to it
_BY_WEEK = re.compile(r"([0-9]|[A-Z]{3})(?:#([0-9]+)|L)")  #: weekday: the n-th of a month, or the last one


@lru_cache(maxsize=4096)
def read_cron(text: str) -> Cron:
    """Read the cron of a job. Raises :class:`IllegalCron`, by rule H1, for what cannot be read or converted exactly."""
    if not text.isascii():  # some letters of other scripts become ASCII ones when their case is changed
        raise _illegal(text, "it holds other characters than those of a cron")
    fields = text.split()
    lowered = " ".join(fields).lower()
    if lowered in SHORTHANDS:
        return Cron(SHORTHANDS[lowered])
    if lowered.startswith("@"):
        raise _illegal(text, "the shorthand is not known")
    if len(fields) in (6, 7):
        return _read_quartz(text, [part.upper() for part in fields])
    if len(fields) != 5:
        raise _illegal(text, f"it has {len(fields)} fields, not 5, 6 or 7")
    try:
        return Cron(lowered)
    except IllegalCron as error:
        raise _illegal(text, error.fault.message.partition(": ")[2]) from None


def _read_quartz(text: str, fields: list[str]) -> Cron:
    second, minute, hour, day, month, weekday, *year = fields
    if second != "0":
        raise _illegal(text, f"the seconds {second!r} are not a single 0, and no schedule is finer than a minute")
    if (day == _ANY) == (weekday == _ANY):
        both = "both of" if day == _ANY else "neither of"
        raise _illegal(text, f"{both} day-of-month and weekday is ?", "put ? in exactly one of them")
    rule = _day_rule(text, day, weekday)
    times = f"{_unix(_MINUTE, _values(text, _MINUTE, minute))} {_unix(_HOUR, _values(text, _HOUR, hour))}"
    months = _values(text, _MONTH, month)
    years = _values(text, _YEAR, year[0]) if year and year[0] != "*" else None
    written = " ".join(fields)
    cron: Cron
    if rule is not None:
        cron = CronByMonth(written, Cron(f"{times} * * *"), months, rule)
    else:
        days = _unix(_DAY, _values(text, _DAY, day))
        weekdays = _unix(_WEEKDAY, _values(text, _WEEKDAY, "SAT" if weekday == "L" else weekday))
        try:
            cron = Cron(f"{times} {days} {_unix(_MONTH, months)} {weekdays}")
        except IllegalCron:  # the fields are known to be good
            raise _never_fires(text) from None
    if years is not None:
        cron = CronOfYears(written, cron, tuple(sorted(years)))
    if cron.first_at_or_after(0) == NEVER:
        raise _never_fires(text)
    return cron


def _day_rule(text: str, day: str, weekday: str) -> DayRule | None:
    """What ``L``, ``W`` and ``#`` ask for; None without one, and for the ``L`` that is every Saturday."""
    if match := _BY_END.fullmatch(day):
        before = int(match[1] or 0)
        if before > 30:
            raise _illegal(text, f"the day-of-month {day!r} lies in no month", "use L-1 to L-30")
        return last_day(before)
    if match := _NEAREST.fullmatch(day):
        return nearest_weekday(None if match[1] == "L" else _number(text, _DAY, match[1]))
    if match := _BY_WEEK.fullmatch(weekday):
        of_week = _number(text, _WEEKDAY, match[1]) - 1
        if match[2] is None:
            return last_weekday(of_week)
        if not 1 <= int(match[2]) <= 5:
            raise _illegal(text, f"the weekday {weekday!r} lies in no month", "use #1 to #5")
        return nth_weekday(of_week, int(match[2]))
    for of, written in ((_DAY, day), (_WEEKDAY, weekday)):
        letters = "".join(item for item in re.split(r"[,/-]", written) if item not in of.names)
        for special in ("#", "W", "L"):
            if special in letters and written != "L":
                problem = f"{special} in the {of.name} {written!r} does not stand alone in its field"
                raise _illegal(text, problem, "write one of L, L-3, 15W and LW, or of L, FRIL and FRI#3 as a weekday")
    return None


def _values(text: str, of: _Field, written: str) -> frozenset[int]:
    if written == _ANY and of in (_DAY, _WEEKDAY):
        return frozenset(range(of.low, of.high + 1))
    return frozenset(value for item in written.split(",") for value in _item(text, of, written, item))


def _item(text: str, of: _Field, written: str, item: str) -> Iterator[int]:
    """The values of one item of a list: ``*``, ``a``, ``a-b``, each with or without a step; a range may wrap around."""

    match = _ITEM.fullmatch(item)
    if match is None or not item or (match["first"] in (None, "*") and match["last"]):
        raise _illegal(text, f"the {of.name} {written!r} cannot be read")
    step = int(match["step"]) if match["step"] else 1
    longest = of.high - of.low if of is _YEAR else of.high
    if not 1 <= step <= longest:
        raise _illegal(text, f"the {of.name} {written!r} has a step that is not within 1 to {longest}")
    first = of.low if match["first"] in (None, "*") else _number(text, of, match["first"])
    is_single = match["step"] is None and match["first"] not in (None, "*")
    last = _number(text, of, match["last"]) if match["last"] else first if is_single else of.high
    size = of.high - of.low + 1
    if last < first and of is _YEAR:
        raise _illegal(text, f"the year {written!r} ends before it begins", "swap its years")
    if last < first:
        last += size
    for value in range(first, last + 1, step):
        yield (value - of.low) % size + of.low


def _number(text: str, of: _Field, part: str) -> int:
    value = of.names[part] if part in of.names else int(part) if part.isdigit() else -1
    if not of.low <= value <= of.high:
        raise _illegal(text, f"the {of.name} {part!r} is not within {of.low} to {of.high}")
    return value


def _unix(of: _Field, values: frozenset[int]) -> str:
    if len(values) == of.high - of.low + 1:
        return "*"
    shift = 1 if of is _WEEKDAY else 0
    spans: list[list[int]] = []
    for value in sorted(values):
        if spans and spans[-1][1] == value - shift - 1:
            spans[-1][1] += 1
        else:
            spans.append([value - shift, value - shift])
    return ",".join(_span(first, last) for first, last in spans)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def _never_fires(text: str) -> IllegalCron:
    return _illegal(text, "it never fires", "choose a day that the calendar has")


def _illegal(text: str, problem: str, remedy: str = _REMEDY) -> IllegalCron:
    return IllegalCron(Fault("H1", "", f"cron {text!r}: {problem}", remedy))
