"""Every verdict on what lies under a conf root: confs and jobs."""

from __future__ import annotations

from typing import TypeAlias

from airflow_chronon.core.job_plan import JobPlan
from airflow_chronon.core.resolve import ConfPlan, ConfVerdict

GoodPlan: TypeAlias = ConfPlan | JobPlan  #: what becomes a DAG
Verdict: TypeAlias = ConfVerdict | JobPlan
