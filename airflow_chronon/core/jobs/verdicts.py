"""The older names of what :mod:`airflow_chronon.core.confs.plan` holds."""

from __future__ import annotations

from airflow_chronon.core.confs.plan import Plan as GoodPlan
from airflow_chronon.core.confs.plan import Verdict

__all__ = ["GoodPlan", "Verdict"]
