"""How long the runs of each DAG wait for what they read, as Airflow tells."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.core.runs.task_ids import WAIT_PREFIX


def seconds_waited(server: AirflowServer, *, now: float) -> Mapping[str, float]:
    """By DAG id, for how long the wait has gone on that began first among those that are not over.

    DAGs without any are left out. All deferred tasks are listed in one list: waits take no worker, so each of them is one.
    """
    found: dict[str, float] = {}
    for task in server.tasks(states=("deferred",)):
        if task.task_id.startswith(WAIT_PREFIX) and task.start is not None:
            found[task.dag_id] = max(found.get(task.dag_id, 0.0), now - task.start)
    return found
