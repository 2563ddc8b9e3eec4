"""Triggers: waits and gates that hold no worker, from their first second to their last."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar

from airflow.triggers.base import (
    BaseEventTrigger,
    BaseTrigger,
    TaskSkippedEvent,
    TaskSuccessEvent,
    TriggerEvent,
)

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.masking import amask_filled
from airflow_chronon.airflow.operators.run_request import LATER, REQUEST_TEMPLATES, replay_of_fields, request_of_fields
from airflow_chronon.airflow.sensors.own_run import is_overtaken, kept_grid
from airflow_chronon.airflow.sensors.rebuilds import HoldEnd, hold
from airflow_chronon.airflow.sensors.said import SaidOfTable
from airflow_chronon.airflow.sensors.supervisor import ProcessSupervisor
from airflow_chronon.airflow.sensors.table_polls import TablePolls
from airflow_chronon.airflow.sensors.upstream_log import UpstreamLog
from airflow_chronon.airflow.sensors.writers import TableOutlook
from airflow_chronon.airflow.store_connections import ask_connection
from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.core.calendar.instants import Instant, from_datetime, iso
from airflow_chronon.core.describe.format import format_run, format_wait
from airflow_chronon.core.records.grid_contract import contract_fault
from airflow_chronon.core.runs.replay_order import ReadWindow, Rebuild
from airflow_chronon.core.runs.stale import read_windows
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule, Run
from airflow_chronon.core.schedules.request import RunRequest
from airflow_chronon.core.schedules.serialization import schedule_from_json
from airflow_chronon.core.settings.model import OnNever, OnTimeout
from airflow_chronon.core.settings.variables import filled
from airflow_chronon.core.waits.catalog import PartitionCatalog
from airflow_chronon.core.waits.dependencies import Wait, merged
from airflow_chronon.core.waits.max_lag import LAGGING_KEY
from airflow_chronon.core.waits.poll import Observation, Query, beyond_now, judge, missing_starts, observe, queries_of
from airflow_chronon.core.waits.readiness import Hopeless, Readiness
from airflow_chronon.core.waits.serialization import dependency_from_json, writer_from_json
from airflow_chronon.errors import ChrononError

#: How long after the trigger's own deadline Airflow may end the wait itself, should no triggerer be up.
BACKSTOP_SECONDS = 600
#: Labels of a run that are written in the event loop: a few milliseconds' worth.
MOST_IN_THE_LOOP = 2_000
#: The key of an event that carries why a task fails.
FAILURE = "failure"


class _RunTrigger(BaseTrigger):
    """What waits and gates share: the run's request, rendered when the trigger starts, and what the run writes.

    ``output`` is the table that the run writes partitions of, empty when there is none.
    """

    def __init__(self, *, schedule: dict[str, Any], conf: str = "", output: str = "", **request: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.schedule, self.conf, self.output = schedule, conf, output
        self._given = [name for name in REQUEST_TEMPLATES if name in request or name not in LATER]
        for name in self._given:
            setattr(self, name, request.get(name, REQUEST_TEMPLATES[name]))

    def _request_fields(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self._given}

    def _shared_fields(self) -> dict[str, Any]:
        return {"schedule": self.schedule, "conf": self.conf, "output": self.output} | self._request_fields()

    async def _refusal(self) -> TriggerEvent | None:
        """How the task ends before it waits where the table is on another grid: nothing would be written (C22)."""
        kept = await kept_grid(self.task_instance, ProcessSupervisor()) if self.output else None
        fault = contract_fault(kept, self._runs().spec, table=self.output)
        return None if fault is None else self._failed(str(ChrononError(fault, conf=self.conf)))

    def _runs(self) -> PartitionedSchedule:
        return schedule_from_json(self.schedule)

    def _run(self) -> Run | None:
        """The run that is asked for; how it is read is said. Raises ``ChrononError`` for one that contradicts itself."""
        runs, moment = self._runs(), now()
        request = self._asked_for()
        run = runs.requested(request, now=moment)
        for note in runs.notes_on(request, now=moment):
            self.log.info("%s", note)
        return run

    def _asked_for(self) -> RunRequest:
        asked = request_of_fields(self._request_fields())
        return replace(asked, dag_id=getattr(self.task_instance, "dag_id", asked.dag_id))

    def _refused(self, error: ChrononError) -> TriggerEvent:
        """Nothing is waited for where nobody can tell what was asked for; the work fails with the reason, and it alone."""
        self.log.error("%s", error)
        return TaskSuccessEvent()

    def _failed(self, text: str) -> TriggerEvent:
        """The task goes on to a worker and fails there: only there Airflow calls what is to be called on a failure."""
        self.log.error("%s", text)
        return TriggerEvent({FAILURE: text})  # type: ignore[no-untyped-call]


class PartitionTrigger(_RunTrigger, BaseEventTrigger):
    """Waits until one table holds what the run needs of it (C17 to C21).

    All triggers on one table share one listing per poll. Listing and judging run in threads: nothing blocks the loop. Tables
    that an expression is evaluated over have threads of their own, so that a slow expression delays no other wait (S3).
    """

    #: Where tables are asked for the value of an expression. Each value takes a process while it is worked out.
    _expressions: ClassVar[ThreadPoolExecutor] = ThreadPoolExecutor(2, thread_name_prefix="chronon-expressions")
    #: The newest observation of each stream, so that a wait that joins between two polls need not wait for the next one.
    _observations: ClassVar[dict[Hashable, tuple[float, Observation]]] = {}
    #: What is known of the runs upstream, for all waits of this process.
    _upstream: ClassVar[UpstreamLog] = UpstreamLog()
    #: What the waits of each stream need, by trigger.
    _needed: ClassVar[dict[Hashable, dict[int, tuple[Wait, ...]]]] = {}

    def __init__(
        self,
        *,
        schedule: dict[str, Any],
        dependencies: dict[str, list[dict[str, Any]]],
        table: str,
        catalog: dict[str, Any],
        poll_seconds: int = 60,
        on_timeout: str = OnTimeout.FAIL.value,
        on_never: str = OnNever.FAIL.value,
        writers: str = "[]",  # as text: Airflow walks through what is not, at every parse
        queries: list[list[str]] | None = None,
        timeout: int = 0,
        snapshot: str = "",
        conf: str = "",
        output: str = "",
        **request: str,
    ) -> None:
        super().__init__(schedule=schedule, conf=conf, output=output, **request)
        self.dependencies, self.table, self.catalog = dependencies, table, catalog
        self.poll_seconds, self.on_timeout, self.on_never = poll_seconds, on_timeout, on_never
        self.writers = writers
        self.queries, self.timeout, self.snapshot = queries, timeout, snapshot
        self._began = now()
        self._waits: tuple[Wait, ...] = ()
        self._outcome: TriggerEvent | None = None
        self._said, self._said_in_vain = "", ""
        self._is_untold = False  #: whether what it lacks has changed since it was followed upstream
        self._telling: asyncio.Task[None] | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = (
            "dependencies",
            "table",
            "catalog",
            "poll_seconds",
            "on_timeout",
            "on_never",
            "writers",
            "queries",
        )
        kept = {name: getattr(self, name) for name in names}
        kept |= {name: value for name in ("timeout", "snapshot") if (value := getattr(self, name))}
        return f"{__name__}.PartitionTrigger", kept | self._shared_fields()

    def shared_stream_key(self) -> Hashable | None:
        """One stream per catalog, table and kind of query; None when there is nothing to wait for, and for a run of very
        many partitions: Airflow asks for the key in its event loop, and what to wait for is then worked out in a thread."""
        if self._is_large():
            return None
        self._prepare()
        return None if self._outcome is not None else self._stream_key()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """For a wait that is over before it began, and where nobody shares streams."""
        if self._outcome is None and not self._waits:
            await asyncio.to_thread(self._prepare)
        if self._outcome is not None:
            yield self._outcome
            return
        _, kwargs = self.serialize()
        async for event in self.filter_shared_stream(self.open_shared_stream(kwargs)):
            yield event

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Observation]:
        """Ask Airflow about the writers of the table and list it, once per poll, for ever."""
        trigger = cls(**kwargs)
        key, asked = trigger._stream_key(), trigger._asked()
        await amask_filled(trigger.catalog)
        catalog = await _catalog(trigger.catalog)
        threads = cls._expressions if any(query.kind == "value" for query in asked) else None
        seen: list[Observation] = []  # the last one: while the table stays as it is, it is not listed again

        def look() -> Observation:
            seen[:] = [observe(catalog, trigger.table, asked, seen[0] if seen else None)]
            return seen[0]

        polls = TablePolls(trigger.table, look, threads=threads)
        said = SaidOfTable(trigger.table, ProcessSupervisor())
        outlook = TableOutlook(map(writer_from_json, json.loads(trigger.writers)), ProcessSupervisor())
        try:
            while True:
                waits = [wait for needed in cls._needed.get(key, {}).values() for wait in needed]
                await outlook.ask(waits, now=now())  # before the listing: what lands in between is seen
                observation = await polls.observation()
                observation = await said.complete(observation, waits)
                observation = await outlook.complete(observation, waits, now=now())
                cls._observations[key] = (time.monotonic(), observation)
                yield observation
                await asyncio.sleep(trigger.poll_seconds)
                if (
                    observation.trouble and "connection" in trigger.catalog
                ):  # it may have been made or changed meanwhile
                    catalog = await _catalog(trigger.catalog)
        finally:
            polls.close()
            cls._observations.pop(key, None)  # nobody is left to read it: a large listing is not kept

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Observation]) -> AsyncIterator[TriggerEvent]:
        """Judge every observation until the wait is over, in vain, or its time is up, whichever is first.

        A wait whose time was up while no triggerer ran still gets one poll: what it waits for may have come meanwhile.
        """
        if await is_overtaken(self.task_instance, ProcessSupervisor()):
            self.log.info("the run has gone ahead without this wait, which was added to it later: nothing waits for it")
            yield TaskSuccessEvent()
            return
        if (refusal := await self._refusal()) is not None:
            yield refusal
            return
        held_for = await asyncio.to_thread(self._held_for)
        end, reason = await hold(
            held_for, ProcessSupervisor(), every=self.poll_seconds, until=self._deadline, log=self.log
        )
        if end is not HoldEnd.REBUILT:
            yield self._failed(reason) if end is HoldEnd.GONE else self._out_of_time(reason)
            return
        needed = self._needed.setdefault(self._stream_key(), {})
        needed[id(self)] = self._waits
        try:
            async for event in self._judged(self._with_latest(shared_stream)):
                yield event
        finally:
            needed.pop(id(self), None)
            if self._telling is not None:
                self._telling.cancel()

    def _held_for(self) -> list[Rebuild]:
        """The partitions that the run's replay rebuilds and the run reads of this table."""
        order = replay_of_fields(self._request_fields())
        run = None if order is None else self._run()
        if order is None or run is None:
            return []
        grid, windows, starts = self._runs().grid, list[ReadWindow](), list[Instant]()
        for mode, of in run.modes.items():
            starts.append(of.window.start)
            for data in self.dependencies.get(mode.value, ()):
                windows += read_windows(dependency_from_json(data), of.window.start, of.window.end, grid=grid)
        writers = map(writer_from_json, json.loads(self.writers))
        own = str(getattr(self.task_instance, "dag_id", ""))
        return list(order.first_of(writers, windows, own_dag_id=own, own_start=min(starts)))

    async def _judged(self, observations: AsyncIterator[Observation]) -> AsyncIterator[TriggerEvent]:
        seconds = None
        while True:
            try:
                observation = await asyncio.wait_for(anext(observations), seconds)
            except StopAsyncIteration:
                return
            except TimeoutError:
                yield self._out_of_time(self._said)
                return
            try:
                readiness = await asyncio.to_thread(judge, self._waits, observation, waited=now() - self._since)
            except ChrononError as error:  # the table can never hold what is asked for
                yield self._failed(str(error))
                return
            if odd := beyond_now(observation, now=now()):
                self.log.warning("%s: %s", self.table, odd)
            self._say(readiness, observation)
            if readiness.satisfied:
                yield self._is_there(readiness)
                return
            if readiness.hopeless is not None:
                event = self._in_vain(readiness.hopeless)
                if event is not None:
                    yield event
                    return
            seconds = None if self._deadline is None else max(0, self._deadline - now())

    def _say(self, readiness: Readiness, observation: Observation) -> None:
        """Tell what the run lacks when that has changed; of a table of this tree also why, beside the wait."""
        if readiness.reason and readiness.reason != self._said:
            self._said, self._is_untold = readiness.reason, bool(self.snapshot) and not readiness.satisfied
            self.log.log(30 if readiness.satisfied else 20, "%s", self._said)
        is_telling = self._telling is not None and not self._telling.done()
        if self._is_untold and not readiness.satisfied and not is_telling and self._upstream.may_tell():
            self._is_untold = False
            self._telling = asyncio.create_task(self._tell_upstream(observation))

    async def _tell_upstream(self, observation: Observation) -> None:
        starts = await asyncio.to_thread(missing_starts, self._waits, observation)
        found = self._upstream.lines(
            self.table, starts, snapshot=self.snapshot, supervisor=ProcessSupervisor(), now=now()
        )
        for line in await found:
            self.log.info("%s", line)

    def _is_there(self, readiness: Readiness) -> TriggerEvent:
        """The end of a wait; what the run goes without is kept with it."""
        if not readiness.lagging:
            self.log.info("%s is there", self.table)
        kept: dict[str, Any] = {"return_value": readiness.reason} if readiness.reason else {}
        if readiness.lagging:
            kept[LAGGING_KEY] = [each.to_json() for each in readiness.lagging]
        return TaskSuccessEvent(xcoms=kept or None)

    async def _with_latest(self, shared_stream: AsyncIterator[Observation]) -> AsyncIterator[Observation]:
        seen_at, observation = self._observations.get(self._stream_key(), (0.0, None))
        if observation is not None and time.monotonic() - seen_at < self.poll_seconds:
            yield observation
        async for observation in shared_stream:
            yield observation

    def _asked(self) -> tuple[Query, ...]:
        return tuple(Query(*query) for query in self.queries or ())

    def _stream_key(self) -> Hashable:
        settings = json.dumps([self.catalog, self.writers], sort_keys=True)
        return self.table, settings, self.poll_seconds, self._asked()

    def _is_large(self) -> bool:
        """Whether working out what this run waits for takes more than a moment (S7)."""
        runs = self._runs()
        try:
            run = runs.requested(self._asked_for(), now=now())
        except ChrononError:
            return False
        modes = {} if run is None else run.modes
        return (
            sum(
                dependency_from_json(data).label_count(of.window.start, of.window.end, grid=runs.spec.grid)
                for mode, of in modes.items()
                for data in self.dependencies.get(mode.value, ())
            )
            > MOST_IN_THE_LOOP
        )

    def _prepare(self) -> None:
        """Work out what this run waits for; say it first thing in the log."""
        try:
            run = self._run()
        except ChrononError as error:
            self._outcome = self._refused(error)
            return
        runs = self._runs()
        self.log.info("%s", format_run(run, runs))
        modes = {} if run is None else run.modes
        try:
            self._waits = merged(
                wait
                for mode, of in modes.items()
                for data in self.dependencies.get(mode.value, ())
                for wait in dependency_from_json(data).waits(of.window.start, of.window.end, grid=runs.spec.grid)
            )
        except ChrononError as error:
            self._outcome = self._failed(str(error))
            return
        if not self._waits:
            self.log.info("nothing is needed of %s", self.table)
            self._outcome = TaskSuccessEvent()
            return
        self.queries = [list(query) for query in queries_of(self._waits)]
        for wait in self._waits:
            self.log.info("waiting for %s", format_wait(wait))

    @property
    def _deadline(self) -> Instant | None:
        """When the wait is over at the latest. It is kept in Airflow's database: a restart does not move it."""
        backstop = getattr(self, "timeout_after", None)
        return None if backstop is None else from_datetime(backstop) - BACKSTOP_SECONDS

    @property
    def _since(self) -> Instant:
        """When the wait began, as far as ``max_lag`` asks: a restart does not move it."""
        return self._began if self._deadline is None or not self.timeout else self._deadline - self.timeout

    def _out_of_time(self, reason: str) -> TriggerEvent:
        skips = self.on_timeout == OnTimeout.SKIP.value
        since = "" if self._deadline is None else f" since {iso(self._deadline)}"
        text = f"time is up{since}, the run {'is skipped' if skips else 'fails'}: {reason}"
        return self._skipped(text) if skips else self._failed(text)

    def _in_vain(self, hopeless: Hopeless) -> TriggerEvent | None:
        """How a wait ends for partitions that no run will write (C30); None where the settings say to wait all the same.

        A chain that was just deployed begins with the first partition whose inputs are there: a scheduled run before that is
        skipped. With catch-up nothing is skipped in silence.
        """
        policy = OnNever(self.on_never)
        begins_later = hopeless.passes_over and self._is_scheduled and not self._runs().catch_up.enabled
        if policy is OnNever.WAIT:
            if hopeless.reason != self._said_in_vain:
                self._said_in_vain = hopeless.reason
                self.log.warning("%s; sensor.on_never says to wait all the same", hopeless.reason)
            return None
        if policy is OnNever.SKIP or begins_later:
            why = "the chain begins with a later partition" if begins_later else "sensor.on_never says so"
            return self._skipped(f"the run is skipped, since {why}: {hopeless.reason}")
        return self._failed(hopeless.reason)

    @property
    def _is_scheduled(self) -> bool:
        return request_of_fields(self._request_fields()).is_scheduled

    def _skipped(self, text: str) -> TriggerEvent:
        self.log.warning("%s", text)
        return TaskSkippedEvent(xcoms={"return_value": text})  # the run's note tells it, where nothing lands


