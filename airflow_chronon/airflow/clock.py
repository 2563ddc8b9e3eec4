"""The one place of the Airflow layer that reads the clock."""

from __future__ import annotations

from airflow.sdk import timezone

from airflow_chronon.core.calendar.instants import Instant


def now() -> Instant:
    """The current instant, in whole seconds, by Airflow's own clock: time machines in tests move both."""
    return int(timezone.utcnow().timestamp())


def moment() -> float:
    """The current instant with its fraction of a second."""
    return float(timezone.utcnow().timestamp())
