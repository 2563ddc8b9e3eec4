"""Jobs elsewhere that other tasks have left, or still follow: whoever writes the same partitions waits for their end (C28).

A job elsewhere outlives its run, and so no list of running tasks tells of it. Its record does, in the state of its task.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.airflow.operators.remote import RemoteTask
from airflow_chronon.airflow.operators.write_order import LEAVING_SECONDS, POLL_SECONDS, WriteOrder
from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.writers import Rivals
from airflow_chronon.core.runs.write_order import BUSY_STATES, TaskKey
from airflow_chronon.engine.remote import KEY, JobRecord
from airflow_chronon.errors import ChrononError, Fault, JobFailed

_FOLLOWING = (*BUSY_STATES, "up_for_retry")


def fingerprint(runner: Mapping[str, Any]) -> str:
    """What two tasks have in common that can ask after each other's jobs: the runner's section as it is written."""
    text = json.dumps(runner, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def jobs_key(table: str) -> str:
    """The key, in the state of the contracts' asset, that says whether a job for a table was ever submitted elsewhere.

    It is set before the first one and never taken away, so that it needs no lock; without it nobody has to look.
    """
    return f"elsewhere:{table}"


def job_to_wait_for(
    order: WriteOrder,
    server: AirflowServer,
    *,
    own_runs: Iterable[str],
    remote: RemoteTask | None,
    log: Callable[[str], None],
) -> BaseTrigger | None:
    """What a task waits for that has its turn: the first job of another task for its partitions that may still write.

    ``own_runs`` are the other runs of its DAG for them; ``remote`` asks after jobs as this task's runner does. Raises ``JobFailed``
    for one of which nobody here can know.
    """
    dag_id, _, task_id = order.task
    found: list[tuple[TaskKey, RemoteTask | None]] = [((dag_id, run_id, task_id), remote) for run_id in own_runs]
    rivals = Rivals(server, order.task, order.ticket, order.table)
    for task, ticket in rivals.tasks_of_other_dags():
        found.append((task, remote if ticket.runner == order.ticket.runner else None))
    for task, asking in found:
        data = server.task_state(task[0], task[1], task_id=task[2], key=KEY)
        if data is None or not JobRecord.from_json(data).is_open:
            continue
        name = task[1] if task[0] == dag_id else f"{task[1]} of {task[0]}"
        trigger = _followed(task, server, name, log) if asking is None else asking.job_left_by(name, data, log)
        if trigger is not None:
            return trigger
        if asking is None:
            raise _unknown(name, JobRecord.from_json(data), conf=order.task[0])
    return None


def _followed(task: TaskKey, server: AirflowServer, name: str, log: Callable[[str], None]) -> FollowedJobTrigger | None:
    if not _is_followed(server, task):
        return None
    log(f"waiting for the job of {name}, which writes the same partitions")
    return FollowedJobTrigger(task_of=list(task))


def _is_followed(server: AirflowServer, task: TaskKey) -> bool:
    """Whether the task that submitted a job goes on and will record its end."""
    return bool(server.tasks(task[0], task[1], task_id=task[2], states=_FOLLOWING))


def _unknown(name: str, record: JobRecord, *, conf: str) -> JobFailed:
    job = f"the job {record.job_id}" if record.job_id else f"a job with the token {record.token}"
    problem = f"{name} has left {job}, which may write the same partitions, and the runner here cannot ask after it"
    return JobFailed(
        Fault("C28", "runner", problem, f"see that it has ended, then clear {name} or delete it"), conf=conf
    )


class FollowedJobTrigger(BaseTrigger):
    """Fires when the job of another task has ended by that task's own word, or nobody follows it any more."""

    def __init__(self, *, task_of: list[str], poll_seconds: int = POLL_SECONDS, **_later: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.task_of, self.poll_seconds = task_of, poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.FollowedJobTrigger", {"task_of": self.task_of, "poll_seconds": self.poll_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(LEAVING_SECONDS)
        server = await asyncio.to_thread(find_airflow)
        while server is not None:
            try:
                if not await asyncio.to_thread(self._goes_on, server):
                    break
            except AirflowUnreachable:
                pass  # it may be restarting
            except ChrononError:
                break  # the task asks once more itself, and fails with the reason
            await asyncio.sleep(self.poll_seconds)
        yield TriggerEvent("ended")  # type: ignore[no-untyped-call]

    def _goes_on(self, server: AirflowServer) -> bool:
        dag_id, run_id, task_id = self.task_of
        data = server.task_state(dag_id, run_id, task_id=task_id, key=KEY)
        return (
            data is not None and JobRecord.from_json(data).is_open and _is_followed(server, (dag_id, run_id, task_id))
        )