async def _catalog(settings: dict[str, Any]) -> PartitionCatalog:
    """The catalog of these settings, with the connection that it names, for which only the event loop may ask."""
    connection_id = settings.get("connection")
    connect = None if connection_id is None else await ask_connection(str(filled(connection_id, os.environ)))
    return build_catalog(settings, os.environ, connect=connect)


class GateTrigger(_RunTrigger):
    """Lets one mode of a run through at its own fire; skips it when its schedule does not fire for the partition (C10)."""

    def __init__(
        self, *, schedule: dict[str, Any], mode: str, conf: str = "", output: str = "", **request: str
    ) -> None:
        super().__init__(schedule=schedule, conf=conf, output=output, **request)
        self.mode = mode

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.GateTrigger", {"mode": self.mode} | self._shared_fields()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            run = self._run()
        except ChrononError as error:
            yield self._refused(error)
            return
        self.log.info("%s", format_run(run, self._runs()))
        of = None if run is None else run.modes.get(Mode(self.mode))
        if run is not None and of is None:
            self.log.info("the schedule of %s does not fire for this partition: skipped", self.mode)
            yield TaskSkippedEvent()
            return
        if of is not None and of.fire > now():
            if (refusal := await self._refusal()) is not None:
                yield refusal
                return
            self.log.info("%s fires at %s", self.mode, iso(of.fire))
            while (left := of.fire - now()) > 0:
                await asyncio.sleep(min(left, 60))  # in steps: clocks are set while triggers sleep
        yield TaskSuccessEvent()
