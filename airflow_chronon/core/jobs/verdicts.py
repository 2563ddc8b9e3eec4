"""Every verdict on what lies under a conf root: confs and jobs."""

from __future__ import annotations

from typing import TypeAlias

from airflow_chronon.core.confs.resolve import ConfPlan, ConfVerdict
from airflow_chronon.core.jobs.resolve import JobPlan

GoodPlan: TypeAlias = ConfPlan | JobPlan  #: what becomes a DAG
Verdict: TypeAlias = ConfVerdict | JobPlan
