"""What a wait tells in its log of the partitions that it lacks: followed through their producers, when that changes.

Everything is asked through the triggerer's own supervisor, without a connection or rights: the snapshot that the reconciler keeps,
once in a while for all waits of this process, and the tasks of the runs in question, once a minute each.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk.execution_time.comms import GetAssetStateStoreByName, GetTaskStates

from airflow_chronon.airflow.sensors.supervisor import Supervisor
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.describe.causes import format_cause
from airflow_chronon.core.overview.snapshot import SNAPSHOT_ASSET, ConfSnapshot, snapshots_of
from airflow_chronon.core.overview.upstream import DEEPEST, Tasks, Upstream

_LOG = logging.getLogger(__name__)

SNAPSHOT_SECONDS = 300.0  #: for which a snapshot is kept: it is made as often
STATES_SECONDS = 60.0  #: for which the tasks of a run are
MOST_A_MINUTE = 60  #: trees of all waits of this process; the rest comes a minute later


@dataclass
class UpstreamLog:
    """What all waits of a process know together of the runs upstream of theirs."""

    _confs: dict[str, tuple[float, Mapping[str, ConfSnapshot]]] = field(default_factory=dict)
    _tasks: dict[tuple[str, str], tuple[float, Tasks]] = field(default_factory=dict)
    _told: deque[float] = field(default_factory=deque)
    _lock: asyncio.Lock | None = None

    def may_tell(self) -> bool:
        """Whether another tree is within what this process asks of Airflow; if so, it counts."""
        now = time.monotonic()
        while self._told and now - self._told[0] > 60:
            self._told.popleft()
        if len(self._told) >= MOST_A_MINUTE:
            return False
        self._told.append(now)
        return True

    async def lines(
        self, table: str, starts: Collection[Instant], *, snapshot: str, supervisor: Supervisor, now: Instant
    ) -> list[str]:
        """The tree of each partition; nothing where no snapshot tells. Airflow that does not answer is no error."""
        if not starts:
            return []
        self._lock = self._lock or asyncio.Lock()
        try:
            async with self._lock:  # one walk at a time: what it asks, the others need not ask
                confs = await self._snapshot(snapshot, supervisor)
                return await self._walk(confs, table, starts, supervisor, now)
        except Exception as error:  # whatever a supervisor answers that cannot
            _LOG.debug("why partitions of %s are not there is not known: %s: %s", table, type(error).__name__, error)
            return []

    async def _walk(
        self,
        confs: Mapping[str, ConfSnapshot],
        table: str,
        starts: Collection[Instant],
        supervisor: Supervisor,
        now: Instant,
    ) -> list[str]:
        oldest = time.monotonic() - STATES_SECONDS
        self._tasks = {run: each for run, each in self._tasks.items() if each[0] > oldest}
        for _ in range(DEEPEST + 1):
            walk = Upstream(confs, {run: tasks for run, (_, tasks) in self._tasks.items()}, now)
            causes = await asyncio.to_thread(walk.causes, table, starts)
            if not walk.unknown:
                return [line for cause in causes for line in format_cause(cause)]
            await self._ask(walk.unknown, supervisor)
        return []

    async def _ask(self, runs: Iterable[tuple[str, str]], supervisor: Supervisor) -> None:
        """The tasks of some runs: one question per DAG."""
        by_dag: dict[str, list[str]] = {}
        for dag_id, run_id in sorted(runs):
            by_dag.setdefault(dag_id, []).append(run_id)
        for dag_id, run_ids in by_dag.items():
            answer: Any = await supervisor.asend(GetTaskStates(dag_id=dag_id, run_ids=run_ids))
            states = answer.task_states
            for run_id in run_ids:
                found = states.get(run_id)
                tasks = None if found is None else {task: _text(state) for task, state in found.items()}
                self._tasks[dag_id, run_id] = time.monotonic(), tasks

    async def _snapshot(self, key: str, supervisor: Supervisor) -> Mapping[str, ConfSnapshot]:
        """The confs of a deployment by the table that each writes."""
        at, confs = self._confs.get(key, (0.0, None))
        if confs is None or time.monotonic() - at > SNAPSHOT_SECONDS:
            answer: Any = await supervisor.asend(GetAssetStateStoreByName(name=SNAPSHOT_ASSET, key=key))
            kept = getattr(answer, "value", None)
            found = await asyncio.to_thread(snapshots_of, kept)
            confs = {conf.table: conf for conf in found}
            self._confs[key] = time.monotonic(), confs
        return confs


def _text(state: object) -> str | None:
    return None if state is None else str(getattr(state, "value", state))
