"""What a wait asks about its own run, and about the table that the run writes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk.execution_time.comms import GetAssetStateStoreByName, GetTaskStates

from airflow_chronon.airflow.sensors.supervisor import Supervisor
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET, contract_key

_LOG = logging.getLogger(__name__)

#: States of a task that its upstream tasks hold back no more.
_GONE_AHEAD = frozenset(
    (
        "scheduled",
        "queued",
        "running",
        "restarting",
        "deferred",
        "up_for_reschedule",
        "up_for_retry",
        "success",
        "failed",
    )
)


async def is_overtaken(task_instance: Any, supervisor: Supervisor) -> bool:
    """Whether every task that a wait holds back has gone ahead without it.

    Airflow adds the task of a new dependency to the runs that are there, one whose work is done or under way included: such
    a wait holds back nothing, and would only keep its run from ending. Airflow that does not answer ends no wait.
    """
    held_back = sorted(getattr(getattr(task_instance, "task", None), "downstream_task_ids", ()))
    if not held_back:
        return False
    run_id = task_instance.run_id
    message = GetTaskStates(dag_id=task_instance.dag_id, task_ids=held_back, run_ids=[run_id])
    answer = await _answer(supervisor, message, "whether the run has gone ahead")
    by_run = getattr(answer, "task_states", None)
    found = by_run.get(run_id) if isinstance(by_run, Mapping) else None
    if not isinstance(found, Mapping):
        return False
    states = [found.get(task_id) for task_id in held_back]
    return all(getattr(state, "value", state) in _GONE_AHEAD for state in states)


async def kept_grid(task_instance: Any, supervisor: Supervisor) -> str | None:
    """How the table that a run writes was partitioned at its first write, as text (C22).

    None when nothing was written yet, and while Airflow does not tell: the work task looks again.
    """
    if task_instance is None:
        return None
    message = GetAssetStateStoreByName(name=CONTRACTS_ASSET, key=contract_key(task_instance.dag_id))
    answer = await _answer(supervisor, message, "how the table was begun")
    kept = getattr(answer, "value", None)  # where there is none, the answer is an error without one
    return None if kept is None else str(kept)


async def _answer(supervisor: Supervisor, message: Any, what: str) -> Any:
    try:
        return await supervisor.asend(message)
    except Exception as error:  # whatever a supervisor answers that cannot
        _LOG.warning("Airflow does not tell %s: %s: %s", what, type(error).__name__, error)
        return None
