"""The window that someone gives a job by hand (H7)."""

from __future__ import annotations

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso
from airflow_chronon.errors import ChrononError, Fault


class IllegalWindow(ChrononError):
    """Half a window, or one that ends before it starts."""


def asked_window(start: Instant | None, end: Instant | None) -> TimeWindow | None:
    """The window ``[start, end)`` that was given; None when none was. Raises :class:`IllegalWindow`."""
    if start is None and end is None:
        return None
    if start is None or end is None:
        there, missing = ("end", "start") if start is None else ("start", "end")
        problem = f"the window has an {there} without a {missing}" if there == "end" else "the window has no end"
        raise IllegalWindow(Fault("H7", missing, problem, "give both ends, or neither"))
    if end <= start:
        problem = f"the window ends at {iso(end)}, which is not after its start {iso(start)}"
        raise IllegalWindow(Fault("H7", "end", problem, "give a later end"))
    return TimeWindow(start, end)
