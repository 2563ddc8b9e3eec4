"""The journal: what the deployment remembers of the schedule of each conf and job, and since when (H13, H14, H16, H20, C22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.jobs.verdicts import GoodPlan
from airflow_chronon.core.plan.manifest import DeployedManifest
from airflow_chronon.core.schedules.intervals import JobSchedule
from airflow_chronon.core.schedules.partitioned import RunSchedule
from airflow_chronon.core.schedules.serialization import any_schedule_from_json, any_schedule_to_json

Json = dict[str, Any]
WHY_PENDING = "missed, and made due by a change of its settings"  #: for plans and for the notes of replays
MAX_REVISIONS = 200  #: older changes of one conf's schedule are forgotten


@dataclass(frozen=True)
class ScheduleRevision:
    """The schedule-relevant settings of a conf, and since when they hold; until the next era's ``since``."""

    since: Instant
    schedule: RunSchedule | JobSchedule | None  #: grid, modes and catch-up policy; without modes nothing fires
    enabled: bool = True  #: ``enabled`` of the settings: tells a schedule that was switched off from a conf without one
    is_paused: bool = False  #: a job that was paused by hand (H14)
    is_broken: bool = False  #: it is off since its conf was bad, not since someone meant it (C23)

    @property
    def fires(self) -> bool:
        """Whether anything fires by itself."""
        return self.enabled and not self.is_paused and self.schedule is not None and self.schedule.is_on

    def is_like(self, other: ScheduleRevision) -> bool:
        """Whether the two differ in nothing but when they began."""
        return replace(self, since=other.since) == other


@dataclass(frozen=True)
class PendingBackfill:
    """Partitions that a change of the settings made due and the timetable will not run (H13)."""

    until: Instant  #: when the change was seen: fires after it are the timetable's
    first: Instant | None = None  #: the oldest partition start within cap and skip date; None until it was worked out


@dataclass(frozen=True)
class JournalEntry:
    """What is remembered of one DAG id."""

    dag_id: str
    key: str  #: ``type/name``
    family: str  #: the key without the version
    file: str
    table: str
    digest: str  #: of the copy in the state folder; empty while that may be another, or none
    first_seen: Instant
    revisions: tuple[ScheduleRevision, ...]  #: oldest first, never empty
    pending: PendingBackfill | None = None
    gone: Instant | None = None  #: since when no conf of the tree has this DAG id
    active_since: Instant | None = None  #: of a job: no fire at or before it counts as missed (H8, H14)
    begins: Instant | None = None  #: of a job whose file names no start: where its first interval begins (H15)

    @property
    def now(self) -> ScheduleRevision:
        """The era that holds now."""
        return self.revisions[-1]

    @property
    def meant(self) -> ScheduleRevision:
        """The newest era that someone meant: while its conf is bad, that before. A typo switches nothing off."""
        return next((revision for revision in reversed(self.revisions) if not revision.is_broken), self.revisions[0])

    @property
    def grid(self) -> str:
        """Empty for a job, which has none."""
        schedule = self.now.schedule
        return str(schedule.spec.grid) if isinstance(schedule, RunSchedule) else ""

    @property
    def seen_revisions(self) -> tuple[ScheduleRevision, ...]:
        """The eras, a job's schedules as they were seen then."""
        return tuple(
            replace(revision, schedule=self.seen(revision.schedule, active_since=revision.since))
            if isinstance(revision.schedule, JobSchedule)
            else revision
            for revision in self.revisions
        )

    def seen(self, schedule: JobSchedule, *, active_since: Instant) -> JobSchedule:
        """A schedule of this job as the deployment knows it."""
        first = self.first_seen if self.begins is None else self.begins
        return schedule.seen(first=first, active_since=active_since)

    def revision_at(self, instant: Instant) -> ScheduleRevision | None:
        """The settings that held at an instant; None before the conf was first seen."""
        held = [revision for revision in self.revisions if revision.since <= instant]
        return held[-1] if held else None


@dataclass(frozen=True)
class Seen:
    """What a reconcile sees of a DAG besides its conf."""

    now: Instant
    is_paused: bool = False  #: a job's DAG is paused by hand


def journal_entry(plan: GoodPlan, manifest: DeployedManifest, known: JournalEntry | None, seen: Seen) -> JournalEntry:
    """The entry of a deployed conf or job as of now: the known one, with a new era when the schedule has changed.

    A flip of catch-up from off to on, and a start moved back with catch-up on, make earlier partitions owed (H13). A job
    is active since it was new, or since it was last seen to fire after it did not (H14).
    """
    revision = ScheduleRevision(seen.now, plan.intervals, plan.settings.enabled, seen.is_paused)
    fields: Json = {
        "key": manifest.key,
        "family": manifest.family,
        "file": manifest.file,
        "table": manifest.table,
        "digest": manifest.digest,
    }
    if isinstance(plan, JobPlan):
        fields |= _activation(known, revision)
    if known is None:
        return JournalEntry(dag_id=plan.dag_id, first_seen=seen.now, revisions=(revision,), **fields)
    after = replace(known, gone=None, **fields)
    if revision.is_like(known.now):
        return after
    return replace(
        after,
        revisions=(*known.revisions, revision)[-MAX_REVISIONS:],
        pending=pending_after(known, plan.intervals, now=seen.now),
    )


