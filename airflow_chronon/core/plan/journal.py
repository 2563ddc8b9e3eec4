"""The journal: what the deployment remembers of each conf's schedule, and since when (H13, H14, H16, H20, C22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_chronon.core.instants import Instant
from airflow_chronon.core.plan.copies import ConfCopy
from airflow_chronon.core.resolve import ConfPlan
from airflow_chronon.core.runs import RunSchedule
from airflow_chronon.core.wire import schedule_from_json, schedule_to_json

Json = dict[str, Any]
WHY_OWED = "missed, and made due by a change of its settings"  #: for plans and for the notes of replays
MAX_ERAS = 200  #: older changes of one conf's schedule are forgotten


@dataclass(frozen=True)
class Era:
    """The schedule-relevant settings of a conf, and since when they hold; until the next era's ``since``."""

    since: Instant
    schedule: RunSchedule  #: grid, modes and catch-up policy; without modes nothing fires
    enabled: bool = True  #: ``enabled`` of the settings: tells a schedule that was switched off from a conf without one


@dataclass(frozen=True)
class Owed:
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
    digest: str  #: of the copy in the state folder
    first_seen: Instant
    eras: tuple[Era, ...]  #: oldest first, never empty
    owed: Owed | None = None
    gone: Instant | None = None  #: since when no conf of the tree has this DAG id

    @property
    def now(self) -> Era:
        """The era that holds now."""
        return self.eras[-1]

    @property
    def grid(self) -> str:
        return str(self.now.schedule.spec.grid)

    def era_at(self, instant: Instant) -> Era | None:
        """The settings that held at an instant; None before the conf was first seen."""
        held = [era for era in self.eras if era.since <= instant]
        return held[-1] if held else None


def journal_entry(plan: ConfPlan, copy: ConfCopy, known: JournalEntry | None, *, now: Instant) -> JournalEntry:
    """The entry of a deployed conf as of ``now``: the known one, with a new era when the schedule has changed.

    A flip of catch-up from off to on, and a start moved back with catch-up on, make earlier partitions owed (H13).
    """
    era = Era(now, plan.runs, plan.settings.enabled)
    fields: Json = {
        "key": copy.key,
        "family": copy.family,
        "file": copy.file,
        "table": copy.table,
        "digest": copy.digest,
    }
    if known is None:
        return JournalEntry(dag_id=plan.dag_id, first_seen=now, eras=(era,), **fields)
    known = replace(known, gone=None, **fields)
    if (known.now.schedule, known.now.enabled) == (era.schedule, era.enabled):
        return known
    return replace(known, eras=(*known.eras, era)[-MAX_ERAS:], owed=owed_after(known, plan.runs, now=now))


def owed_after(known: JournalEntry, schedule: RunSchedule, *, now: Instant) -> Owed | None:
    """What is owed once a known conf has this schedule (H13)."""
    if not schedule.catch_up.enabled:
        return None
    return Owed(now) if _makes_older_ones_due(known.now.schedule, schedule) else known.owed


def reborn(entry: JournalEntry, *, now: Instant) -> JournalEntry:
    """The entry of a conf that was retired and is back: its history is forgotten, its grid is not (H16, C22)."""
    return replace(entry, first_seen=now, eras=(replace(entry.now, since=now),), owed=None, gone=None)


def switched_off(entry: JournalEntry, *, now: Instant) -> JournalEntry:
    """The entry of a conf that is in the tree and cannot run: nothing fires until it is good again (C23, H20)."""
    if not entry.now.enabled:
        return entry
    return replace(entry, eras=(*entry.eras, replace(entry.now, since=now, enabled=False))[-MAX_ERAS:])


def _makes_older_ones_due(before: RunSchedule, after: RunSchedule) -> bool:
    old, new = before.catch_up, after.catch_up
    if not new.enabled:
        return False
    moved_back = new.start is not None and old.start is not None and new.start < old.start
    return not old.enabled or moved_back


def entry_to_json(entry: JournalEntry) -> Json:
    """Inverse of :func:`entry_from_json`."""
    names = ("dag_id", "key", "family", "file", "table", "digest", "first_seen", "gone")
    data: Json = {name: getattr(entry, name) for name in names}
    data["eras"] = [[era.since, era.enabled, schedule_to_json(era.schedule)] for era in entry.eras]
    data["owed"] = None if entry.owed is None else [entry.owed.until, entry.owed.first]
    return data


def entry_from_json(data: Mapping[str, Any]) -> JournalEntry:
    """Build an entry from its JSON. Raises ValueError, KeyError or TypeError when it is damaged."""
    eras = tuple(Era(since, schedule_from_json(schedule), enabled) for since, enabled, schedule in data["eras"])
    owed = None if data["owed"] is None else Owed(*data["owed"])
    return JournalEntry(**{**data, "eras": eras, "owed": owed})
