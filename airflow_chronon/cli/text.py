"""What ``check`` and ``explain`` print for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.confs.resolve import ConfPlan, OtherEnvironment, RejectedConf
from airflow_chronon.core.describe.format import format_wait, span
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.jobs.verdicts import Verdict
from airflow_chronon.core.schedules.base import AnySchedule
from airflow_chronon.core.schedules.job_runs import JobRun
from airflow_chronon.core.schedules.partitioned import Run


def check_text(root: ConfRoot, verdicts: Mapping[str, Verdict]) -> str:
    """A line per conf, its faults and warnings below it, and a sum at the end."""
    rows = []
    notes: dict[int, list[str]] = {}
    for key, verdict in verdicts.items():
        if isinstance(verdict, ConfPlan):
            modes = ", ".join(mode.value for mode in verdict.modes) or "unscheduled"
            rows.append(("ok", key, str(verdict.spec.grid), modes))
            notes[len(rows)] = [f"warning: {fault}" for fault in verdict.warnings]
        elif isinstance(verdict, JobPlan):
            rows.append(("ok", key, "", _fires(verdict)))
            notes[len(rows)] = [f"warning: {fault}" for fault in verdict.warnings]
        elif isinstance(verdict, RejectedConf):
            rows.append(("REJECTED", key, "", verdict.file))
            notes[len(rows)] = [str(fault) for fault in verdict.faults]
        else:
            rows.append(("elsewhere", key, "", "other environment"))
    lines = []
    for number, line in enumerate(columns(rows), 1):
        lines.append(line)
        lines += [f"    {note}" for note in notes.get(number, ())]
    good = sum(isinstance(verdict, ConfPlan | JobPlan) for verdict in verdicts.values())
    bad = sum(isinstance(verdict, RejectedConf) for verdict in verdicts.values())
    warned = sum(bool(v.warnings) for v in verdicts.values() if isinstance(v, ConfPlan | JobPlan))
    lines.append(
        f"{good} good, {warned} of them with warnings; {bad} rejected; {len(verdicts) - good - bad} elsewhere: {root.path}"
    )
    return "\n".join(lines)


@dataclass(frozen=True)
class Explained:
    """A conf or job with the runs that were asked for; None for what is not deployed."""

    verdict: Verdict
    runs: Sequence[Run | JobRun] | None
    next_run: Run | JobRun | None = None  #: the first one after what was asked for


def explain_text(shown: Mapping[str, Explained]) -> str:
    """Per conf: what it is, then a table of its runs with what each of them waits for."""
    return "\n\n".join(_explain_one(key, each) for key, each in shown.items())


def _explain_one(key: str, shown: Explained) -> str:
    verdict, runs = shown.verdict, shown.runs or ()
    if isinstance(verdict, RejectedConf):
        return "\n".join([f"{key}: rejected", *(f"  {fault}" for fault in verdict.faults)])
    if isinstance(verdict, OtherEnvironment):
        return f"{key}: other environment"
    if isinstance(verdict, JobPlan):
        return _explain_job(key, verdict, shown)
    crons = ", ".join(f"{mode.value} {of.schedule.text!r}" for mode, of in verdict.runs.modes.items()) or "no schedule"
    lines = [f"{key}: grid {verdict.spec.grid}, {crons}, DAG {verdict.dag_id}"]
    rows = [("fire", "partition", "mode", "writes", "waits for")] if runs else []
    for run in (run for run in runs if isinstance(run, Run)):
        for number, (mode, of) in enumerate(run.modes.items()):
            labels = verdict.spec.labels(of.window.start, of.window.end)
            waits = "; ".join(format_wait(wait) for wait in verdict.mode_waits(mode, of.window)) or "nothing"
            key_text = verdict.runs.key_of(run) if number == 0 else ""
            rows.append((iso(of.fire), key_text, mode.value, span(labels), waits))
    lines += [f"  {line}" for line in columns(rows) or [_no_runs(verdict.runs, shown)]]
    return "\n".join(lines)


def _fires(plan: JobPlan) -> str:
    if plan.schedule is None:
        return "by hand"
    return plan.schedule.cron.text if plan.schedule.enabled else f"{plan.schedule.cron.text} (off)"


def _explain_job(key: str, plan: JobPlan, shown: Explained) -> str:
    runs = shown.runs or ()
    cron = "runs by hand only" if plan.schedule is None else f"cron {plan.schedule.cron.text!r}"
    rows = [("fire", "logical date", "window")] if runs else []
    rows += [(iso(run.fire), run.key, str(run.window)) for run in runs if isinstance(run, JobRun)]
    lines = [f"{key}: {cron}, DAG {plan.dag_id}"]
    lines += [f"  {line}" for line in columns(rows) or [_no_runs(plan.schedule, shown)]]
    return "\n".join(lines)


def _no_runs(schedule: AnySchedule | None, shown: Explained) -> str:
    """Why there is nothing to show."""
    if schedule is None or not schedule.is_on:
        return "no runs: the schedule is off" if schedule is not None else "no runs"
    if shown.next_run is not None:
        return f"no runs; the next one fires {iso(shown.next_run.fire)}"
    end = schedule.catch_up.end
    return "no runs, and none later" + (f": the schedule ends {iso(end)}" if end is not None else "")


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
