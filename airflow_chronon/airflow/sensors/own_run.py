"""What a wait asks about its own run."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk.execution_time.comms import GetTaskStates

from airflow_chronon.airflow.sensors.supervisor import Supervisor, supervisor_of_process

_LOG = logging.getLogger(__name__)

#: States of a task that its upstream tasks hold back no more.
_GONE_AHEAD = frozenset(
    ("scheduled", "queued", "running", "restarting", "deferred", "up_for_retry", "success", "failed")
)


async def is_overtaken(task_instance: Any, *, supervisor: Supervisor | None = None) -> bool:
    """Whether every task that a wait holds back has gone ahead without it.

    Airflow adds the task of a new dependency to the runs that are there, one whose work is done or under way included: such
    a wait holds back nothing, and would only keep its run from ending. Airflow that does not answer ends no wait.
    """
    held_back = sorted(getattr(getattr(task_instance, "task", None), "downstream_task_ids", ()))
    if not held_back:
        return False
    run_id = task_instance.run_id
    message = GetTaskStates(dag_id=task_instance.dag_id, task_ids=held_back, run_ids=[run_id])
    try:
        found = (await (supervisor or supervisor_of_process()).asend(message)).task_states.get(run_id, {})
    except Exception as error:  # whatever a supervisor answers that cannot
        _LOG.warning("Airflow does not tell whether the run has gone ahead: %s: %s", type(error).__name__, error)
        return False
    states = [found.get(task_id) for task_id in held_back]
    return all(getattr(state, "value", state) in _GONE_AHEAD for state in states)
