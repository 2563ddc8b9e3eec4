"""What one wait does to others: they share polls, and none that is slow, huge or hangs holds up another (S3, S7, S8)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from airflow.triggers.base import TaskSuccessEvent, TriggerEvent

from airflow_chronon.airflow.sensors.triggers import FAILURE, GateTrigger, PartitionTrigger
from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.calendar.instants import DAY, MINUTE
from airflow_chronon.core.partitions.listing import TableListing
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.waits.catalog import FakeCatalog
from airflow_chronon.core.waits.dependencies import TableDependency
from tests.support.schedules import at, schedule_of, spec_of
from tests.support.triggers import KEY, LIMIT, ORDERS, Triggerer, finish, outcome, run_of, until

pytestmark = pytest.mark.usefixtures("present")


class TestTwentyWaitsOnOneTable:
    def test_share_one_listing_per_poll(self, wait_for, land, mocker):
        # one poll serves every deferred task, through Airflow's own manager
        listed = mocker.spy(FilesystemCatalog, "list_partitions")
        opened = mocker.spy(PartitionTrigger, "open_shared_stream")
        labels = [f"2026-05-{day:02d}" for day in range(1, 21)]
        rounds: list[int] = []

        async def story() -> list[TriggerEvent]:
            triggerer = Triggerer()
            triggers = [wait_for(key=label) for label in labels]
            for trigger in triggers:
                trigger.poll_seconds = 1
            waits = [asyncio.create_task(triggerer.run(number, trigger)) for number, trigger in enumerate(triggers)]
            await until(lambda: listed.call_count >= 1)
            for label in labels:
                land(f"raw.orders/ds={label}")
            events = await asyncio.gather(*waits)
            rounds.append(listed.call_count)
            return events

        events = finish(story())
        assert [type(event) for event in events] == [TaskSuccessEvent] * 20
        assert opened.call_count == 1
        assert rounds[0] <= 3  # not 20

    def test_of_which_one_joins_late_is_judged_by_what_was_seen_last(self, wait_for, land, mocker):
        listed = mocker.spy(FilesystemCatalog, "list_partitions")
        land("raw.orders/ds=2026-05-01")

        async def story() -> None:
            triggerer = Triggerer()
            first, late = wait_for(key="2026-05-30"), wait_for(key="2026-05-01")
            for trigger in (first, late):
                trigger.poll_seconds = 3600
            waiting = asyncio.create_task(triggerer.run(1, first))
            await until(lambda: bool(PartitionTrigger._observations))
            assert isinstance(await triggerer.run(2, late), TaskSuccessEvent)
            assert listed.call_count == 1
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await triggerer.streams.stop_all()

        finish(story())

    def test_on_other_tables_or_questions_share_nothing(self, wait_for):
        keys = {
            wait_for().shared_stream_key(),
            wait_for(replace(ORDERS, table="raw.other")).shared_stream_key(),
            wait_for(replace(ORDERS, expression="count(*) > 0")).shared_stream_key(),
            wait_for(TableDependency("raw.orders", "ts")).shared_stream_key(),
        }
        assert len(keys) == 4
        assert wait_for(key="2026-05-01").shared_stream_key() == wait_for().shared_stream_key()


def test_a_slow_catalog_never_blocks_the_event_loop(wait_for, mocker):
    # prior art 28: a heartbeat goes on while a listing hangs
    released = threading.Event()

    class Slow(FakeCatalog):
        def list_partitions(self, table: str) -> TableListing:
            released.wait(LIMIT)
            return TableListing.of("ds", [KEY])

    mocker.patch("airflow_chronon.airflow.sensors.triggers.build_catalog", return_value=Slow())

    async def story() -> TriggerEvent:
        waiting = asyncio.create_task(outcome(wait_for()))
        for _ in range(20):
            await asyncio.sleep(0.005)  # only a loop that is free gets through these
        assert not waiting.done()
        released.set()
        return await waiting

    assert isinstance(finish(story()), TaskSuccessEvent)


class TestExpressions:
    """What a wait for a `triggerExpr` does to others, and how it ends (S3)."""

    ENDLESS = "(SELECT sum(range % 7) FROM range(1000000000000000)) > {number}"

    @pytest.fixture
    def endless(self, wait_for, tmp_path):
        """A wait whose expression never comes to an end by itself."""
        (tmp_path / "raw.slow" / f"ds={KEY}").mkdir(parents=True)
        duckdb.sql("SELECT 1 AS a").write_parquet(str(tmp_path / "raw.slow" / f"ds={KEY}" / "a.parquet"))

        def endless(number: int, *, timeout: str) -> PartitionTrigger:
            expression = self.ENDLESS.format(number=number)
            trigger = wait_for(TableDependency("raw.slow", "ds", spec_of(DAY), expression=expression))
            trigger.catalog = trigger.catalog | {"expression_timeout": timeout}
            return trigger

        return endless

    def test_without_end_delay_no_other_wait(self, wait_for, endless, land, mocker):
        asked: list[str] = []
        evaluate = FilesystemCatalog.evaluate

        def noted(catalog: FilesystemCatalog, table: str, expression: str) -> object:
            asked.append(expression)
            return evaluate(catalog, table, expression)

        mocker.patch.object(FilesystemCatalog, "evaluate", noted)

        async def story() -> TriggerEvent:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
            triggerer = Triggerer()
            slow = [asyncio.create_task(triggerer.run(number, endless(number, timeout="4s"))) for number in range(8)]
            await until(lambda: len(asked) >= 2)  # as many as are evaluated at a time
            land(f"raw.orders/ds={KEY}")
            event = await triggerer.run(100, wait_for())
            assert not any(task.done() for task in slow)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            return event

        assert isinstance(finish(story()), TaskSuccessEvent)

    def test_without_end_fail_their_wait_with_the_setting(self, endless, caplog):
        with caplog.at_level(logging.INFO):
            event = finish(outcome(endless(0, timeout="1s")))
        assert "which is all that catalog.expression_timeout allows" in event.payload[FAILURE]
        assert len([each for each in caplog.messages if "had no value after 1s" in each]) == 2  # once, and at the end

    @pytest.mark.parametrize(
        "expression", ["(SELECT content FROM read_text('/proc/self/environ'))", "getenv('HOME')", "max(ds", "SELECT 1"]
    )
    def test_that_can_have_no_value_fail_their_wait_at_once(self, wait_for, expression, land):
        land(f"raw.orders/ds={KEY}")
        event = finish(outcome(wait_for(replace(ORDERS, expression=expression))))
        assert "triggerExpr" in event.payload[FAILURE] and "\n" not in event.payload[FAILURE]


class TestARunOfVeryManyPartitions:
    """What is typed into a run's form must not hold the loop in which every wait of the triggerer lives (S7)."""

    MINUTELY = schedule_of("* * * * *", MINUTE)
    MINUTES = TableDependency("raw.minutes", "ds", spec_of(MINUTE))

    def asked(self, wait_for: Callable[..., PartitionTrigger], start: str, end: str) -> PartitionTrigger:
        trigger = wait_for(self.MINUTES, **run_of("", "manual") | {"start_ds": start, "end_ds": end})
        trigger.schedule = schedule_to_json(self.MINUTELY)
        trigger._task_instance = SimpleNamespace(dag_id="d", run_id="r", task=None)
        return trigger

    def test_is_refused_at_once_in_one_sentence(
        self, wait_for: Callable[..., PartitionTrigger], caplog: pytest.LogCaptureFixture
    ) -> None:
        trigger = self.asked(wait_for, "1970-01-01", "2026-06-01")
        assert trigger.shared_stream_key() is None
        assert isinstance(finish(outcome(trigger)), TaskSuccessEvent)  # the work fails with it
        (failed,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert "29672640 partitions, and one run covers at most 50000 (S7)" in failed
        assert "airflow-chronon backfill d --start-ds 1970-01-01-00-00" in failed and "\n" not in failed

    def test_of_a_gate_too(self, caplog: pytest.LogCaptureFixture) -> None:
        gate = GateTrigger(
            schedule=schedule_to_json(self.MINUTELY),
            mode="backfill",
            **run_of("", "manual", start_ds="1970-01-01") | {"end_ds": "2026-06-01"},
        )
        assert isinstance(finish(outcome(gate)), TaskSuccessEvent)
        assert "at most 50000 (S7)" in caplog.text

    def test_within_the_bound_is_worked_out_in_a_thread(
        self, wait_for: Callable[..., PartitionTrigger], land: Callable[[str], None], mocker: Any
    ) -> None:
        loops: list[int] = []

        def list_partitions(table: str) -> TableListing:
            month = range(at("2026-05-01T00:00:00Z"), at("2026-06-01T00:00:00Z"), MINUTE)
            return TableListing.of("ds", map(self.MINUTES.spec.label, month))  # type: ignore[union-attr]

        catalog = mocker.Mock(list_partitions=list_partitions)
        mocker.patch("airflow_chronon.airflow.sensors.triggers.build_catalog", return_value=catalog)
        prepare = PartitionTrigger._prepare

        def seen(trigger: PartitionTrigger) -> None:
            loops.append(threading.get_ident())
            prepare(trigger)

        mocker.patch.object(PartitionTrigger, "_prepare", seen)
        trigger = self.asked(wait_for, "2026-05-01", "2026-05-31")
        assert trigger.shared_stream_key() is None and not loops
        assert isinstance(finish(outcome(trigger)), TaskSuccessEvent)
        assert loops and threading.get_ident() not in loops


class TestAListingThatHangs:
    """A store that does not answer, or that lists without end, delays the waits on its own tables only (S8)."""

    @pytest.fixture
    def over(self, monkeypatch: pytest.MonkeyPatch, mocker: Any) -> Iterator[threading.Event]:
        monkeypatch.setattr("airflow_chronon.airflow.sensors.table_polls.LONG_SECONDS", 0.05)
        over = threading.Event()
        self.begun: list[str] = []

        def list_partitions(table: str) -> TableListing:
            self.begun.append(table)
            if table.startswith("far."):
                assert over.wait(LIMIT)
            return TableListing.of("ds", [KEY])

        catalog = mocker.Mock(list_partitions=list_partitions)
        mocker.patch("airflow_chronon.airflow.sensors.triggers.build_catalog", return_value=catalog)
        yield over
        over.set()

    def test_is_named_waited_for_and_delays_no_other_table(
        self, wait_for: Callable[..., PartitionTrigger], over: threading.Event, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        far = [f"far.t{number}" for number in range(40)]  # more than there are threads that all share

        async def story() -> None:
            hanging = [asyncio.create_task(outcome(wait_for(replace(ORDERS, table=table)))) for table in far]
            await until(lambda: all(f"{table}: looking at it has not ended after" in caplog.text for table in far))
            assert isinstance(await outcome(wait_for()), TaskSuccessEvent)
            await asyncio.sleep(0.3)  # many polls
            assert not any(each.done() for each in hanging)
            assert sorted(self.begun) == sorted([*far, ORDERS.table])  # none was begun beside one that hangs
            over.set()
            assert all(isinstance(event, TaskSuccessEvent) for event in await asyncio.gather(*hanging))

        finish(story())
