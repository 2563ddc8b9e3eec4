"""Questions to a triggerer's supervisor that answers late, or never (C30)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from airflow.sdk.execution_time.comms import GetDRCount, GetTaskStates

from airflow_chronon.airflow.sensors.supervisor import NoAnswer, ProcessSupervisor

COUNT, STATES = GetDRCount(dag_id="d"), GetTaskStates(dag_id="d", task_ids=["landed"], run_ids=["r"])


class Slow:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answers = asyncio.Event()
        self.cancelled = 0
        self.failure: Exception | None = None

    async def asend(self, msg: Any) -> Any:
        self.asked.append(msg)
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None:
            raise self.failure
        return f"the answer to {type(msg).__name__}"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    monkeypatch.setattr("airflow_chronon.airflow.sensors.supervisor.ANSWERS_WITHIN", 0.02)
    slow = Slow()
    monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", slow, raising=False)
    return slow


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


async def no_answer(msg: Any) -> str:
    with pytest.raises(NoAnswer) as raised:
        await ProcessSupervisor().asend(msg)
    return str(raised.value)


def test_is_gone_on_without_after_a_while_and_asked_again_only_when_it_has_answered(slow: Slow) -> None:
    async def story() -> None:
        assert "not been answered within" in await no_answer(COUNT)
        assert "an earlier GetDRCount" in await no_answer(COUNT)
        assert slow.asked == [COUNT] and slow.cancelled == 0
        slow.answers.set()
        await asyncio.sleep(0)  # the late answer is nobody's
        await asyncio.sleep(0)
        assert await ProcessSupervisor().asend(COUNT) == "the answer to GetDRCount"

    finish(story())


def test_a_question_of_another_kind_is_asked_all_the_same(slow: Slow) -> None:
    async def story() -> None:
        await no_answer(COUNT)
        slow.answers.set()
        assert await ProcessSupervisor().asend(STATES) == "the answer to GetTaskStates"

    finish(story())


def test_whoever_gives_up_a_wait_takes_no_question_back(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_chronon.airflow.sensors.supervisor.ANSWERS_WITHIN", 60.0)

    async def story() -> None:
        asking = asyncio.create_task(ProcessSupervisor().asend(COUNT))
        while not slow.asked:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert slow.cancelled == 0

    finish(story())


def test_what_goes_wrong_while_it_answers_is_told(slow: Slow) -> None:
    async def story() -> None:
        slow.failure = OSError("the supervisor is gone")
        slow.answers.set()
        with pytest.raises(OSError, match="the supervisor is gone"):
            await ProcessSupervisor().asend(COUNT)

    finish(story())
