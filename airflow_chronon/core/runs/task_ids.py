"""The names of the tasks of a run: Airflow's database holds them, so they are a promise."""

from __future__ import annotations

LAST_TASK = "landed"  #: every run of a conf ends with it
READY_TASK = "ready"  #: joins the waits of a run, and does nothing
WAIT_PREFIX, GATE_PREFIX = "wait.", "gate."  #: how the ids of tasks begin that only wait
