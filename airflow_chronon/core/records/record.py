"""The record of a DAG id: everything that a deployment remembers of it from one reconcile to the next, in one file.

It is written whole and read with defaults: a missing or unknown key is not damage, so that older and newer
versions of the package read each other's records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.records.manifest import DeployedManifest
from airflow_chronon.core.schedules.base import ScheduleT
from airflow_chronon.core.schedules.revision import ScheduleRevision, instant_from_json

Json = dict[str, Any]


@dataclass(frozen=True)
class PendingBackfill:
    """Partitions that a change of the settings made due and the timetable will not run (H13)."""

    until: Instant  #: when the change was seen: fires after it are the timetable's
    first: Instant | None = None  #: the oldest partition start within cap and skip date; None until it was worked out
    forgets: bool = False  #: runs that began before ``until`` do not count: the schedule is new (H16)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PendingBackfill:
        """Inverse of ``asdict``."""
        first, forgets = _instant_or_none(data.get("first")), bool(data.get("forgets", False))
        return cls(instant_from_json(data["until"]), first, forgets)


@dataclass(frozen=True)
class Retirement:
    """A DAG is being retired, since its conf is gone (C23): since when, why, by whom, and how far it has come."""

    since: Instant
    why: str
    by: str
    confirmed: bool = False  #: someone confirmed that it is meant, though the tree looked damaged
    archive: str = ""  #: where its history is, relative to the state folder, once that is safe

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Retirement:
        """Inverse of ``asdict``."""
        why, by, archive = (_text(data.get(name, "")) for name in ("why", "by", "archive"))
        return cls(instant_from_json(data["since"]), why, by, bool(data.get("confirmed", False)), archive)


@dataclass(frozen=True)
class DeploymentRecord:
    """What a deployment remembers of one DAG id."""

    dag_id: str
    manifest: DeployedManifest | None  #: the conf as it was deployed; None: a DAG of which no conf was ever seen
    first_seen: Instant
    revisions: tuple[ScheduleRevision, ...] = ()  #: oldest first; empty while nothing has run by any schedule
    pending: PendingBackfill | None = None
    active_since: Instant | None = None  #: of a job: no fire at or before it counts as missed (H8, H14)
    begins: Instant | None = None  #: of a job whose file names no start: where its first interval begins (H15)
    retirement: Retirement | None = None

    @property
    def key(self) -> str:
        """``type/name``; empty when no conf was ever seen."""
        return "" if self.manifest is None else self.manifest.key

    @property
    def file(self) -> str:
        return "" if self.manifest is None else self.manifest.file

    @property
    def is_archived(self) -> bool:
        return self.retirement is not None and bool(self.retirement.archive)

    @property
    def keeps_dag(self) -> bool:
        """Whether the loader goes on producing the DAG without a conf, off: until its history is archived (C23)."""
        return self.manifest is not None and not self.is_archived

    @property
    def now(self) -> ScheduleRevision | None:
        """The revision that holds now."""
        return self.revisions[-1] if self.revisions else None

    @property
    def meant(self) -> ScheduleRevision | None:
        """The latest revision that came from a valid conf: a typo switches nothing off."""
        return next((revision for revision in reversed(self.revisions) if not revision.is_broken), None)

    @property
    def is_paused(self) -> bool:
        """Whether it is a job that was paused by hand."""
        return self.now is not None and self.now.is_paused

    @property
    def grid(self) -> str:
        """The grid of its partitions as a contract's text (C22); empty for a job, and while nothing has run."""
        schedule = None if self.now is None else self.now.schedule
        return "" if schedule is None else schedule.contract or ""

    @property
    def seen_revisions(self) -> tuple[ScheduleRevision, ...]:
        """The revisions, a job's schedules as they were known to the deployment then."""
        first = self.first_seen if self.begins is None else self.begins
        return tuple(
            revision
            if revision.schedule is None
            else replace(revision, schedule=revision.schedule.seen(first=first, active_since=revision.since))
            for revision in self.revisions
        )

    def seen(self, schedule: ScheduleT, *, active_since: Instant) -> ScheduleT:
        """A schedule of this conf or job as the deployment knows it: a job's past is that of the crons which held then (H20)."""
        first = self.first_seen if self.begins is None else self.begins
        return self.with_past(schedule).seen(first=first, active_since=active_since)

    def with_past(self, schedule: ScheduleT) -> ScheduleT:
        """The present schedule with those that held before it, where that decides which intervals the past has."""
        return schedule.with_past([(revision.since, revision.schedule) for revision in self.revisions])

    def to_json(self) -> Json:
        """Inverse of :meth:`from_json`."""
        return {
            "dag_id": self.dag_id,
            "first_seen": self.first_seen,
            "active_since": self.active_since,
            "begins": self.begins,
            "pending": None if self.pending is None else asdict(self.pending),
            "retirement": None if self.retirement is None else asdict(self.retirement),
            "revisions": [revision.to_json() for revision in self.revisions],
            "manifest": None if self.manifest is None else self.manifest.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, dag_id: str) -> DeploymentRecord:
        """Build the record of a DAG id. Raises ValueError, LookupError, TypeError or AttributeError when it is damaged."""
        if data.get("dag_id", dag_id) != dag_id:
            raise ValueError(f"it is the record of {data['dag_id']!r}")
        manifest, pending, retirement = (data.get(name) for name in ("manifest", "pending", "retirement"))
        return cls(
            dag_id=dag_id,
            manifest=None if manifest is None else DeployedManifest.from_json(manifest, dag_id=dag_id),
            first_seen=instant_from_json(data.get("first_seen", 0)),
            revisions=tuple(map(ScheduleRevision.from_json, data.get("revisions", ()))),
            pending=None if pending is None else PendingBackfill.from_json(pending),
            active_since=_instant_or_none(data.get("active_since")),
            begins=_instant_or_none(data.get("begins")),
            retirement=None if retirement is None else Retirement.from_json(retirement),
        )


def _instant_or_none(value: Any) -> Instant | None:
    return None if value is None else instant_from_json(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
