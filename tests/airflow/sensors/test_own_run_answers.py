"""What a wait asks about its own run: no answer, and none that makes sense, ends no wait."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_chronon.airflow.sensors.own_run import is_overtaken, kept_grid

WAIT = SimpleNamespace(dag_id="d", run_id="r", task=SimpleNamespace(downstream_task_ids={"backfill"}))


class Answers:
    """A supervisor with one answer to everything."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def asend(self, msg: Any) -> Any:
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "garbage",
        SimpleNamespace(error="API_SERVER_ERROR", detail=None),
        SimpleNamespace(task_states=None),
        SimpleNamespace(task_states={"r": None}),
        SimpleNamespace(task_states={"r": {}}),
        SimpleNamespace(task_states=["r"]),
    ],
)
def test_an_answer_that_tells_nothing_ends_no_wait(answer: Any) -> None:  # C30
    assert asyncio.run(is_overtaken(WAIT, Answers(answer))) is False
    assert asyncio.run(kept_grid(WAIT, Answers(answer))) is None


def test_a_run_that_has_gone_ahead_is_told() -> None:
    assert asyncio.run(is_overtaken(WAIT, Answers(SimpleNamespace(task_states={"r": {"backfill": "running"}}))))
