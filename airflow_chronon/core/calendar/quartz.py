"""Crons of jobs: Unix fields, Quartz fields and shorthands, all read as one :class:`Cron` (H1).

A Quartz expression is taken apart here and written as five Unix fields only when both fire at the same instants. Two
things differ that look alike: Quartz counts weekdays from 1 = SUN, and it never joins day of month and weekday by "or".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from airflow_chronon.core.calendar.cron import Cron, IllegalCron
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


@lru_cache(maxsize=4096)
def read_cron(text: str) -> Cron:
    """Read the cron of a job. Raises :class:`IllegalCron`, by rule H1, for what cannot be read or converted exactly."""
    fields = text.split()
    lowered = " ".join(fields).lower()
    if lowered in SHORTHANDS:
        return Cron(SHORTHANDS[lowered])
    if lowered.startswith("@"):
        raise _illegal(text, "the shorthand is not known")
    if len(fields) in (6, 7):
        unix = _from_quartz(text, [part.upper() for part in fields])
        try:
            return Cron(unix)
        except IllegalCron:  # the fields are known to be good
            raise _illegal(text, "it never fires", "choose a day that the calendar has") from None
    if len(fields) != 5:
        raise _illegal(text, f"it has {len(fields)} fields, not 5, 6 or 7")
    try:
        return Cron(lowered)
    except IllegalCron as error:
        raise _illegal(text, error.fault.message.partition(": ")[2]) from None


def _from_quartz(text: str, fields: list[str]) -> str:
    """The five Unix fields that fire at the same instants."""
    second, minute, hour, day, month, weekday, *year = fields
    if second != "0":
        raise _illegal(text, f"the seconds {second!r} are not a single 0, and no schedule is finer than a minute")
    if year and year[0] != "*":
        raise _illegal(
            text, f"the year {year[0]!r} has no place in a cron", "leave it out, and set start_time, end_time"
        )
    for of, written in ((_DAY, day), (_WEEKDAY, weekday)):
        _refuse_special(text, of, written)
    if (day == _ANY) == (weekday == _ANY):
        both = "both of" if day == _ANY else "neither of"
        raise _illegal(text, f"{both} day-of-month and weekday is ?", "put ? in exactly one of them")
    restricted = [(_MINUTE, minute), (_HOUR, hour), (_DAY, day), (_MONTH, month), (_WEEKDAY, weekday)]
    return " ".join(_unix(of, _values(text, of, written)) for of, written in restricted)


def _refuse_special(text: str, of: _Field, written: str) -> None:
    letters = "".join(item for item in re.split(r"[,/-]", written) if item not in of.names)
    for special in ("#", "W", "L"):
        if special in letters:
            problem = f"{special} in the {of.name} {written!r} cannot be written in cron fields"
            raise _illegal(text, problem, "name the days, or check for them in the job")


def _values(text: str, of: _Field, written: str) -> frozenset[int]:
    if written == _ANY and of in (_DAY, _WEEKDAY):
        return frozenset(range(of.low, of.high + 1))
    return frozenset(value for item in written.split(",") for value in _item(text, of, written, item))


def _item(text: str, of: _Field, written: str, item: str) -> Iterator[int]:
    """The values of one item of a list: ``*``, ``a``, ``a-b``, each with or without a step; a range may wrap around."""

    def number(part: str) -> int:
        value = of.names[part] if part in of.names else int(part) if part.isdigit() else -1
        if not of.low <= value <= of.high:
            raise _illegal(text, f"the {of.name} {part!r} is not within {of.low} to {of.high}")
        return value

    match = _ITEM.fullmatch(item)
    if match is None or not item or (match["first"] in (None, "*") and match["last"]):
        raise _illegal(text, f"the {of.name} {written!r} cannot be read")
    step = int(match["step"]) if match["step"] else 1
    if not 1 <= step <= of.high:
        raise _illegal(text, f"the {of.name} {written!r} has a step that is not within 1 to {of.high}")
    first = of.low if match["first"] in (None, "*") else number(match["first"])
    is_single = match["step"] is None and match["first"] not in (None, "*")
    last = number(match["last"]) if match["last"] else first if is_single else of.high
    size = of.high - of.low + 1
    if last < first:
        last += size
    for value in range(first, last + 1, step):
        yield (value - of.low) % size + of.low


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


def _illegal(text: str, problem: str, remedy: str = _REMEDY) -> IllegalCron:
    return IllegalCron(Fault("H1", "", f"cron {text!r}: {problem}", remedy))
