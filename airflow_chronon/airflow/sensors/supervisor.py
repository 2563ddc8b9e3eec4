"""The triggerer's own supervisor, which answers triggers about runs without a connection or rights."""

from __future__ import annotations

from typing import Any, Protocol, cast


class Supervisor(Protocol):
    """What answers: the triggerer's supervisor."""

    async def asend(self, msg: Any) -> Any: ...


def supervisor_of_process() -> Supervisor:
    """The supervisor of this process: there is one in a triggerer."""
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS  # set when the process starts

    return cast("Supervisor", SUPERVISOR_COMMS)
