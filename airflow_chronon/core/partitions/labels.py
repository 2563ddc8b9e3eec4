"""Partition labels: Java date patterns, both ways (C7).

A label is the start of a partition, written in the table's format. :class:`PartitionFormat` owns the pattern,
:class:`PartitionSpec` a table's grid, format and column together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from functools import lru_cache
from typing import NewType, TypeVar
from urllib.parse import quote, unquote

from airflow_chronon.core.bounds import MAX_LABEL, quoted
from airflow_chronon.core.calendar.instants import DAY, HOUR, Instant, from_datetime, iso, to_datetime
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.errors import ChrononError, Fault

#: A label that was written by, or checked against, a table's own spec.
_T = TypeVar("_T")
PartitionKey = NewType("PartitionKey", str)

#: What a partition column may be called: it stands before the ``=`` of a folder's name.
COLUMN_NAME = r"\w[\w.-]*"

_ILLEGAL_IN_RUN_ID = re.compile(r"[^A-Za-z0-9_.~:+-]")
_DAILY, _MINUTE_SHAPED = "yyyy-MM-dd", "yyyy-MM-dd-HH-mm"
_NEW_YEAR = 1_767_225_600  # 2026-01-01T00:00Z, for examples
_Y2K, _YEAR_2 = 946_684_800, -62_104_060_800
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800
_DIGITS = "0123456789"
_TOKEN = re.compile(
    r"(?P<quoted>'(?:[^']|'')*')|(?P<letters>([A-Za-z])\3*)|(?P<reserved>[\[\]{}#'])|(?P<literal>.)", re.S
)
_FIELDS = {"y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_WIDTHS = {"y": (2, 4), "M": (1, 2), "d": (1, 2), "H": (1, 2), "m": (1, 2), "s": (1, 2)}


class IllegalFormat(ChrononError):
    """A partition format that C7 does not allow."""


class IllegalLabel(ChrononError):
    """Text that is not a label of the table's grid and format."""


def _illegal_format(pattern: str, problem: str, remedy: str) -> IllegalFormat:
    return IllegalFormat(Fault("C7", "partitionFormat", f"format {pattern!r}: {problem}", remedy))


