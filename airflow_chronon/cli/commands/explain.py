"""``explain``: the runs whose first fire lies in a window, or those that an outage leaves to create."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_chronon.cli.options import BETWEEN, CONFS, FORMAT, NEW, RECOVERY, ROOT, Command
from airflow_chronon.cli.output import FINDINGS, GOOD, USAGE, columns, show
from airflow_chronon.cli.target import open_target
from airflow_chronon.core.calendar.instants import iso, parse_instant
from airflow_chronon.core.confs.plan import Plan, Verdict
from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.describe.json import verdict_json
from airflow_chronon.core.describe.plans import describe
from airflow_chronon.core.partitions.limits import limited
from airflow_chronon.core.schedules.base import AnySchedule, ScheduledRun

_FAR = parse_instant("2199-12-31")  #: where looking for the next run ends


def explain(options: argparse.Namespace) -> int:
    """Print the runs of each conf, with what each of them waits for."""
    given = {name for name in ("start", "end", "after", "now") if getattr(options, name) is not None}
    between = given == {"start", "end"}
    if not between and given != {"after", "now"}:
        print("explain: give --from and --to, or --after and --now", file=sys.stderr)
        return USAGE
    if between and options.end <= options.start:
        print("explain: --to must be after --from", file=sys.stderr)
        return USAGE
    target = open_target(options)
    shown = {key: _explained(key, verdict, options) for key, verdict in target.select(options.conf).items()}
    show(
        options,
        text=lambda: "\n\n".join("\n".join(_lines(key, each)) for key, each in shown.items()),
        value=lambda: {key: verdict_json(each.verdict, each.runs) for key, each in shown.items()},
    )
    target.report_problems()
    asked_for_bad = options.conf and any(each.verdict.faults for each in shown.values())
    return FINDINGS if target.root.problems or asked_for_bad else GOOD


EXPLAIN = Command(
    "explain",
    "show the runs of confs: fires, partitions, waits",
    (CONFS, ROOT, *BETWEEN, *RECOVERY, FORMAT),
    explain,
)


@dataclass(frozen=True)
class _Explained:
    """A conf or job with the runs that were asked for; None for what is not deployed."""

    verdict: Verdict
    runs: Sequence[ScheduledRun] | None
    next_run: ScheduledRun | None = None  #: the first one after what was asked for


def _explained(key: str, verdict: Verdict, options: argparse.Namespace) -> _Explained:
    if verdict.plan is None:
        return _Explained(verdict, None)
    schedule: AnySchedule | None = verdict.plan.schedule
    if schedule is None:
        return _Explained(verdict, ())
    if options.start is not None:
        runs = limited(schedule.runs_between(options.start, options.end), what="runs", conf=key)
        return _Explained(verdict, runs, None if runs else next(schedule.runs_between(options.end, _FAR), None))
    last_end = None if options.after == NEW else verdict.plan.end_of_runs_fired_by(options.after)
    runs = limited(schedule.missed(last_end, options.now), what="runs", conf=key)
    return _Explained(verdict, runs, None if runs else schedule.next_run(last_end, options.now))


def _lines(key: str, shown: _Explained) -> list[str]:
    """What the conf is, then a table of its runs."""
    plan = shown.verdict.plan
    if plan is None:
        return [f"{key}: {shown.verdict.status}", *(f"  {fault}" for fault in shown.verdict.faults)]
    described = describe(plan)
    schedule: AnySchedule | None = plan.schedule
    runs = shown.runs or ()
    kept = [run for run in runs if schedule is None or schedule.is_kept(run)]
    lines = columns(described.run_table(kept))
    if skipped := len(runs) - len(kept):
        assert schedule is not None
        skip_to = iso(schedule.catch_up.skip_to or 0)
        lines.append(f"{counted(skipped, 'run')} skipped: skip_to_date is {skip_to} (H11)")
    lines = lines or [_no_runs(plan, shown)]
    return [f"{key}: {described.headline}, DAG {plan.dag_id}", *(f"  {line}" for line in lines)]


def _no_runs(plan: Plan, shown: _Explained) -> str:
    """Why there is nothing to show."""
    schedule = plan.schedule
    if schedule is None or not schedule.is_on:
        return "no runs: the schedule is off" if schedule is not None else "no runs"
    if shown.next_run is not None:
        return f"no runs; the next one fires {iso(shown.next_run.fire)}"
    end = schedule.catch_up.end
    return "no runs, and none later" + (f": the schedule ends {iso(end)}" if end is not None else "")
