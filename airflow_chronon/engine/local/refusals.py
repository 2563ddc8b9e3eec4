"""What the embedded engine cannot do, said before any work: the conf, the field, the reason, the remedy."""

from __future__ import annotations

from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import Fault, JobRefused

ON_SPARK = "run this conf with the command runner"


def refused(job: JobRequest, field: str, reason: str, remedy: str = ON_SPARK, *, rule: str = "runner") -> JobRefused:
    """The refusal, to be raised."""
    return JobRefused(Fault(rule, field, reason, remedy), conf=job.conf)
