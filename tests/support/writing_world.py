"""Many tasks that want to write one table, on an Airflow in memory, in an order of steps that a seed decides.

The operator and its trigger are the real ones, each in a thread that goes one step at a time: from one call of Airflow to the next.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException, TaskDeferred

from airflow_chronon.airflow.operators import modes, write_order
from airflow_chronon.airflow.operators.modes import ChrononOperator
from airflow_chronon.airflow.operators.write_order import WriteOrderTrigger
from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import TaskRecord
from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.schedules.partitioned import ModeRun

_SILENT = logging.getLogger("writing world")
_SILENT.setLevel(logging.CRITICAL)
STARTED = datetime(2026, 6, 2, tzinfo=UTC)
_HOLDS_SLOT = ("queued", "running", "deferred")


class Steps:
    """Work in a thread of its own that stops at each step until it is told to go on."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.result: Any = None
        self.is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _CURRENT.steps = self
        self._go.acquire()
        try:
            self.result = self._work()
        except BaseException as error:
            self.result = error
        self.is_over = True
        self._stopped.release()

    def advance(self) -> None:
        """One step."""
        self._go.release()
        assert self._stopped.acquire(timeout=30)

    def pause(self) -> None:
        self._stopped.release()
        assert self._go.acquire(timeout=60)


_CURRENT = threading.local()


def step(*_: Any, **__: Any) -> None:
    """Let others go on; nothing outside of such a thread."""
    steps = getattr(_CURRENT, "steps", None)
    if steps is not None:
        steps.pause()


async def _astep(*_: Any) -> None:
    step()


