"""Runs that go on without the newest partitions of a table, where ``max_lag`` allows it: which may, and what they then read.

A run waits for its inputs. With ``max_lag: {partitions: 2, after: 1h}`` it waits an hour for the newest ones, and then takes the
newest that is there when no more than two are missing behind it. What it went without is recorded with the run, since the
run's partition is out of date as soon as one of those lands.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.labels import PartitionKey

if TYPE_CHECKING:
    from airflow_chronon.core.waits.dependencies import TableDependency, Wait

#: Under which key a wait keeps what its run went without, among the values that Airflow keeps of a task.
LAGGING_KEY = "max_lag"


@dataclass(frozen=True)
class MaxLag:
    """How far behind a table may be, and after how many seconds of waiting."""

    partitions: int
    after: int

    @classmethod
    def strictest(cls, found: Sequence[MaxLag | None]) -> MaxLag | None:
        """What holds for all; None where one allows nothing."""
        allowed = [each for each in found if each is not None]
        if len(allowed) < len(found) or not allowed:
            return None
        return cls(min(each.partitions for each in allowed), max(each.after for each in allowed))


@dataclass(frozen=True)
class Lagging:
    """What a run read of one table, where that was less than it needs."""

    table: str
    column: str
    newest: PartitionKey  #: the newest partition that it read
    lacks: tuple[PartitionKey, ...]  #: those that it went without, oldest first

    def __str__(self) -> str:
        count = len(self.lacks)
        partitions = "partition" if count == 1 else "partitions"
        return f"{self.table} was read up to {self.column}={self.newest}, {count} {partitions} behind (max_lag)"

    def landed_since(self, landed: Container[str]) -> tuple[PartitionKey, ...]:
        """Those it went without that are there by now: each of them makes what the run wrote out of date."""
        return tuple(label for label in self.lacks if label in landed)

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        return {"table": self.table, "column": self.column, "newest": self.newest, "lacks": list(self.lacks)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Lagging:
        """Raises LookupError, TypeError or ValueError for what is none."""
        texts = [data["table"], data["column"], data["newest"], *data["lacks"]]
        if not all(isinstance(text, str) for text in texts) or isinstance(data["lacks"], str):
            raise TypeError(f"{data!r} does not say what a run went without")
        return cls(data["table"], data["column"], PartitionKey(data["newest"]), tuple(map(PartitionKey, data["lacks"])))


def lagging_from_json(value: object) -> tuple[Lagging, ...]:
    """What a wait kept under :data:`LAGGING_KEY`; nothing of what is damaged."""
    try:
        value = json.loads(value) if isinstance(value, str) else value  # as Airflow's database has it
        return tuple(map(Lagging.from_json, value)) if isinstance(value, list | tuple) else ()
    except (LookupError, TypeError, ValueError):
        return ()


def whole_reading(dependency: TableDependency) -> str:
    """Why no run may go on without the newest partitions of a table, in words; empty where it may.

    Where exactly the awaited partitions are read, an older one is not read in their place: the job would read nothing.
    """
    if dependency.spec is None or dependency.expression:
        return "it is waited for by a time or an expression, and not by partitions that could be counted"
    if dependency.fixed_labels:
        return "the conf names the partitions that it reads"
    if dependency.is_cumulative:
        return "one exact snapshot of it is read, the newest of a cumulative table"
    if dependency.reach is not None and dependency.reach <= 0:
        return "one exact snapshot of it is read, the partitions that are waited for and no older one"
    return ""


def lagging(wait: Wait, landed: Container[str]) -> Lagging | None:
    """What a run would read that goes on now; None where it lacks more than ``max_lag`` allows, or nothing but its lookback.

    The newest partition there is must be one that the run reads, and what it needs up to that one must be there.
    """
    if wait.max_lag is None or wait.spec is None or not wait.labels:
        return None
    spec, step = wait.spec, wait.spec.grid.interval
    needed = {spec.format.decode(label) for label in wait.labels}
    last = max(needed)
    behind: list[Instant] = []
    for start in range(last, last - (wait.max_lag.partitions + 1) * step, -step):
        if start < spec.format.earliest or (wait.oldest is not None and start < wait.oldest):
            return None
        if spec.label(start) in landed:
            break
        behind.append(start)
    else:
        return None
    is_whole = all(spec.label(each) in landed for each in needed if each <= start)
    if not behind or not is_whole:
        return None
    return Lagging(wait.table, wait.column, spec.label(start), tuple(map(spec.label, reversed(behind))))
