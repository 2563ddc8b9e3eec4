"""For the code of a job: the data window of the run that it is part of (H5).

::

    from airflow_chronon.window import current_window

    window = current_window()
    if window is None:
        ...  # started by hand, without a window (H7)
    else:
        rows = table.where((table.event_ts >= window.start) & (table.event_ts < window.end))

This module needs nothing but the standard library of Python 3.11, so that it can be copied to where the job runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

_PREFIXES = ("HOPS", "CHRONON")
_INSTANT = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d(?::\d\d)?)(?:[.,](?P<fraction>\d+))?"
    r"(?:(?P<zulu>[Zz])|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d))?"
)


class WindowError(ValueError):
    """The window's variables contradict each other, or one of them is not an instant."""


@dataclass(frozen=True)
class Window:
    """The data of one run, ``[start, end)``: closed at the start, open at the end. Every datetime is aware and in UTC."""

    start: datetime
    end: datetime
    logical_date: datetime  #: names the run; the start of its interval, whatever the window's offset (H2)


def current_window(environ: Mapping[str, str] | None = None) -> Window | None:
    """The window that the environment holds, or None when the run has none.

    Reads ``HOPS_START_TIME``, ``HOPS_END_TIME`` and ``HOPS_LOGICAL_DATE``, each else by its name with ``CHRONON`` in
    front. Instants are ISO-8601 as the scheduler or as people write them: with ``Z`` or an offset, with or without a
    fraction; without an offset they are UTC. A missing logical date is the start.

    Raises :class:`WindowError` when one end is missing, when the end is not after the start, and for what is not an instant.
    """
    given = os.environ if environ is None else environ
    start, end, logical_date = (_find(given, name) for name in ("START_TIME", "END_TIME", "LOGICAL_DATE"))
    if start is None and end is None:
        return None
    if start is None or end is None:
        there, missing = ("HOPS_END_TIME", "HOPS_START_TIME") if start is None else ("HOPS_START_TIME", "HOPS_END_TIME")
        raise WindowError(f"the window is only half there: {there} is set and {missing} is not; set both, or neither")
    if end <= start:
        raise WindowError(f"the window ends at {end.isoformat()}, which is not after its start {start.isoformat()}")
    return Window(start, end, logical_date or start)


def _find(environ: Mapping[str, str], name: str) -> datetime | None:
    for prefix in _PREFIXES:
        text = environ.get(f"{prefix}_{name}", "").strip()
        if text:
            return _instant(text, variable=f"{prefix}_{name}")
    return None


def _instant(text: str, *, variable: str) -> datetime:
    match = _INSTANT.fullmatch(text)
    if match is not None:
        offset = "+00:00" if match["sign"] is None else f"{match['sign']}{match['hours']}:{match['minutes']}"
        fraction = (match["fraction"] or "")[:6].ljust(6, "0")
        time = match["time"] if match["time"].count(":") == 2 else f"{match['time']}:00"
        try:
            return datetime.fromisoformat(f"{match['date']}T{time}.{fraction}{offset}").astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise WindowError(f"{variable} is {text!r}, which is not an instant such as 2026-06-01T10:00:00Z")