def _activation(known: JournalEntry | None, revision: ScheduleRevision) -> Json:
    """Activation time of a job: now if it is new or was just enabled again (H14, H15)."""
    is_new = known is None or (known.meant.schedule is None and revision.schedule is not None)
    is_on_again = known is not None and revision.fires and not known.meant.fires
    return ({"active_since": revision.since} if is_new or is_on_again else {}) | (
        {"begins": revision.since} if is_new else {}
    )


def pending_after(
    known: JournalEntry, schedule: RunSchedule | JobSchedule | None, *, now: Instant
) -> PendingBackfill | None:
    """What is owed once a known conf has this schedule (H13); of one that never fired all is its timetable's."""
    if schedule is None or not schedule.catch_up.enabled:
        return None
    if not any(revision.fires for revision in known.revisions):
        return known.pending
    before = next((revision.schedule for revision in reversed(known.revisions) if revision.schedule is not None), None)
    return PendingBackfill(now) if _makes_older_ones_due(before, schedule) else known.pending


def switched_off(entry: JournalEntry, *, now: Instant) -> JournalEntry:
    """The entry of a conf that is in the tree and cannot run: nothing fires until it is good again (C23, H20)."""
    if not entry.now.enabled:
        return entry
    revision = replace(entry.now, since=now, enabled=False, is_broken=True)
    return replace(entry, revisions=(*entry.revisions, revision)[-MAX_REVISIONS:])


def as_seen(schedule: JobSchedule, entry: JournalEntry | None) -> JobSchedule:
    """A job's schedule as the deployment knows it, for its timetable (H14).

    It does not fire before a reconcile has seen it, as new, as enabled again or as back; while the journal has it as
    paused, it waits for the next fire to come.
    """
    if entry is None or entry.active_since is None or entry.gone is not None or not entry.now.enabled:
        return replace(schedule, enabled=False)
    if entry.now.schedule is None:
        return replace(schedule, enabled=False)
    seen = entry.seen(schedule, active_since=entry.active_since)
    return replace(seen, active_since=None) if entry.now.is_paused else seen


def _makes_older_ones_due(before: RunSchedule | JobSchedule | None, after: RunSchedule | JobSchedule) -> bool:
    if before is None:
        return False  # it has never run, and catches up by itself
    old, new = before.catch_up, after.catch_up
    if not new.enabled:
        return False
    moved_back = new.start is not None and old.start is not None and new.start < old.start
    return not old.enabled or moved_back


def entry_to_json(entry: JournalEntry) -> Json:
    """Inverse of :func:`entry_from_json`."""
    names = (
        "dag_id",
        "key",
        "family",
        "file",
        "table",
        "digest",
        "first_seen",
        "gone",
        "active_since",
        "begins",
    )
    data: Json = {name: getattr(entry, name) for name in names}
    data["revisions"] = [_revision_to_json(revision) for revision in entry.revisions]
    data["pending"] = None if entry.pending is None else [entry.pending.until, entry.pending.first]
    return data


def entry_from_json(data: Mapping[str, Any]) -> JournalEntry:
    """Build an entry from its JSON. Raises ValueError, KeyError or TypeError when it is damaged."""
    revisions = tuple(_revision_from_json(*revision) for revision in data["revisions"])
    pending = None if data["pending"] is None else PendingBackfill(*data["pending"])
    entry = JournalEntry(**{**data, "revisions": revisions, "pending": pending})
    texts = (entry.dag_id, entry.key, entry.family, entry.file, entry.table, entry.digest)
    instants = [
        entry.first_seen,
        *(revision.since for revision in revisions),
        *([] if pending is None else [pending.until]),
    ]
    instants += [each for each in (entry.gone, entry.active_since, entry.begins) if each is not None]
    if (
        not revisions
        or not all(isinstance(text, str) for text in texts)
        or not all(type(each) is int for each in instants)
    ):
        raise TypeError(f"the entry of {entry.dag_id!r} holds a value of another type")
    return entry


def _revision_to_json(revision: ScheduleRevision) -> list[Any]:
    more = [revision.is_paused, revision.is_broken]
    return [revision.since, revision.enabled, any_schedule_to_json(revision.schedule), *(more if any(more) else [])]


def _revision_from_json(
    since: Instant, enabled: bool, schedule: Json | None, is_paused: bool = False, is_broken: bool = False
) -> ScheduleRevision:
    return ScheduleRevision(since, any_schedule_from_json(schedule), enabled, is_paused, is_broken)
