"""Picks the description of a plan by its kind, conf or job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.confs import ConfDescription
from airflow_chronon.core.describe.description import Description
from airflow_chronon.core.describe.jobs import JobDescription
from airflow_chronon.core.jobs.resolve import JobPlan

_DESCRIPTIONS: Mapping[type[Plan], Callable[[Any], Description]] = {
    ConfPlan: ConfDescription,
    JobPlan: JobDescription,
}


def describe(plan: Plan) -> Description:
    """The description of a plan."""
    return _DESCRIPTIONS[type(plan)](plan)
