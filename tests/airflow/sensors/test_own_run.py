"""What a wait learns of its own run: whether it has gone ahead, and on which grid its table was begun (C22)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.triggers.base import TaskSuccessEvent

from airflow_chronon.airflow.sensors.triggers import FAILURE, PartitionTrigger
from tests.support.schedules import at
from tests.support.supervisor import FakeRun, FakeSupervisor
from tests.support.triggers import finish, gate, outcome

pytestmark = pytest.mark.usefixtures("present")


class TestAWaitThatWasAddedToARunLater:
    """A dependency was added to a conf while a run of it worked: Airflow adds the new wait to that run."""

    RUN = "scheduled__2026-06-01"

    @pytest.fixture
    def supervisor(self, monkeypatch: pytest.MonkeyPatch) -> FakeSupervisor:
        fake = FakeSupervisor()
        monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", fake, raising=False)
        return fake

    def added(self, trigger: PartitionTrigger, *held_back: str) -> PartitionTrigger:
        task = SimpleNamespace(downstream_task_ids=set(held_back))
        trigger._task_instance = SimpleNamespace(dag_id="d", run_id=self.RUN, task=task)
        return trigger

    @pytest.mark.parametrize("state", ["success", "running", "failed", "up_for_retry"])
    def test_ends_when_what_it_holds_back_has_gone_ahead(
        self, wait_for: Callable[..., PartitionTrigger], supervisor: FakeSupervisor, state: str
    ) -> None:
        supervisor.runs = [FakeRun(self.RUN, None, dag_id="d", last_task=None, tasks={"ready": state})]
        event = finish(outcome(self.added(wait_for(), "ready")))
        assert isinstance(event, TaskSuccessEvent)

    @pytest.mark.parametrize(
        "states",
        [
            {"ready": None},
            {"ready": "upstream_failed"},  # another wait has failed, and may be cleared
            {"ready": "skipped"},
            {"ready": "success", "gate.metadata-upload": None},
        ],
    )
    def test_goes_on_while_it_holds_something_back(
        self,
        wait_for: Callable[..., PartitionTrigger],
        land: Callable[[str], None],
        supervisor: FakeSupervisor,
        caplog: pytest.LogCaptureFixture,
        states: dict[str, str | None],
    ) -> None:
        caplog.set_level(logging.INFO)
        supervisor.runs = [FakeRun(self.RUN, None, dag_id="d", last_task=None, tasks=states)]
        land("raw.orders/ds=2026-06-01")
        event = finish(outcome(self.added(wait_for(), *states)))
        assert isinstance(event, TaskSuccessEvent)
        assert "raw.orders is there" in caplog.text and "gone ahead" not in caplog.text

    def test_goes_on_when_airflow_does_not_answer(
        self,
        wait_for: Callable[..., PartitionTrigger],
        land: Callable[[str], None],
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.INFO)
        monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", None, raising=False)
        land("raw.orders/ds=2026-06-01")
        finish(outcome(self.added(wait_for(), "ready")))
        assert "raw.orders is there" in caplog.text


class TestAnotherGrid:
    """The conf came back with another grid under the same version: its runs fail before they wait (C22)."""

    CONF, OUTPUT, DAG = "staging_query/t.s.x__1", "ns.x__1", "staging_query.t.s.x__1"

    @pytest.fixture
    def supervisor(self, monkeypatch: pytest.MonkeyPatch) -> FakeSupervisor:
        fake = FakeSupervisor(contracts={f"grid:{self.DAG}": "3h"})
        monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", fake, raising=False)
        return fake

    def of_the_conf(self, trigger: Any) -> Any:
        trigger.conf, trigger.output = self.CONF, self.OUTPUT
        trigger._task_instance = SimpleNamespace(dag_id=self.DAG, run_id="r", task=None)
        return trigger

    def test_a_wait_for_data_that_is_not_there_fails_at_once(
        self, wait_for: Callable[..., PartitionTrigger], supervisor: FakeSupervisor
    ) -> None:
        event = finish(outcome(self.of_the_conf(wait_for())))
        assert event.payload[FAILURE].startswith(
            f"{self.CONF}: outputTableInfo: {self.OUTPUT} was begun on the grid 3h, and the conf is now on 1d"
        )
        assert "C22" in event.payload[FAILURE] and "bump its version" in event.payload[FAILURE].lower()

    def test_a_gate_fails_before_its_fire(self, clock: Any, supervisor: FakeSupervisor) -> None:
        clock.instant = at("2026-06-08T02:00:00Z")
        event = finish(outcome(self.of_the_conf(gate("backfill", key="2026-06-07", run_type="scheduled"))))
        assert "begun on the grid 3h" in event.payload[FAILURE]

    @pytest.mark.parametrize("kept", ["1d", None], ids=["the same grid", "nothing was written yet"])
    def test_all_others_wait(
        self,
        wait_for: Callable[..., PartitionTrigger],
        land: Callable[[str], None],
        supervisor: FakeSupervisor,
        kept: str | None,
    ) -> None:
        supervisor.contracts = {} if kept is None else {f"grid:{self.DAG}": kept}
        land("raw.orders/ds=2026-06-01")
        assert isinstance(finish(outcome(self.of_the_conf(wait_for()))), TaskSuccessEvent)

    def test_a_run_that_writes_no_table_asks_nothing(
        self, wait_for: Callable[..., PartitionTrigger], land: Callable[[str], None], supervisor: FakeSupervisor
    ) -> None:
        trigger = self.of_the_conf(wait_for())
        trigger.output = ""
        land("raw.orders/ds=2026-06-01")
        assert isinstance(finish(outcome(trigger)), TaskSuccessEvent)
        assert supervisor.asked == []

    def test_airflow_that_does_not_answer_leaves_it_to_the_work(
        self,
        wait_for: Callable[..., PartitionTrigger],
        land: Callable[[str], None],
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr("airflow.sdk.execution_time.task_runner.SUPERVISOR_COMMS", None, raising=False)
        land("raw.orders/ds=2026-06-01")
        assert isinstance(finish(outcome(self.of_the_conf(wait_for()))), TaskSuccessEvent)
        assert "Airflow does not tell how the table was begun" in caplog.text
