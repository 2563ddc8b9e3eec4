"""What every command does with a conf root, and how it answers."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.conf_root.selection import select
from airflow_chronon.core.confs.resolve import ConfPlan, OtherEnvironment
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.jobs.verdicts import GoodPlan, Verdict
from airflow_chronon.deployment import find_deployment
from airflow_chronon.errors import ChrononError, Fault, Rejected

GOOD, FINDINGS, USAGE = 0, 1, 2  #: exit codes


def open_root(path: str | None) -> ConfRoot:
    """The conf root that is named, here or in Airflow's environment, with the branch that Airflow's environment names."""
    return find_deployment(environ=os.environ, conf_root=path).read_root()


def open_plan(root: ConfRoot, conf: str) -> tuple[GoodPlan, dict[str, Verdict]]:
    """The plan of one conf, or of one job with a schedule, and the verdicts on all. Raises ``ChrononError`` when it is
    rejected or elsewhere."""
    verdicts = root.judge()
    if not verdicts and root.problems:
        raise Rejected(root.problems)
    key, verdict = next(iter(select(verdicts, [conf], root.path).items()))
    if isinstance(verdict, ConfPlan) or (isinstance(verdict, JobPlan) and verdict.schedule is not None):
        return verdict, verdicts
    if isinstance(verdict, OtherEnvironment):
        raise ChrononError(Fault("C12", "CONF", f"{key} is not deployed in this environment", "set environment"))
    if isinstance(verdict, JobPlan):
        problem = f"{key} is a job without a schedule, so it has no intervals"
        raise ChrononError(Fault("input", "CONF", problem, "start it with run"))
    raise Rejected(verdict.faults, conf=key)


def report_problems(root: ConfRoot) -> None:
    """What is wrong with the root itself, on stderr."""
    for problem in root.problems:
        print(problem, file=sys.stderr)


def print_json(value: dict[str, Any]) -> None:
    """One JSON value on stdout."""
    json.dump(value, sys.stdout, indent=1, ensure_ascii=False)
    print()
