"""Partitions as people type them (C27, C29)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_chronon.core.calendar.instants import (
    DAY,
    SCHEDULABLE,
    Instant,
    TimeWindow,
    from_datetime,
    iso,
    parse_instant,
    to_datetime,
)
from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionSpec
from airflow_chronon.errors import ChrononError, Fault

_DATE = r"(?P<year>[0-9]{4})(?P<sign>[-/])(?P<month>[0-9]{1,2})(?P=sign)(?P<day>[0-9]{1,2})"
_HOUR, _CLOCK = r"(?P<hour>[0-9]{1,2})", r"(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2}))?)?"
_SHAPES = tuple(
    re.compile(shape)
    for shape in (
        _DATE,
        _DATE + " +" + _HOUR + _CLOCK,
        _DATE.replace("[-/]", "-") + "T" + _HOUR + _CLOCK,
        _DATE.replace("[-/]", "-") + "-" + _HOUR + r"(?:[-:](?P<minute>[0-9]{1,2}))?",
    )
)
_REMEDY = "write it like 2026-01-15, 2026-01-15-03-00 or '2026-01-15 03:00'"


class IllegalPartition(ChrononError):
    """A partition that nobody can mean: misspelled, off the grid, inverted, or not closed yet."""


def _refused(field: str, problem: str, remedy: str) -> IllegalPartition:
    return IllegalPartition(Fault("C27", field, problem, remedy))


def read_key(text: str, spec: PartitionSpec) -> Instant:
    """The start of the one partition whose label ``text`` is; only the canonical label is taken, else the two nearest are
    named."""
    try:
        _check_year(spec.format.decode(text), text, spec, "partition_key")
    except IllegalLabel as error:
        try:
            instant, _ = _read(text, spec, "partition_key")
        except IllegalPartition:
            raise error from None
        below = spec.grid.floor(instant)
        near = (below,) if instant == below else (below, below + spec.grid.interval)
        remedy = (
            f"the nearest labels are {' or '.join(map(spec.label, near))}"
            if len(near) > 1
            else f"write {spec.label(below)}"
        )
        raise _refused("partition_key", f"{text!r} is not a label of the grid {spec.grid}", remedy) from None
    start = spec.start_of(text)
    if spec.label(start) != text:
        raise _refused("partition_key", f"{text!r} is not a label", f"write {spec.label(start)}")
    return start


def read_start(text: str, spec: PartitionSpec, *, field: str = "start_ds") -> Instant:
    """The start of the first partition that ``text`` means. A day on a non-legacy grid is floored to the grid."""
    instant, is_day = _read(text, spec, field)
    return spec.grid.floor(instant) if is_day else _on_grid(instant, text, spec, field)


def read_end(text: str, spec: PartitionSpec, *, field: str = "end_ds") -> Instant:
    """The start of the last partition that ``text`` means, inclusive. A day on a non-legacy grid means its last partition."""
    instant, is_day = _read(text, spec, field)
    return spec.grid.floor(instant + DAY - 1) if is_day else _on_grid(instant, text, spec, field)


@dataclass(frozen=True)
class RangeReading:
    """What a range means that someone typed: whole partitions, and in words what the text alone does not say."""

    window: TimeWindow
    notes: tuple[str, ...] = ()


def read_range(start: str, end: str, spec: PartitionSpec, *, now: Instant | None = None) -> RangeReading:
    """The partitions from ``start`` to ``end``, both inclusive and read in time (C27).

    A minute that is no boundary names the partition that holds it. With ``now``, a day as the end means those of its
    partitions that have closed by then, and every other end must have closed; without, the range may reach beyond. Raises
    :class:`IllegalPartition` for what cannot be read, a range that is inverted, and one in which nothing has closed.
    """
    grid = spec.grid
    (first_typed, from_day), (last_typed, to_day) = _read(start, spec, "start_ds"), _read(end, spec, "end_ds")
    last_instant = last_typed + DAY - 1 if to_day else last_typed
    if last_instant < first_typed:
        raise _refused("end_ds", f"{end!r} is before start_ds {start!r}", "swap them")
    first, last = grid.floor(first_typed), grid.floor(last_instant)
    notes = []
    if first != first_typed:
        notes.append(f"{start.strip()} {'begins within' if from_day else 'lies in'} {spec.label(first)}")
    if not to_day and last != last_typed and (end, last) != (start, first):
        notes.append(f"{end.strip()} lies in {spec.label(last)}")
    window = TimeWindow(first, last + grid.interval)
    if now is not None and window.end > now:
        closed = grid.floor(now)
        if closed <= first or not to_day:
            check_closed(
                window if closed > first else TimeWindow(first, first + grid.interval), spec, now=now, field="end_ds"
            )
        open_ones = " to ".join(dict.fromkeys((spec.label(closed), spec.label(last))))
        notes.append(f"left out of {end.strip()}, since it has not closed at {iso(now)}: {open_ones}")
        window = TimeWindow(first, closed)
    return RangeReading(window, tuple(notes))


def check_closed(window: TimeWindow, spec: PartitionSpec, *, now: Instant, field: str) -> None:
    """Refuse a window that ends after ``now``: its last partition has not closed."""
    if window.end > now:
        label = spec.label(window.end - spec.grid.interval)
        newest = spec.label(spec.grid.floor(now) - spec.grid.interval)
        raise _refused(field, f"partition {label} has not closed at {iso(now)}", f"the newest closed one is {newest}")


def read_bound(text: str, spec: PartitionSpec, *, field: str) -> Instant:
    """A start or end date: an instant with ``Z`` or an offset, or a partition (C29).

    The result is an instant: a start date's is the earliest partition start, an end date's is where the last partition ends.
    """
    is_end = field.endswith("end_date")
    try:
        if re.search(r"T.*(Z|[+-][0-9]{2}:?[0-9]{2})$", text.strip(), re.I):
            return parse_instant(text)
    except ValueError:
        raise _refused(field, f"{text!r} is not an instant", "write it like 2026-01-15T03:00:00Z") from None
    if is_end:
        return read_end(text, spec, field=field) + spec.grid.interval
    return read_start(text, spec, field=field)


def _read(text: str, spec: PartitionSpec, field: str) -> tuple[Instant, bool]:
    """The instant that is meant, and whether it names a whole day."""
    instant, is_day = _spelled(text, spec, field)
    _check_year(instant, text, spec, field)
    return instant, is_day


def _check_year(instant: Instant, text: str, spec: PartitionSpec, field: str) -> None:
    if instant not in SCHEDULABLE:
        raise _refused(field, f"{text!r} is not within the years 1970 to 2199", _REMEDY)
    if to_datetime(instant).year not in spec.format.years:
        years = f"{spec.format.years[0]} to {spec.format.years[-1]}"
        problem = f"{text!r} is not within the years {years}, which are all that {spec.format.pattern!r} can write"
        raise _refused(field, problem, "choose another date, or a format with yyyy")


def _spelled(text: str, spec: PartitionSpec, field: str) -> tuple[Instant, bool]:
    cleaned = text.strip()
    try:
        return spec.start_of(cleaned), spec.grid.is_legacy_daily
    except IllegalLabel:
        pass  # not the canonical label: one of the other spellings
    match = next((m for shape in _SHAPES if (m := shape.fullmatch(cleaned))), None)
    if match is None:
        raise _refused(field, f"{text!r} is not a partition", _REMEDY)
    parts = {name: int(value) for name, value in match.groupdict().items() if value is not None and name != "sign"}
    if parts.pop("second", 0):
        raise _refused(field, f"{text!r} has seconds, and partitions are whole minutes", "leave the seconds out")
    try:
        instant = from_datetime(datetime(**parts, tzinfo=UTC))
    except ValueError as error:
        raise _refused(field, f"{text!r} is not a date: {error}", _REMEDY) from None
    return instant, "hour" not in parts


def _on_grid(instant: Instant, text: str, spec: PartitionSpec, field: str) -> Instant:
    if spec.grid.is_boundary(instant):
        return instant
    below = spec.grid.floor(instant)
    nearest = f"{spec.label(below)} or {spec.label(below + spec.grid.interval)}"
    raise _refused(
        field, f"{text!r} is not a boundary of the grid {spec.grid}", f"the nearest partitions are {nearest}"
    )
