"""The JSON of ``check`` and ``explain``: one entry per conf, the same shape for every reader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_chronon.core.calendar.instants import MINUTE, iso
from airflow_chronon.core.confs.resolve import ConfPlan, OtherEnvironment, RejectedConf
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.jobs.verdicts import Verdict
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.schedules.job_runs import JobRun
from airflow_chronon.core.schedules.partitioned import Run
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.errors import Fault


def verdict_json(verdict: Verdict, runs: Iterable[Run | JobRun] | None = None) -> dict[str, Any]:
    """One conf's entry; with ``runs``, what ``explain`` adds."""
    if isinstance(verdict, OtherEnvironment):
        return {"status": "other environment", "file": verdict.conf.file}
    if isinstance(verdict, RejectedConf):
        return {"status": "rejected", "file": verdict.file, "errors": [_fault_json(fault) for fault in verdict.faults]}
    if isinstance(verdict, JobPlan):
        return _job_json(verdict, runs)
    entry: dict[str, Any] = {
        "status": "ok",
        "file": verdict.conf.file,
        "dag_id": verdict.dag_id,
        "version": verdict.conf.version,
        "grid": _spec_json(verdict.spec),
        "modes": sorted(mode.value for mode in verdict.modes),
        "warnings": [_fault_json(fault) for fault in verdict.warnings],
    }
    if runs is not None:
        entry["runs"] = [run_json(verdict, run) for run in runs if isinstance(run, Run)]
    return entry


def _job_json(plan: JobPlan, runs: Iterable[Run | JobRun] | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "status": "ok",
        "file": plan.file,
        "dag_id": plan.dag_id,
        "version": plan.version,
        "cron": plan.schedule.cron.text if plan.schedule is not None else None,
        "warnings": [_fault_json(fault) for fault in plan.warnings],
    }
    if runs is not None:
        entry["runs"] = [job_run_json(run) for run in runs if isinstance(run, JobRun)]
    return entry


def job_run_json(run: JobRun) -> dict[str, Any]:
    """One run of a job."""
    return {
        "fire": iso(run.fire),
        "partition_key": run.key,
        "logical_date": iso(run.logical_date),
        "start": iso(run.window.start),
        "end": iso(run.window.end),
    }


def run_json(plan: ConfPlan, run: Run) -> dict[str, Any]:
    """One run with its modes, their partitions and their waits."""
    return {
        "fire": iso(run.fire),
        "partition_key": plan.runs.key_of(run),
        "start": iso(run.window.start),
        "end": iso(run.window.end),
        "modes": {
            mode.value: {
                "fire": iso(of.fire),
                "partitions": list(plan.spec.labels(of.window.start, of.window.end)),
                "waits": [wait_json(wait) for wait in plan.mode_waits(mode, of.window)],
            }
            for mode, of in run.modes.items()
        },
    }


def wait_json(wait: Wait) -> dict[str, Any]:
    """What is waited for on one table."""
    if wait.expression is not None:
        return {"table": wait.table, "expression": wait.expression}
    if wait.until is not None:
        return {"table": wait.table, "column": wait.column, "until": iso(wait.until)}
    entry: dict[str, Any] = {
        "table": wait.table,
        "column": wait.column,
        "labels": list(wait.labels),
        "sub": list(wait.sub),
    }
    if wait.lookback is not None:
        entry["lookback"] = {"from": wait.lookback.first, "to": wait.lookback.last}
    return entry


def _spec_json(spec: PartitionSpec) -> dict[str, Any]:
    return {
        "interval_minutes": spec.grid.interval // MINUTE,
        "offset_minutes": spec.grid.offset // MINUTE,
        "format": spec.format.pattern,
        "column": spec.column,
    }


def _fault_json(fault: Fault) -> dict[str, str]:
    entry = {"rule": fault.rule, "field": fault.field, "message": fault.message}
    return entry | ({"remedy": fault.remedy} if fault.remedy else {})
