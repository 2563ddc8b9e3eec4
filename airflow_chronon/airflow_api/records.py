"""What Airflow's REST API says, as values. Times are instants (whole seconds since the epoch, UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from airflow_chronon.core.calendar.instants import Instant, TimeWindow


@dataclass(frozen=True)
class DagRecord:
    """One DAG that Airflow knows; ``is_stale``: no file produces it any more, or its file fails to parse."""

    dag_id: str
    tags: frozenset[str] = frozenset()
    bundle: str | None = None
    is_paused: bool = False
    is_stale: bool = False
    has_import_errors: bool = False  #: also left behind by a file that went while it was parsed
    file: str | None = None  #: that produced it, within its bundle


@dataclass(frozen=True)
class RunRecord:
    """One run of a DAG. A scheduled run has a window, a replay has a key and none, a manual run may have neither."""

    dag_id: str
    run_id: str
    run_type: str  #: ``scheduled``, ``backfill``, ``manual`` or ``asset_triggered``
    state: str  #: ``queued``, ``running``, ``success`` or ``failed``
    partition_key: str | None = None
    partition_date: Instant | None = None
    window: TimeWindow | None = None  #: the data interval, when it is not empty
    logical_date: Instant | None = None
    run_after: Instant = 0
    start: Instant | None = None
    end: Instant | None = None
    conf: Mapping[str, Any] = field(default_factory=dict)
    note: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)  #: the answer itself, for archives

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE_RUN_STATES


@dataclass(frozen=True)
class TaskRecord:
    """One task of one run. ``start`` keeps fractions of a second: the order of two starts may hang on them."""

    dag_id: str
    run_id: str
    task_id: str
    state: str | None  #: None before the scheduler has looked at it
    try_number: int = 0
    start: float | None = None  #: seconds since the epoch; kept over a deferral, new for a retry
    end: float | None = None
    note: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


class Reprocess(Enum):
    """Which partitions that have a run a backfill runs again."""

    NONE = "none"
    FAILED = "failed"
    COMPLETED = "completed"  #: failed ones included


@dataclass(frozen=True)
class BackfillRequest:
    """A backfill over the partition dates from ``first`` to ``last``, both inclusive (partition starts)."""

    dag_id: str
    first: Instant
    last: Instant
    reprocess: Reprocess = Reprocess.COMPLETED
    max_active_runs: int = 10
    backwards: bool = False
    conf: Mapping[str, Any] = field(default_factory=dict, hash=False)  #: what each of its runs is given


@dataclass(frozen=True)
class BackfillRecord:
    """One backfill; ``completed`` is None while it is active, and each DAG has at most one active one."""

    id: int
    dag_id: str
    first: Instant
    last: Instant
    is_paused: bool = False
    completed: Instant | None = None

    @property
    def was_cancelled(self) -> bool:
        """Whether it was ended by hand: Airflow pauses it for good then, and starts no run of it any more."""
        return self.completed is not None and self.is_paused


@dataclass(frozen=True)
class ImportErrorRecord:
    """A file that Airflow could not load."""

    filename: str  #: within its bundle
    bundle: str | None
    text: str


ACTIVE_RUN_STATES = ("queued", "running")
