"""The request of an Airflow run: the partition or window that a task, a trigger or the REST API asks for (C9, H2, H7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso
from airflow_chronon.errors import ChrononError, Fault


class IllegalWindow(ChrononError):
    """Half a window, or one that ends before it starts."""


@dataclass(frozen=True)
class RunRequest:
    """What is known of an Airflow run; empty text is absent. :meth:`Schedule.requested` says which run that is."""

    partition_key: str = ""
    is_scheduled: bool = False
    dag_id: str = "CONF"  #: as commands that a message gives name it
    interval: TimeWindow | None = None  #: the data interval with which a scheduled run was made, or given by hand
    start_ds: str = ""  #: of a conf: the first partition
    end_ds: str = ""  #: and the last one
    asked_at: Instant | None = None  #: of a conf: what has closed by then is what a range means, in every task
    start_time: str = ""  #: of a job: where its window starts
    end_time: str = ""
    logical_date: str = ""

    @property
    def ends(self) -> tuple[str, str]:
        """The first and the last partition; one alone is both."""
        return self.start_ds, self.end_ds or self.start_ds


def given_parameters(found: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a :class:`RunRequest` that people give, out of the params or the conf of a run."""
    names = ("start_ds", "end_ds", "start_time", "end_time", "logical_date")
    return {name: value for name in names if isinstance(value := found.get(name), str)}


def asked_window(start: Instant | None, end: Instant | None) -> TimeWindow | None:
    """The window ``[start, end)`` that someone gave a job by hand; None when none was. Raises :class:`IllegalWindow`."""
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
