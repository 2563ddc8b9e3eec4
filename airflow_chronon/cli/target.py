"""What a command is about: a conf root, and what was picked of it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_chronon.cli.output import tell
from airflow_chronon.cli.state import deployment_of
from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.conf_root.selection import select, select_plan
from airflow_chronon.core.confs.plan import Plan, Verdict
from airflow_chronon.deployment import find_deployment


@dataclass(frozen=True)
class Target:
    """A conf root with the verdict on each of its confs and jobs."""

    root: ConfRoot
    verdicts: Mapping[str, Verdict]

    def select(self, wanted: Sequence[str]) -> dict[str, Verdict]:
        """The verdicts that were named, all of them when none was. Raises ``ChrononError`` for one that is not there."""
        return select(self.verdicts, wanted if self.verdicts or not self.root.problems else (), self.root.path)

    def need_scheduled(self, wanted: str) -> Plan:
        """The plan of one conf, or of one job with a schedule. Raises ``ChrononError`` when there is none."""
        plan = select_plan(self.root, wanted, self.verdicts)
        plan.need_schedule()
        return plan

    def report_problems(self) -> None:
        """What is wrong with the root itself, on stderr."""
        for problem in self.root.problems:
            tell(problem)


def open_root(path: str | None) -> ConfRoot:
    """The conf root that is named, here or in Airflow's environment, with the branch that Airflow's environment names."""
    return find_deployment(environ=os.environ, conf_root=path).read_root()


def open_target(options: argparse.Namespace) -> Target:
    """The conf root that the options name, judged; with the last good settings where the command knows a state folder (C23)."""
    root = open_root(options.root)
    if "state_root" in options:
        root = deployment_of(options).with_state(root)
    return Target(root, root.judge())
