"""``check``: every conf and job is ok, or each broken rule with its remedy."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from airflow_chronon.cli.commands.plan import BASE, show_differences
from airflow_chronon.cli.options import FORMAT, ROOT, Command
from airflow_chronon.cli.output import FINDINGS, GOOD, columns, show, tell
from airflow_chronon.cli.target import Target, open_target
from airflow_chronon.conf_root.confs import passed_over
from airflow_chronon.core.confs.further_modes import unscheduled_modes
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.json import verdict_json
from airflow_chronon.engine.zipline import driver_warnings
from airflow_chronon.errors import Fault

_WORDS = {"ok": "ok", "rejected": "REJECTED", "other environment": "not here"}


def check(options: argparse.Namespace) -> int:
    """Print the verdicts; with ``--base``, what differs from another revision on stderr."""
    target = open_target(options)
    show(options, text=text_of(target), value=lambda: json_of(target))
    bad = report_findings(target)
    if options.base is not None:
        with contextlib.redirect_stdout(sys.stderr):  # stdout holds the verdicts
            bad |= show_differences(target.root, options.base, argparse.Namespace(format="text")) == FINDINGS
    return FINDINGS if bad else GOOD


def text_of(target: Target) -> Callable[[], str] | None:
    """The verdicts for people; None where there is nothing to say of a root with problems."""
    return (lambda: _text(target)) if target.verdicts or not target.root.problems else None


def json_of(target: Target) -> dict[str, Any]:
    """The verdicts for programs."""
    return {key: verdict_json(verdict) for key, verdict in target.verdicts.items()}


def report_findings(target: Target) -> bool:
    """Say on stderr what is wrong or odd about the root as a whole; whether anything in it is bad."""
    target.report_problems()
    plans = [verdict.plan for verdict in target.verdicts.values() if isinstance(verdict.plan, ConfPlan)]
    for odd in (*target.root.warnings(), *driver_warnings(plans, os.environ), *_without_a_dag(target, plans)):
        tell(f"warning: {odd}")
    return bool(target.root.problems) or any(verdict.faults for verdict in target.verdicts.values())


def _without_a_dag(target: Target, plans: list[ConfPlan]) -> Iterator[Fault]:
    """What the confs of a root ask for and no DAG runs."""
    yield from unscheduled_modes(plan.conf for plan in plans)
    yield from passed_over(target.root.path, target.root.settings.environment)


CHECK = Command(
    "check",
    "say of every conf whether it is good, else each broken rule with its remedy",
    (ROOT, BASE, FORMAT),
    check,
)


def _text(target: Target) -> str:
    """A line per conf, its faults and warnings below it, and a sum at the end."""
    verdicts = target.verdicts
    rows = []
    for key, verdict in verdicts.items():
        grid = "" if verdict.plan is None or verdict.plan.grid is None else str(verdict.plan.grid)
        rows.append((_WORDS[verdict.status], key, grid, verdict.summary))
    lines = []
    for line, verdict in zip(columns(rows), verdicts.values(), strict=True):
        lines.append(line)
        lines += [f"    {fault}" for fault in verdict.faults]
        lines += [f"    warning: {fault}" for fault in verdict.warnings]
    good = sum(verdict.plan is not None for verdict in verdicts.values())
    bad = sum(bool(verdict.faults) for verdict in verdicts.values())
    warned = sum(bool(verdict.warnings) for verdict in verdicts.values())
    counts = f"{good} good, {warned} of them with warnings; {bad} rejected"
    if others := len(verdicts) - good - bad:  # C12
        counts += f"; {others} not here, since {'it is' if others == 1 else 'they are'} of another environment"
    return "\n".join([*lines, f"{counts}: {target.root.path}"])
