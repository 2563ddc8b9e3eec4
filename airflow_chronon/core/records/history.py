"""How the record of a DAG goes on from one reconcile to the next (H8, H13 to H16, H20, C22)."""

from __future__ import annotations

from dataclasses import replace

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.records.manifest import DeployedManifest
from airflow_chronon.core.records.record import DeploymentRecord, PendingBackfill
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.schedules.revision import ScheduleRevision

MAX_REVISIONS = 200  #: older changes of one conf's schedule are forgotten


def record_after(
    plan: Plan,
    manifest: DeployedManifest,
    known: DeploymentRecord | None,
    *,
    now: Instant,
    is_paused: bool = False,
    last_fire: Instant | None = None,
) -> DeploymentRecord:
    """The record of a good conf or job as of now: the known one, with another revision when the schedule has changed.

    A flip of catch-up from off to on, and a start moved back with catch-up on, make earlier partitions due (H13). A job
    is active since it was new, or since it was last seen to fire after it did not (H14). ``is_paused`` is a job's, and
    ``last_fire`` that of its newest scheduled run, 0 for none, when that is known: a pause may be older than this reconcile.
    """
    revision = ScheduleRevision(now, plan.schedule, plan.settings.enabled, is_paused)
    if known is None or known.meant is None:
        starts = None if plan.has_partitions else now
        return DeploymentRecord(plan.dag_id, manifest, now, (revision,), active_since=starts, begins=starts)
    after = replace(known, manifest=manifest, retirement=None)
    if not plan.has_partitions:
        gets_schedule = known.meant.schedule is None and revision.schedule is not None
        is_on_again = revision.fires and not known.meant.fires
        after = replace(
            after,
            active_since=now if gets_schedule or is_on_again else known.active_since,
            begins=now if gets_schedule else known.begins,
        )
    if known.now is not None and revision.is_like(known.now):
        return after
    revision = replace(revision, since=_paused_since(revision, known, last_fire))
    pending = pending_after(known, plan.schedule, now=now)
    return replace(after, revisions=(*known.revisions, revision)[-MAX_REVISIONS:], pending=pending)


def pending_after(
    known: DeploymentRecord, schedule: PartitionedSchedule | IntervalSchedule | None, *, now: Instant
) -> PendingBackfill | None:
    """What is to be replayed once a known conf has this schedule (H13).

    Of one that never fired there is nothing: all that was missed is its timetable's. A schedule that a job gets back is
    new, whatever ran before (H16); what follows the newest of those runs is its timetable's.
    """
    if schedule is None or not schedule.catch_up.enabled:
        return None
    if not any(revision.fires for revision in known.revisions):
        return known.pending
    if known.meant is not None and known.meant.schedule is None:
        return PendingBackfill(now, forgets=True)
    before = next((revision.schedule for revision in reversed(known.revisions) if revision.schedule is not None), None)
    return PendingBackfill(now) if _makes_older_ones_due(before, schedule) else known.pending


def switched_off(record: DeploymentRecord, *, now: Instant) -> DeploymentRecord:
    """The record of a conf that is in the tree and cannot run: nothing fires until it is good again (C23, H20)."""
    if record.now is None or not record.now.enabled:
        return record
    revision = replace(record.now, since=now, enabled=False, is_broken=True)
    return replace(record, revisions=(*record.revisions, revision)[-MAX_REVISIONS:])


def as_seen(schedule: IntervalSchedule, record: DeploymentRecord | None) -> IntervalSchedule:
    """A job's schedule as the deployment knows it, for its timetable (H14).

    It does not fire before a reconcile has seen it, as new, as enabled again or as back; while its record has it as
    paused, it waits for the next fire to come.
    """
    if record is None:
        return replace(schedule, enabled=False)
    since, now = record.active_since, record.now
    is_off = now is None or not now.enabled or now.schedule is None
    if since is None or record.retirement is not None or is_off:
        return replace(record.with_past(schedule), enabled=False)
    seen = record.seen(schedule, active_since=since)
    return replace(seen, active_since=None) if record.is_paused else seen


def seen_plan(plan: Plan, record: DeploymentRecord | None) -> Plan:
    """The plan with the schedule that its timetable has; ``record`` is what is remembered of its DAG."""
    return plan.as_seen(lambda schedule: as_seen(schedule, record))


def is_active(plan: Plan, record: DeploymentRecord | None) -> bool:
    """Whether a schedule that is on fires already, and does not wait for a reconcile to see it."""
    planned, seen = plan.schedule, seen_plan(plan, record).schedule
    return planned is None or not planned.is_on or (seen is not None and seen.is_on)


def _paused_since(revision: ScheduleRevision, known: DeploymentRecord, last_fire: Instant | None) -> Instant:
    """Since when a revision holds: one that is only a pause since the first fire that did not come (H20)."""
    before, schedule = known.now, revision.schedule
    if last_fire is None or before is None or not isinstance(schedule, IntervalSchedule):
        return revision.since
    if not revision.is_paused or not replace(revision, is_paused=False).is_like(before):
        return revision.since
    came = max(last_fire, before.since, known.active_since or 0)
    return min(revision.since, schedule.cron.first_at_or_after(came + 1))


def _makes_older_ones_due(
    before: PartitionedSchedule | IntervalSchedule | None, after: PartitionedSchedule | IntervalSchedule
) -> bool:
    if before is None:
        return False  # it has never run, and catches up by itself
    old, new = before.catch_up, after.catch_up
    moved_back = new.start is not None and old.start is not None and new.start < old.start
    return not old.enabled or moved_back