async def _here(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


@dataclass
class Work:
    """The work task of one run."""

    operator: ChrononOperator
    run_id: str
    window: TimeWindow
    fails: int = 0  #: so many tries fail in the middle of their work
    is_elsewhere: bool = False  #: its work goes on without it, while the task is deferred
    is_lost: bool = False  #: its DAG is paused or gone: it gets no slot when it has waited once
    store: Store = field(init=False)
    steps: Steps | None = None
    event: Any = None
    attempt: int = 0
    state: str | None = None
    has_begun: bool = False

    @property
    def dag_id(self) -> str:
        return self.operator._plan.dag_id


class Store:
    """A task's state, as Airflow's API shows it to others."""

    def __init__(self, fake: FakeAirflow, dag_id: str, run_id: str, task_id: str) -> None:
        self._fake, self._at = fake, (dag_id, run_id, task_id)

    def get(self, key: str) -> Any:
        step()
        return self._fake.task_states.get((*self._at, key))

    def set(self, key: str, value: Any, *, retention: Any = None) -> None:
        step()
        self._fake.task_states[(*self._at, key)] = json.loads(json.dumps(value))


@dataclass
class WritingWorld:
    """An Airflow with its scheduler: ``slots`` says how many tasks of a DAG it has in work or waiting."""

    random: random.Random
    slots: dict[str, int]
    outages: float = 0.0  #: how likely a call of Airflow fails
    effort: int = 3  #: steps of one work
    fake: FakeAirflow = field(default_factory=FakeAirflow)
    works: list[Work] = field(default_factory=list)
    writing: list[Work] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.fake.before = self._call

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Let operators and triggers see this Airflow, and step where they would wait."""
        for module in (modes, write_order):
            patch.setattr(module, "find_airflow", lambda: self.fake)
        for talker in (ChrononOperator, WriteOrderTrigger):
            patch.setattr(talker, "log", _SILENT, raising=False)
        patch.setattr(write_order, "time", SimpleNamespace(sleep=step))
        patch.setattr(write_order, "asyncio", SimpleNamespace(sleep=_astep, to_thread=_here))

    def add(self, operator: ChrononOperator, run_id: str, window: TimeWindow, *, fails: int = 0) -> Work:
        work = Work(operator, run_id, window, fails)
        work.store = Store(self.fake, work.dag_id, run_id, operator.task_id)
        self.works.append(work)
        return work

    def advance(self, work: Work, until: Callable[[], bool]) -> None:
        """Let one task alone go on."""
        while not until():
            action = self.next_step(work)
            assert action is not None, f"{work.run_id} cannot go on"
            action(work)

    def play(self, *, most: int = 20_000) -> None:
        """Until every run has ended."""
        for _ in range(most):
            able = [work for work in self.works if self.next_step(work) is not None]
            if not able:
                break
            work = self.random.choice(able)
            for _ in range(self.random.choice((1, 1, 2, 12))):  # now and then one gets far while the others stand still
                action = self.next_step(work)
                if action is not None:
                    action(work)
        left = {work.run_id: work.state for work in self.works if work.state != "success" and not work.is_lost}
        assert not left, f"these have not ended: {left}"

    def next_step(self, work: Work) -> Callable[[Work], None] | None:
        """What may happen to a task next."""
        if work.steps is not None:
            return self._advance
        if work.state in (None, "up_for_retry"):
            return lambda work: self._becomes(work, "scheduled", attempt=work.attempt + 1)
        if work.state == "up_for_reschedule":
            return lambda work: self._becomes(work, "scheduled")
        taken = sum(other.dag_id == work.dag_id and other.state in _HOLDS_SLOT for other in self.works)
        if work.state == "scheduled" and taken < self.slots[work.dag_id] and not (work.is_lost and work.has_begun):
            return lambda work: self._becomes(work, "queued")
        return self._begin if work.state == "queued" else None

    def _becomes(self, work: Work, state: str, *, attempt: int | None = None) -> None:
        work.state, work.attempt = state, attempt or work.attempt
        start = STARTED.timestamp() if work.has_begun else None
        record = TaskRecord(work.dag_id, work.run_id, work.operator.task_id, state, work.attempt, start)
        others = [each for each in self.fake.task_records if (each.dag_id, each.run_id) != (work.dag_id, work.run_id)]
        self.fake.task_records[:] = [*others, record]

    def _begin(self, work: Work) -> None:
        work.has_begun = True
        self._becomes(work, "running")
        work.steps = Steps(lambda: self._run(work))

    def _run(self, work: Work) -> str:
        step()  # Airflow says that it runs before it does
        if work in self.writing:  # its work elsewhere has ended
            step()
            return self._ended(work)
        event, work.event = work.event, None
        ti = SimpleNamespace(start_date=STARTED, try_number=work.attempt)
        context = {"run_id": work.run_id, "ti": ti, "task_state_store": work.store}
        work.operator._take_turn(context, ModeRun(work.window.end, work.window), event)
        self.writing.append(work)
        self._check()
        if work.is_elsewhere:
            return "deferred"
        for _ in range(self.effort):
            step()
        return self._ended(work)

    def _work_elsewhere(self) -> str:
        for _ in range(self.effort):
            step()
        return "ended"

    def _ended(self, work: Work) -> str:
        self.writing.remove(work)
        if work.fails:
            work.fails -= 1
            return "up_for_retry"
        self.written.append(work.run_id)
        return "success"

    def _check(self) -> None:
        for one in self.writing:
            for other in self.writing:
                apart = one.window.end <= other.window.start or other.window.end <= one.window.start
                assert one is other or apart, f"{one.run_id} and {other.run_id} write at once"
        self.most_at_once = max(self.most_at_once, len(self.writing))

    def _advance(self, work: Work) -> None:
        assert work.steps is not None
        work.steps.advance()
        if not work.steps.is_over:
            return
        result, work.steps = work.steps.result, None
        if isinstance(result, TaskDeferred):
            self._becomes(work, "deferred")
            trigger = result.trigger
            work.steps = Steps(lambda: asyncio.run(_first(trigger)))
        elif isinstance(result, AirflowRescheduleException):
            self._becomes(work, "up_for_reschedule")
        elif isinstance(result, BaseException):
            raise result
        elif work.state == "deferred":
            work.event = result
            self._becomes(work, "scheduled")
        elif result == "deferred":
            self._becomes(work, "deferred")
            work.steps = Steps(self._work_elsewhere)
        else:
            self._becomes(work, result)

    def _call(self, name: str) -> None:
        step()
        if self.random.random() < self.outages:
            raise AirflowUnreachable("http://a", "does not answer")


async def _first(trigger: Any) -> Any:
    async for event in trigger.run():
        return event.payload
    raise AssertionError("it never fired")
