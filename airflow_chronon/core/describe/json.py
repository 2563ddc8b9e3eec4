"""The JSON of ``check`` and ``explain``: one entry per conf, the same shape for every reader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_chronon.core.confs.plan import Verdict
from airflow_chronon.core.describe.plans import describe
from airflow_chronon.core.schedules.base import AnySchedule, ScheduledRun
from airflow_chronon.errors import Fault


def verdict_json(verdict: Verdict, runs: Iterable[ScheduledRun] | None = None) -> dict[str, Any]:
    """One conf's entry; with ``runs``, what ``explain`` adds."""
    entry: dict[str, Any] = {"status": verdict.status, "file": verdict.file}
    if verdict.faults:
        entry["errors"] = [fault_json(fault) for fault in verdict.faults]
    plan = verdict.plan
    if plan is None:
        return entry
    described = describe(plan)
    entry |= {"dag_id": plan.dag_id, "version": plan.version, **described.fields}
    entry["warnings"] = [fault_json(fault) for fault in plan.warnings]
    if runs is not None:
        schedule: AnySchedule | None = plan.schedule

        def skipped(run: ScheduledRun) -> dict[str, bool]:
            return {} if schedule is None or schedule.is_kept(run) else {"skipped": True}  # H11

        entry["runs"] = [described.run_json(run) | skipped(run) for run in runs]
    return entry


def fault_json(fault: Fault) -> dict[str, str]:
    """One fault, its remedy only where it has one."""
    entry = {"rule": fault.rule, "field": fault.field, "message": fault.message}
    return entry | ({"remedy": fault.remedy} if fault.remedy else {})
