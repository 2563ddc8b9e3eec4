"""``explain``: the next runs, those whose first fire lies in a window, or those that an outage leaves to create."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from airflow_chronon.cli.options import BETWEEN, CONFS, FORMAT, NEW, RECOVERY, ROOT, Command
from airflow_chronon.cli.output import FINDINGS, GOOD, USAGE, columns, show, tell
from airflow_chronon.cli.target import open_target
from airflow_chronon.core.calendar.instants import Instant, iso, parse_instant
from airflow_chronon.core.confs.plan import Plan, Verdict
from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.describe.json import verdict_json
from airflow_chronon.core.describe.plans import describe
from airflow_chronon.core.partitions.limits import limited
from airflow_chronon.core.schedules.base import AnySchedule, ScheduledRun

_INDENT = 2  #: of what stands below its conf
_NEXT = 5  #: runs that are shown unless more is asked for
_FAR = parse_instant("2199-12-31")  #: where looking for the next run ends


def explain(options: argparse.Namespace) -> int:
    """Print the runs of each conf, with what each of them waits for."""
    given = {name for name in ("start", "end", "after", "now") if getattr(options, name) is not None}
    if given not in (set(), {"start", "end"}, {"after", "now"}):
        tell("explain: give --from and --to, or --after and --now, or none of them for what comes next")
        return USAGE
    if options.start is not None and options.end <= options.start:
        tell("explain: --to must be after --from")
        return USAGE
    target = open_target(options)
    shown = {key: _explained(key, verdict, options) for key, verdict in target.select(options.conf).items()}
    show(
        options,
        text=None if not shown else lambda: "\n\n".join("\n".join(_lines(key, each)) for key, each in shown.items()),
        value=lambda: {key: verdict_json(each.verdict, each.runs) for key, each in shown.items()},
    )
    target.report_problems()
    asked_for_bad = options.conf and any(each.verdict.faults for each in shown.values())
    return FINDINGS if target.root.problems or asked_for_bad else GOOD


EXPLAIN = Command(
    "explain",
    "show the runs of confs: fires, partitions, waits; the next five unless a time is given",
    (CONFS, ROOT, *BETWEEN, *RECOVERY, FORMAT),
    explain,
)


@dataclass(frozen=True)
class _Explained:
    """A conf or job with the runs that were asked for; None for what is not deployed."""

    verdict: Verdict
    runs: Sequence[ScheduledRun] | None
    next_run: ScheduledRun | None = None  #: the first one after what was asked for

    @property
    def kept(self) -> Sequence[ScheduledRun] | None:
        """The runs without those that the skip date drops (H11)."""
        plan = self.verdict.plan
        schedule: AnySchedule | None = None if plan is None else plan.schedule
        if self.runs is None or schedule is None:
            return self.runs
        return [run for run in self.runs if schedule.is_kept(run)]


def _explained(key: str, verdict: Verdict, options: argparse.Namespace) -> _Explained:
    if verdict.plan is None:
        return _Explained(verdict, None)
    schedule: AnySchedule | None = verdict.plan.schedule
    if schedule is None:
        return _Explained(verdict, ())
    if options.start is not None:
        runs = limited(schedule.runs_between(options.start, options.end), what="runs", conf=key)
        return _Explained(verdict, runs, None if runs else next(schedule.runs_between(options.end, _FAR), None))
    if options.now is None:
        return _Explained(verdict, tuple(islice(_coming(schedule, int(time.time())), _NEXT)))
    last_end = None if options.after == NEW else verdict.plan.end_of_runs_fired_by(options.after)
    runs = limited(schedule.missed(last_end, options.now), what="runs", conf=key)
    return _Explained(verdict, runs, None if runs else schedule.next_run(last_end, options.now))


def _coming(schedule: AnySchedule, now: Instant) -> Iterator[ScheduledRun]:
    """The runs that fire from now on, those that the skip date drops left out (H11)."""
    skip_to = schedule.catch_up.skip_to
    return filter(schedule.is_kept, schedule.runs_between(now if skip_to is None else max(now, skip_to), _FAR))


def _lines(key: str, shown: _Explained) -> list[str]:
    """What the conf is, then a table of its runs."""
    plan = shown.verdict.plan
    if plan is None:
        return [f"{key}: {shown.verdict.status}", *(f"  {fault}" for fault in shown.verdict.faults)]
    described = describe(plan)
    schedule: AnySchedule | None = plan.schedule
    runs = shown.runs or ()
    kept = shown.kept or ()
    lines = columns(described.run_table(kept), indent=_INDENT)
    if skipped := len(runs) - len(kept):
        assert schedule is not None
        skip_to = iso(schedule.catch_up.skip_to or 0)
        lines.append(f"{' ' * _INDENT}{counted(skipped, 'run')} skipped: skip_to_date is {skip_to} (H11)")
    lines = lines or [f"{' ' * _INDENT}{_no_runs(plan, shown)}"]
    return [f"{key}: {described.headline}, DAG {plan.dag_id}", *lines]


def _no_runs(plan: Plan, shown: _Explained) -> str:
    """Why there is nothing to show."""
    schedule = plan.schedule
    if schedule is None or not schedule.is_on:
        return "no runs: the schedule is off" if schedule is not None else "no runs"
    if shown.next_run is not None:
        return f"no runs; the next one fires {iso(shown.next_run.fire)}"
    end = schedule.catch_up.end
    return "no runs, and none later" + (f": the schedule ends {iso(end)}" if end is not None else "")
