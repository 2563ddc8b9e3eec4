"""What the reconciler keeps for the page of partitions: api-servers have no confs, no state and no warehouse.

It is one JSON text per deployment in Airflow's database, with a part for each scheduled conf.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.plans import describe
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.schedules.revision import ScheduleRevision
from airflow_chronon.core.schedules.serialization import schedule_from_json, schedule_to_json
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.core.waits.serialization import dependency_from_json, dependency_to_json
from airflow_chronon.errors import ChrononError

#: The asset in whose state snapshots are kept, each under the bundle and branch of its deployment. It is no table.
SNAPSHOT_ASSET = "chronon://airflow-chronon/page"
MOST_RANGES = 2_000  #: of one table, the newest; a table with more holes is shown from there on
MOST_REVISIONS = 20

Json = dict[str, Any]


@dataclass(frozen=True)
class ConfSnapshot:
    """One conf, and its table as it was last seen."""

    dag_id: str
    key: str
    team: str
    version: str | None
    tags: tuple[str, ...]
    table: str
    words: str  #: what it does and when
    schedule: PartitionedSchedule
    freshness: int | None = None
    reads: tuple[TableDependency, ...] = ()
    writers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: the DAGs that write what it reads, by table
    revisions: tuple[ScheduleRevision, ...] = ()
    seen: Instant | None = None  #: when its table was last listed
    landed: StartRanges | None = None  #: None: never listed

    @property
    def type(self) -> str:
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]

    def to_json(self) -> Json:
        """Inverse of :meth:`from_json`."""
        landed = self.landed
        return {
            "key": self.key,
            "team": self.team,
            "version": self.version,
            "tags": list(self.tags),
            "table": self.table,
            "words": self.words,
            "schedule": schedule_to_json(self.schedule),
            "freshness": self.freshness,
            "reads": list(map(dependency_to_json, self.reads)),
            "writers": {table: list(dag_ids) for table, dag_ids in self.writers.items()},
            "revisions": [each.to_json() for each in self.revisions[-MOST_REVISIONS:]],
            "seen": self.seen,
            "landed": None if landed is None else landed.newest(MOST_RANGES).to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, dag_id: str) -> ConfSnapshot:
        """Raises LookupError, TypeError or ValueError for something else."""
        schedule = schedule_from_json(data["schedule"])
        landed = data.get("landed")
        return cls(
            dag_id,
            data["key"],
            data["team"],
            data.get("version"),
            tuple(data.get("tags", ())),
            data["table"],
            data.get("words", ""),
            schedule,
            data.get("freshness"),
            tuple(map(dependency_from_json, data.get("reads", ()))),
            {table: tuple(dag_ids) for table, dag_ids in data.get("writers", {}).items()},
            tuple(map(ScheduleRevision.from_json, data.get("revisions", ()))),
            data.get("seen"),
            None if landed is None else StartRanges.from_json(landed, interval=schedule.grid.interval),
        )

    def seen_at(self, landed: StartRanges, instant: Instant) -> ConfSnapshot:
        """The same after another look at its table."""
        return replace(self, landed=landed, seen=instant)


def snapshot_key(bundle: str, branch: str) -> str:
    """Where the snapshot of a deployment is kept in the state of :data:`SNAPSHOT_ASSET`."""
    return f"{bundle}/{branch}"


def snapshots_of(text: object) -> list[ConfSnapshot]:
    """The confs of what is kept; a part that cannot be read, as one of another version, is left out until the next survey."""
    try:
        parts = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return []
    found = []
    for dag_id, part in parts.items() if isinstance(parts, dict) else ():
        with suppress(LookupError, TypeError, ValueError, AttributeError, OverflowError, ChrononError):
            found.append(ConfSnapshot.from_json(part, dag_id=dag_id))
    return found


def snapshot_of(plan: ConfPlan, *, revisions: Iterable[ScheduleRevision] = ()) -> ConfSnapshot:
    """A conf of which no table was seen yet."""
    reads = plan.dependencies.get(plan.schedule.main_mode, ())
    return ConfSnapshot(
        plan.dag_id,
        plan.key,
        plan.team,
        plan.version,
        plan.tags,
        plan.table,
        describe(plan).one_line,
        plan.schedule,
        plan.settings.freshness,
        tuple(reads),
        {table: tuple(writer.dag_id for writer in writers) for table, writers in plan.writers.items()},
        tuple(revisions),
    )
