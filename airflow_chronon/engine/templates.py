"""Chronon's template forms in the queries of staging queries, rendered for one run.

``{{ start_date }}`` and ``{{ end_date }}`` are the oldest and the newest label that the run writes, and
``{{ latest_date }}`` the newest too, so that a replay renders what its first run rendered. They take ``offset`` (whole
partitions, as in Chronon's own driver, not days) and ``lower_bound`` and ``upper_bound`` (inclusive labels, or days
``yyyy-MM-dd`` that mean the whole day), applied in this order. ``{{ max_date(table=db.name) }}`` is the newest landed
label of another table, in that table's own format. The older colon form, ``{{ max_date:table=db.name }}``, is read too.

A value becomes an SQL string: one pair of quotes, whether or not the query wrote its own around the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import DAY, Instant, TimeWindow
from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionKey, PartitionSpec, partition_format
from airflow_chronon.errors import ChrononError, Fault

#: Gives the newest landed label of a table, or None when it has none.
MaxDates = Callable[[str], str | None]

_DATES = ("start_date", "end_date", "latest_date")
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_DATES, ("offset", "lower_bound", "upper_bound")),
    "max_date": ("table",),
}
_TEMPLATE = r"\{\{(?P<%s>.*?)\}\}"
_PIECE = re.compile(
    "|".join(
        (
            _TEMPLATE % "bare",
            r"(?P<comment>--[^\n]*|/\*.*?\*/)",
            r"(?P<text>'(?:\{\{.*?\}\}|\\.|''|[^'\\])*'|\"(?:\{\{.*?\}\}|\\.|[^\"\\])*\")",
            r"(?P<name>`[^`]*`)",
            r"(?P<open>\{\{)",
        )
    ),
    re.S,
)
_INSIDE = re.compile(_TEMPLATE % "inner", re.S)
_CALL = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<arguments>.*)\)|:(?P<colon>.*?))?\s*", re.S)
_ARGUMENT = re.compile(r"""\s*(?P<key>\w+)\s*=\s*(?P<value>'[^']*'|"[^"]*"|[^,'"]+?)\s*(?:,|$)""", re.S)


class IllegalTemplate(ChrononError):
    """A template with an unknown name or argument, or with a value that does not fit the run."""


def render_query(query: str, *, spec: PartitionSpec, window: TimeWindow, max_dates: MaxDates) -> str:
    """The query with every template replaced; templates in comments stay.

    Raises :class:`IllegalTemplate` for an unknown template or argument, an offset that is not a whole number, a bound that
    is not a label, bounds that cross, and a table without partitions.
    """
    rendering = _Rendering(spec, spec.labels(window.start, window.end), max_dates)

    def replace(match: re.Match[str]) -> str:
        if match["open"]:
            line = query.count("\n", 0, match.start()) + 1
            raise _illegal(f"the template that starts in line {line} is not closed", "close it with }}")
        if match["bare"] is not None:
            return "'" + _escaped(rendering.value(match["bare"]), "'") + "'"
        if match["text"]:
            quote = match["text"][0]
            return _INSIDE.sub(lambda inner: _escaped(rendering.value(inner["inner"]), quote), match["text"])
        return match[0]

    return _PIECE.sub(replace, query)


def _escaped(value: str, quote: str) -> str:
    return value.replace("\\", "\\\\").replace(quote, "\\" + quote)


def _illegal(message: str, remedy: str) -> IllegalTemplate:
    return IllegalTemplate(Fault("query", "query", message, remedy))


@dataclass(frozen=True)
class _Rendering:
    spec: PartitionSpec
    labels: tuple[PartitionKey, ...]
    max_dates: MaxDates

    def value(self, template: str) -> str:
        shown = "{{ " + template.strip() + " }}"
        name, arguments = _parsed(template, shown)
        if name == "max_date":
            return self._max_date(arguments, shown)
        label = self.labels[0] if name == "start_date" else self.labels[-1]
        start = self.spec.start_of(label) + _offset(arguments, shown) * self.spec.grid.interval
        lower = self._bound(arguments, "lower_bound", shown)
        upper = self._bound(arguments, "upper_bound", shown)
        if lower is not None and upper is not None and lower > upper:
            raise _illegal(f"the bounds of {shown} cross", "give a lower_bound that is not after the upper_bound")
        if lower is not None:
            start = max(start, lower)
        if upper is not None:
            start = min(start, upper)
        return self.spec.label(start)

    def _max_date(self, arguments: Mapping[str, str], shown: str) -> str:
        if not arguments.get("table"):
            raise _illegal(f"{shown} does not name a table", "write {{ max_date(table=db.name) }}")
        newest = self.max_dates(arguments["table"])
        if newest is None:
            raise _illegal(
                f"{shown}: the table {arguments['table']} has no partition", "let its producer write one first"
            )
        return newest

    def _bound(self, arguments: Mapping[str, str], key: str, shown: str) -> Instant | None:
        """A bound as the start of a partition: the first (lower) or the last (upper) of the day when it is a day."""
        text = arguments.get(key)
        if text is None:
            return None
        try:
            return self.spec.start_of(text)
        except IllegalLabel as error:
            try:
                day = partition_format("yyyy-MM-dd").decode(text)
            except IllegalLabel:
                raise _illegal(
                    f"{key} {text!r} of {shown} is not a label: {error.fault.message}", error.fault.remedy
                ) from error
        grid = self.spec.grid
        return grid.ceil(day) if key == "lower_bound" else grid.floor(day + DAY - 1)


def _parsed(template: str, shown: str) -> tuple[str, dict[str, str]]:
    call = _CALL.fullmatch(template)
    name = call["name"] if call else ""
    if call is None or name not in _ARGUMENTS:
        raise _illegal(f"the template {shown} is not known", f"use {', '.join(_ARGUMENTS)}")
    text = call["arguments"] if call["colon"] is None else call["colon"].replace(":", ",")
    arguments: dict[str, str] = {}
    position, text = 0, (text or "").strip()
    while position < len(text):
        argument = _ARGUMENT.match(text, position)
        if argument is None:
            raise _illegal(f"the arguments of {shown} cannot be read", f"write {name}(key=value, …)")
        key, value = argument["key"], argument["value"]
        if key not in _ARGUMENTS[name]:
            raise _illegal(
                f"the argument {key!r} of {shown} is not known", f"{name} takes {', '.join(_ARGUMENTS[name])}"
            )
        if key in arguments:
            raise _illegal(f"the argument {key!r} of {shown} is given twice", "give it once")
        arguments[key] = value[1:-1] if value[0] in "'\"" else value.strip()
        position = argument.end()
    return name, arguments


def _offset(arguments: Mapping[str, str], shown: str) -> int:
    text = arguments.get("offset", "0")
    try:
        return int(text)
    except ValueError:
        raise _illegal(
            f"the offset {text!r} of {shown} is not a whole number", "give a number of partitions, such as -3"
        ) from None