@dataclass(frozen=True)
class PartitionFormat:
    """A Java date pattern. Encoding and decoding are inverse for every instant in whole minutes.

    Raises :class:`IllegalFormat` for a letter outside ``y M d H m s``, ``MMM`` and longer runs included, an open quote,
    a reserved sign, no year, month or day, and two one-letter fields in one run of digits: nobody can say where they end.
    """

    pattern: str
    _template: str = field(init=False, repr=False, compare=False)
    _regex: re.Pattern[str] = field(init=False, repr=False, compare=False)
    letters: frozenset[str] = field(init=False, repr=False, compare=False)
    _two_digit_year: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        template, regex, letters, longest = "", "", list[str](), 0
        two_digit_year, open_ended = False, ""
        for token in _TOKEN.finditer(self.pattern):
            run, quoted = token["letters"], token["quoted"]
            if token["reserved"]:
                raise _illegal_format(self.pattern, f"{token[0]!r} is reserved or an open quote", "quote it: '…'")
            if run is None:
                literal = (
                    token["literal"] if quoted is None else ("'" if quoted == "''" else quoted[1:-1].replace("''", "'"))
                )
                longest += len(literal)
                template += literal.replace("{", "{{").replace("}", "}}")
                regex += re.escape(literal)
                open_ended = "" if literal.strip(_DIGITS) else open_ended  # a sign ends a run of digits
                continue
            letter, width = run[0], len(run)
            if letter not in _FIELDS or width not in _WIDTHS[letter]:
                raise _illegal_format(self.pattern, f"{run!r} is not supported", "use yyyy or yy, MM, dd, HH, mm, ss")
            if open_ended and width == 1:
                raise self._runs_together(open_ended, run)
            open_ended = run if width == 1 else open_ended
            name = f"{_FIELDS[letter]}{len(letters)}"
            short_year = run == "yy"
            two_digit_year |= short_year
            template += "{short_year:02d}" if short_year else f"{{{_FIELDS[letter]}:0{width}d}}"
            regex += f"(?P<{name}>[0-9]{{1,2}})" if width == 1 else f"(?P<{name}>[0-9]{{{width}}})"
            letters.append(letter)
            longest += max(width, 2)
        self._refuse_unfit(longest)
        missing = [_FIELDS[letter] for letter in "yMd" if letter not in letters]
        if missing:
            raise _illegal_format(
                self.pattern, f"it holds no {' and no '.join(missing)}", "a label must hold year, month and day"
            )
        for name_, value in (
            ("_template", template),
            ("_regex", re.compile(regex)),
            ("letters", frozenset(letters)),
            ("_two_digit_year", two_digit_year),
        ):
            object.__setattr__(self, name_, value)

    def _refuse_unfit(self, longest: int) -> None:
        """Labels stand in run ids, tags and logs, so Airflow's bounds are theirs (S1)."""
        if longest > MAX_LABEL:
            problem = f"its labels have up to {longest} characters, and Airflow's run ids take {MAX_LABEL} of them"
        elif not self.pattern.isprintable():
            problem = "it holds a character that cannot be printed"
        else:
            return
        fault = Fault("S1", "partitionFormat", f"format {quoted(self.pattern)}: {problem}", "use a plain, short format")
        raise IllegalFormat(fault)

    def _runs_together(self, one: str, other: str) -> IllegalFormat:
        problem = f"{one!r} and {other!r} stand in one run of digits, so that nobody can tell where each of them ends"
        return _illegal_format(self.pattern, problem, f"write {one * 2!r}, or put a sign between them")

    def __str__(self) -> str:
        return self.pattern

    def encode(self, instant: Instant) -> str:
        """Write an instant. Raises :class:`IllegalLabel` for a year outside 2000 to 2099 under ``yy``."""
        at = to_datetime(instant)
        if at.year not in self.years:
            raise IllegalLabel(
                Fault(
                    "C7", "partition_key", f"the year {at.year} has no two-digit form in {self.pattern!r}", "use yyyy"
                )
            )
        return self._template.format(
            year=at.year,
            short_year=at.year % 100,
            month=at.month,
            day=at.day,
            hour=at.hour,
            minute=at.minute,
            second=at.second,
        )

    @property
    def years(self) -> range:
        """The years that it can write."""
        return range(2000, 2100) if self._two_digit_year else range(MINYEAR, MAXYEAR + 1)

    @property
    def regex(self) -> str:
        """The regular expression of its labels, as text; some that match are no date."""
        return self._regex.pattern

    @property
    def earliest(self) -> Instant:
        """The oldest midnight that it can write: two-digit years begin with 2000."""
        return _Y2K if self._two_digit_year else _YEAR_2

    def decode(self, label: str) -> Instant:
        """Read a label back. Raises :class:`IllegalLabel` when the text is not in this format or no date."""
        match = self._regex.fullmatch(label)
        values: dict[str, int] = {}
        if match is not None:
            for name, text in match.groupdict().items():
                key = name.rstrip("0123456789")
                value = int(text) + (2000 if key == "year" and len(text) == 2 else 0)
                if values.setdefault(key, value) != value:
                    match = None  # the same field twice with two values
                    break
        if match is not None:
            try:
                return from_datetime(datetime(**values, tzinfo=UTC))
            except ValueError:
                pass
        raise IllegalLabel(
            Fault(
                "C7",
                "partition_key",
                f"{label!r} is not in the format {self.pattern!r}",
                "write it like " + self.example(),
            )
        )

    def example(self) -> str:
        return self.encode(_NEW_YEAR)


@lru_cache(maxsize=256)
def partition_format(pattern: str) -> PartitionFormat:
    """The format of a pattern, compiled once."""
    return PartitionFormat(pattern)


def default_pattern(grid: PartitionGrid) -> str:
    """``yyyy-MM-dd`` for midnight days, minutes and all for every other grid (C7)."""
    return _DAILY if grid.is_legacy_daily else _MINUTE_SHAPED


