"""What a run of a replay holds for: the partitions that the same replay rebuilds before it.

They have landed before, so the table itself does not tell when they are written anew; the runs that do it tell.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from airflow.sdk.execution_time.comms import GetDRCount, GetTaskStates

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.sensors.supervisor import Supervisor
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.runs.replay_order import Rebuild
from airflow_chronon.core.runs.task_ids import LAST_TASK

_AT_ONCE = 500  #: runs in one question: their ids are part of an address
_SHOWN = 5
_ENDED = ("success", "skipped")  #: a run that is skipped writes nothing, and nothing better will come of it
_FAILED = ("failed", "upstream_failed")


class HoldEnd(Enum):
    """How holding ends."""

    REBUILT = "rebuilt"
    GONE = "gone"  #: a run that was to rebuild something is not there any more
    OUT_OF_TIME = "out of time"


@dataclass(frozen=True)
class Standing:
    """How the runs stand that rebuild what is held for."""

    open: list[Rebuild]  #: those that have not ended well
    failed: list[Rebuild]  #: the ones of them that wait for somebody
    gone: list[Rebuild]  #: those whose run is not there

    def __str__(self) -> str:
        text = f"holds for the replay of {_some(self.open or self.gone)}"
        if self.failed:
            text += f"; it failed for {_some(self.failed)}: clear these runs, and this one goes on"
        return text


async def hold(
    rebuilds: Sequence[Rebuild],
    supervisor: Supervisor,
    *,
    every: float,
    until: Instant | None,
    log: logging.Logger | Any,
) -> tuple[HoldEnd, str]:
    """Return once all of these have been rebuilt, when one of them never will be, or at ``until``; with the reason.

    Asks every so many seconds, and tells what it holds for when that has changed. A failed run is waited for: once it was
    cleared, everything behind it goes on. A run is gone when it is so in two polls running, since it may be about to be created.
    """
    said, gone_before = "", frozenset[Rebuild]()
    while rebuilds:
        try:
            standing = await ask(rebuilds, supervisor)
        except Exception as error:  # whatever a supervisor answers that cannot: it is asked again
            text = f"Airflow does not tell how the replay of {_some(rebuilds)} stands: {type(error).__name__}: {error}"
        else:
            if not standing.open and not standing.gone:
                log.info("the replay of %s has ended", _some(rebuilds))
                break
            if gone := [each for each in standing.gone if each in gone_before]:
                return HoldEnd.GONE, (
                    f"the runs that were to replay {_some(gone)} first are not there any more: replay these again, or start "
                    "this partition by its key alone"
                )
            text, gone_before = str(standing), frozenset(standing.gone)
        if text != said:
            said = text
            log.info("%s", text)
        if until is not None and now() >= until:
            return HoldEnd.OUT_OF_TIME, said
        await asyncio.sleep(every)
    return HoldEnd.REBUILT, ""


async def ask(rebuilds: Sequence[Rebuild], supervisor: Supervisor) -> Standing:
    """Ask Airflow how these runs stand. Raises whatever the supervisor raises."""
    by_dag: dict[str, list[Rebuild]] = defaultdict(list)
    for each in rebuilds:
        by_dag[each.dag_id].append(each)
    standing = Standing([], [], [])
    for dag_id, found in by_dag.items():
        for place in range(0, len(found), _AT_ONCE):
            part = found[place : place + _AT_ONCE]
            message = GetTaskStates(dag_id=dag_id, task_ids=[LAST_TASK], run_ids=[each.run_id for each in part])
            states = (await supervisor.asend(message)).task_states
            for each in part:
                state = states.get(each.run_id, {}).get(LAST_TASK)
                text = str(getattr(state, "value", state))
                if text in _ENDED:
                    continue
                if each.run_id not in states and not await _is_there(each, supervisor):
                    standing.gone.append(each)
                    continue
                standing.open.append(each)
                if text in _FAILED:
                    standing.failed.append(each)
    return standing


async def _is_there(rebuild: Rebuild, supervisor: Supervisor) -> bool:
    """Whether there is such a run: one whose tasks nobody has looked at yet tells no states."""
    return bool((await supervisor.asend(GetDRCount(dag_id=rebuild.dag_id, run_ids=[rebuild.run_id]))).count)


def _some(rebuilds: Sequence[Rebuild]) -> str:
    text = ", ".join(map(str, rebuilds[:_SHOWN]))
    return f"{text} and {len(rebuilds) - _SHOWN} more" if len(rebuilds) > _SHOWN else text
