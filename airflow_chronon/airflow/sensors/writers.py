"""The runs of the DAGs that write a table, asked through the triggerer's own supervisor (C30).

The supervisor answers in the triggerer's process, as it does for Airflow's external-task trigger: no connection and no
rights are needed. It counts runs and tells the states of tasks, of runs that are named: the ids of scheduled runs can be
named, since the timetable makes them of their labels, those of replays cannot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from airflow.sdk.execution_time.comms import GetDRCount, GetTaskStates
from airflow.utils.state import DagRunState

from airflow_chronon.airflow.sensors.supervisor import Supervisor
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.limits import MOST_ASKED
from airflow_chronon.core.runs.task_ids import LAST_TASK
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.core.waits.outlook import (
    Forecast,
    Outlook,
    RunEnd,
    TableWriter,
    WriterHistory,
    best,
    forecast,
    former_run_ids,
    replays_by_key,
    runs_to_ask,
)
from airflow_chronon.core.waits.poll import Observation, missing_starts

_LOG = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")

_CHARACTERS = 30_000  #: of run ids in one question: they are part of an address
#: How many of the last runs that a schedule may have made are looked through for the newest that is there, step by step.
_LAST_RUNS = (50, 1_000, 10_000)
#: The same for one before a partition: three days of minutes, half a year of hours.
_OLDER_RUNS = (200, 1_000, 5_000)
_FORMER_RUNS = 2_000  #: partitions back, of each of which a run of another cron may have been the run (H20)
_LISTED_RUNS = 5_000  #: of a DAG with more runs it is not told which replays failed: all runs are listed at once
_UNFINISHED_RUNS = 500  #: among so many of the last runs are those scheduled ones that are unfinished


class TableOutlook:
    """What will become of the missing partitions of one table, poll by poll, for all who wait for it.

    Airflow that does not answer is no reason to end a wait: it goes on as if nothing were known.
    """

    def __init__(self, writers: Iterable[TableWriter], supervisor: Supervisor) -> None:
        self._histories = WriterHistories(writers, supervisor)
        self._missing: frozenset[Instant] = frozenset()  #: in the poll before
        self._needed: frozenset[Instant] = frozenset()  #: by the waits of the poll before
        self._new: frozenset[Instant] = frozenset()  #: the same, of the poll that goes on
        self._asked: frozenset[Instant] = frozenset()
        self._read: Mapping[str, WriterHistory] | None = None
        self._hopeless: frozenset[Instant] = frozenset()  #: in the poll before
        self.trouble = ""

    async def ask(self, waits: Iterable[Wait], *, now: Instant) -> None:
        """Ask about the partitions that these waits need, and those that were missing in the poll before."""
        if not self._histories.writers:
            return
        self._new = await asyncio.to_thread(_starts, waits)
        in_question = self._missing | (self._new - self._needed)  # the others were there in the poll before
        self._asked, self._read = frozenset(sorted(in_question, reverse=True)[:MOST_ASKED]), None
        if self._asked:
            self._read = await self._answered(self._histories.read(self._asked, now=now))

    async def complete(self, observation: Observation, waits: Iterable[Wait], *, now: Instant) -> Observation:
        """The observation with forecasts for the partitions that were asked about and are not in it."""
        if not self._histories.writers or observation.trouble:
            return observation
        self._missing = await asyncio.to_thread(missing_starts, waits, observation)  # years of minutes take a moment
        self._needed = self._new
        if self._read is None or not self._missing & self._asked:
            self._hopeless = frozenset()
            return observation
        found = await self._answered(self._histories.forecasts(self._read, self._missing & self._asked, now=now))
        return observation if found is None else replace(observation, forecasts=self._confirmed(found))

    def _confirmed(self, found: Mapping[Instant, Forecast]) -> dict[Instant, Forecast]:
        """A partition is hopeless when it is so in two polls running: its run may be about to be created (C30)."""
        before, self._hopeless = self._hopeless, frozenset(s for s, each in found.items() if each.outlook.is_hopeless)
        return {
            start: replace(each, outlook=Outlook.TO_COME) if start in self._hopeless - before else each
            for start, each in found.items()
        }

    async def _answered(self, asked: Awaitable[_Answer]) -> _Answer | None:
        try:
            return await asked
        except Exception as error:  # whatever a supervisor answers that cannot: the wait goes on as before
            if (text := f"{type(error).__name__}: {error}") != self.trouble:
                self.trouble = text
                _LOG.warning("Airflow does not tell which runs will write the partitions waited for: %s", text[:500])
            return None


class WriterHistories:
    """What is known of the writers of one table between two polls; what cannot change any more is asked once."""

    def __init__(self, writers: Iterable[TableWriter], supervisor: Supervisor) -> None:
        self.writers, self._supervisor = tuple(writers), supervisor
        self._newest_known: dict[str, dict[str, Instant]] = {}  #: by writer, its run id and where it ends
        self._none_before: dict[str, Instant] = {}  #: no scheduled run of the DAG ends before it
        self._replays: dict[str, tuple[int, dict[str, RunEnd]]] = {}  #: by DAG, for so many failed runs

    async def read(self, starts: frozenset[Instant], *, now: Instant) -> dict[str, WriterHistory]:
        """The history of each writer, by DAG id and mode, as far as it decides about these partitions.

        Asked before the table is listed, so that what lands in between is seen.
        """
        return {_key(writer): await self._history(writer, starts, now) for writer in self.writers}

    async def forecasts(
        self, histories: Mapping[str, WriterHistory], missing: Iterable[Instant], *, now: Instant
    ) -> dict[Instant, Forecast]:
        """What will become of the partitions that were asked about and are not there."""
        told = dict(histories)

        def forecasts_of(starts: Iterable[Instant]) -> dict[Instant, Forecast]:
            return {
                start: best([forecast(writer, start, told[_key(writer)], now=now) for writer in self.writers])
                for start in starts
            }

        found = forecasts_of(sorted(missing))
        # what is rare, and costs more: only of those that it may decide about
        if gone := [start for start, each in found.items() if each.outlook is Outlook.GONE]:
            for writer in self.writers:
                told[_key(writer)] = await self._with_former(writer, told[_key(writer)], gone)
            found |= forecasts_of(gone)
        if hopeless := [start for start, each in found.items() if each.outlook.is_hopeless]:  # by every writer
            for writer in self.writers:
                told[_key(writer)] = replace(told[_key(writer)], replays=await self._replayed(writer))
            found |= forecasts_of(hopeless)
        if never := [start for start, each in found.items() if each.outlook is Outlook.NEVER]:
            for writer in self.writers:
                told[_key(writer)] = replace(told[_key(writer)], first_start=await self._first_start(writer, never))
            found |= forecasts_of(never)
        return found

    async def _with_former(self, writer: TableWriter, history: WriterHistory, gone: list[Instant]) -> WriterHistory:
        """The history with the runs of another cron within those that landed without these partitions (H20)."""
        if not writer.is_known or history.newest_end is None:
            return history
        runs, _ = await asyncio.to_thread(runs_to_ask, writer, frozenset(gone), history.newest_end)
        landed = [run for run_id, run in runs.items() if history.ends.get(run_id) is RunEnd.LANDED]
        former = await asyncio.to_thread(former_run_ids, writer, landed, most=MOST_ASKED)
        ends = await self._ends(writer.dag_id, list(former))
        return replace(history, former={**history.former, **{former[run_id]: end for run_id, end in ends.items()}})

    async def _replayed(self, writer: TableWriter) -> Mapping[str, RunEnd]:
        """How the replays of each partition ended, where there are any that failed.

        Their ids cannot be named, so all runs of the DAG are listed, again only when another one has failed.
        """
        if not writer.is_known:
            return {}
        failed = await self._count(writer, states=[DagRunState.FAILED.value])
        if not failed:
            return {}
        known = self._replays.get(writer.dag_id)
        if known is None or known[0] != failed:
            is_listed = await self._count(writer) <= _LISTED_RUNS
            ends = await self._ends_of(writer.dag_id, None) if is_listed else {}
            known = self._replays[writer.dag_id] = failed, replays_by_key(ends)
        return known[1]

    async def _history(self, writer: TableWriter, starts: frozenset[Instant], now: Instant) -> WriterHistory:
        if not writer.is_known:
            return WriterHistory(None)
        newest = await self._newest(writer, now)
        if newest is None or not starts:
            return WriterHistory(newest)
        runs, is_outside = await asyncio.to_thread(runs_to_ask, writer, starts, newest)
        ends = await self._ends(writer.dag_id, list(runs))
        missing = [run for run_id, run in runs.items() if run_id not in ends]
        absent = await asyncio.to_thread(former_run_ids, writer, missing, most=MOST_ASKED)
        former = {absent[run_id]: end for run_id, end in (await self._ends(writer.dag_id, list(absent))).items()}
        in_doubt = is_outside or any(ends.get(run_id, RunEnd.SKIPPED) is RunEnd.SKIPPED for run_id in runs)
        return WriterHistory(newest, ends, former, is_replaying=in_doubt and await self._is_replaying(writer, newest))

    async def _newest(self, writer: TableWriter, now: Instant) -> Instant | None:
        """Where the newest scheduled run ends; None when there is none among the last ones that the schedule may have made."""
        known = self._newest_known.get(_key(writer), {})
        if not known and not await self._count(writer):
            return None
        async for run_ids in _batches(writer, now + 1, _LAST_RUNS):
            run_ids |= known
            there = await self._ends(writer.dag_id, list(run_ids))
            if there:
                run_id = max(there, key=run_ids.__getitem__)
                self._newest_known[_key(writer)] = {run_id: run_ids[run_id]}
                return run_ids[run_id]
        self._newest_known.pop(_key(writer), None)
        return None

    async def _ends(self, dag_id: str, run_ids: list[str]) -> dict[str, RunEnd]:
        """How those of the runs stand that are there."""
        found: dict[str, RunEnd] = {}
        longest = max(map(len, run_ids), default=1)
        at_once = _CHARACTERS // longest
        for at in range(0, len(run_ids), at_once):
            found |= await self._ends_of(dag_id, run_ids[at : at + at_once])
        return found

    async def _ends_of(self, dag_id: str, run_ids: list[str] | None) -> dict[str, RunEnd]:
        """The same in one question; without ids of all runs of the DAG."""
        message = GetTaskStates(dag_id=dag_id, task_ids=[LAST_TASK], run_ids=run_ids)
        states = (await self._supervisor.asend(message)).task_states
        return {run_id: _end_of(tasks.get(LAST_TASK)) for run_id, tasks in states.items()}

    async def _count(
        self, writer: TableWriter, *, states: list[str] | None = None, run_ids: list[str] | None = None
    ) -> int:
        """How many runs of its DAG there are."""
        message = GetDRCount(dag_id=writer.dag_id, states=states, run_ids=run_ids)
        return int((await self._supervisor.asend(message)).count)

    async def _is_replaying(self, writer: TableWriter, newest: Instant) -> bool:
        """Whether more runs are unfinished than scheduled ones are."""
        states = [state.value for state in (DagRunState.QUEUED, DagRunState.RUNNING)]
        unfinished = await self._count(writer, states=states)
        if not unfinished:
            return False
        async for run_ids in _batches(writer, newest + 1, (_UNFINISHED_RUNS,)):
            return unfinished > await self._count(writer, states=states, run_ids=list(run_ids))
        return True

    async def _first_start(self, writer: TableWriter, never: list[Instant]) -> Instant:
        """An instant before which no scheduled run's partitions start, as late as these partitions can tell.

        From the newest of them back: each is either before all runs, or the run found before it tells of all that follow.
        """
        starts = sorted(never, reverse=True)
        older: Instant | None = None  # the end of a run that is there
        for start in starts:
            run = writer.run_of(start)
            end = start if run is None else run.end
            if older is not None and older < end:
                continue
            older = await self._older_run(writer, end)
            if older is None:
                return start + 1
        return starts[-1]

    async def _older_run(self, writer: TableWriter, end: Instant) -> Instant | None:
        """Where a scheduled run ends that is there and ends before ``end``, the newest of those that were looked for."""
        key = _key(writer)
        if end <= self._none_before.get(key, end - 1):
            return None
        async for run_ids in _batches(writer, end, _OLDER_RUNS):
            there = await self._ends(writer.dag_id, list(run_ids))
            if there:
                return max(run_ids[run_id] for run_id in there)
        former = range(end - writer.interval, end - (_FORMER_RUNS + 1) * writer.interval, -writer.interval)
        of_another_cron = await asyncio.to_thread(writer.run_ids_at, former)
        there = await self._ends(writer.dag_id, list(of_another_cron))
        if there:
            return max(of_another_cron[run_id] for run_id in there)
        self._none_before[key] = end
        return None


def _starts(waits: Iterable[Wait]) -> frozenset[Instant]:
    """Where the partitions start that the waits need by name."""
    return frozenset(wait.spec.format.decode(label) for wait in waits if wait.spec is not None for label in wait.labels)


async def _batches(writer: TableWriter, end: Instant, counts: tuple[int, ...]) -> AsyncIterator[dict[str, Instant]]:
    """See :meth:`TableWriter.run_ids_before`; worked out in a thread, since ten thousand take a moment."""
    batches = writer.run_ids_before(end, counts)
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        yield batch


def _key(writer: TableWriter) -> str:
    return f"{writer.dag_id} {writer.mode.value}"


def _end_of(state: object) -> RunEnd:
    text = getattr(state, "value", state)
    return _ENDS.get(str(text), RunEnd.UNFINISHED)


_ENDS = {
    "success": RunEnd.LANDED,
    "skipped": RunEnd.SKIPPED,
    "failed": RunEnd.FAILED,
    "upstream_failed": RunEnd.FAILED,
    "removed": RunEnd.FAILED,
}