def in_run_id(partition_key: str) -> str:
    """A partition key as it may stand in a run id: Airflow takes neither the slash nor the space of some formats."""
    return _ILLEGAL_IN_RUN_ID.sub("_", partition_key)


def escape_label(label: str) -> str:
    """The label as it stands in a Hive-style folder name: percent-escaped (C7)."""
    return quote(label, safe="-_.,;!$&()+@~|<>`")


def unescape_label(folder: str) -> str:
    """Inverse of :func:`escape_label`; also reads what Hive and Spark escape."""
    return unquote(folder)


@dataclass(frozen=True)
class PartitionSpec:
    """How one table is partitioned: its grid, the format of its labels and the column that holds them.

    Raises :class:`IllegalFormat` when the format is too coarse to tell two partitions of the grid apart (C7).
    """

    grid: PartitionGrid
    format: PartitionFormat
    column: str = "ds"

    def __post_init__(self) -> None:
        if re.fullmatch(COLUMN_NAME, self.column) is None:
            problem = f"{self.column!r} cannot be the name of a partition column"
            remedy = "use letters, digits, underscores, dots and dashes"
            raise IllegalFormat(Fault("C7", "partitionColumn", problem, remedy))
        needed = set()
        if self.grid.interval % DAY or self.grid.offset:
            needed.add("H")
        if self.grid.interval % HOUR or self.grid.offset % HOUR:
            needed.add("m")
        missing = sorted(needed - self.format.letters)
        if missing:
            names = " and ".join(f"{_FIELDS[letter]}s" for letter in missing)
            raise _illegal_format(
                self.format.pattern,
                f"it holds no {names}, which the grid {self.grid} needs",
                f"use {default_pattern(self.grid)!r}",
            )

    @property
    def contract(self) -> str:
        """What of it holds for ever once the table is written (C22), as text: ``3h@1h``, with the column and the format
        where they are not the usual ones."""
        column = "" if self.column == "ds" else f", column {self.column}"
        pattern = "" if self.format.pattern == default_pattern(self.grid) else f", format {self.format.pattern}"
        return f"{self.grid}{column}{pattern}"

    def example(self) -> PartitionKey:
        """A label that the grid has, for hints: with the format alone it may lie within a partition (C7)."""
        return self.label(self.grid.ceil(_NEW_YEAR))

    def label(self, start: Instant) -> PartitionKey:
        """The label of the partition that starts at ``start``. Raises :class:`IllegalLabel` off the grid."""
        if not self.grid.is_boundary(start):
            raise self._off_grid(iso(start), start)
        return PartitionKey(self.format.encode(start))

    def labels(self, start: Instant, end: Instant) -> tuple[PartitionKey, ...]:
        """The labels of the partitions that overlap ``[start, end)``, oldest first."""
        return tuple(PartitionKey(self.format.encode(s)) for s in self.grid.starts(start, end))

    def span(self, start: Instant, end: Instant) -> str:
        """The same in words: a few labels, or the first, the last and how many."""
        return span(self.grid.starts(start, end), write=self.label)

    def start_of(self, label: str) -> Instant:
        """The start of the partition with this label. Raises :class:`IllegalLabel`."""
        start = self.format.decode(label)
        if not self.grid.is_boundary(start):
            raise self._off_grid(repr(label), start)
        return start

    def _off_grid(self, shown: str, instant: Instant) -> IllegalLabel:
        below = self.grid.floor(instant)
        near = (each for each in (below, below + self.grid.interval) if _YEAR_1 <= each < _YEAR_10000)
        nearest = " or ".join(map(self.format.encode, near))
        return IllegalLabel(
            Fault(
                "C7",
                "partition_key",
                f"{shown} is not a boundary of the grid {self.grid}",
                f"the nearest labels are {nearest}",
            )
        )


def span(items: Sequence[_T], *, write: Callable[[_T], str] = str) -> str:
    """A few labels in words, or the first, the last and how many; ``write`` makes the label of an item."""
    if len(items) <= 2:
        return ", ".join(map(write, items))
    return f"{write(items[0])} … {write(items[-1])} ({len(items)})"
