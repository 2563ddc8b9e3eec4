"""Waits and gates in an event loop, over real folders and Airflow's own shared streams (C10, C17 to C20)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from airflow.triggers.base import TaskSkippedEvent, TaskSuccessEvent, TriggerEvent
from airflow.triggers.shared_stream import SharedStreamManager

from airflow_chronon.airflow.sensors.triggers import BACKSTOP_SECONDS, FAILURE, GateTrigger, PartitionTrigger
from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.calendar.instants import DAY, MINUTE
from airflow_chronon.core.partitions.listing import TableListing
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.waits.catalog import FakeCatalog
from airflow_chronon.core.waits.dependencies import CutOffs, Lookback, TableDependency
from airflow_chronon.core.waits.serialization import dependency_to_json
from airflow_chronon.errors import CatalogError, Fault
from tests.support.schedules import at, schedule_of, spec_of
from tests.support.supervisor import FakeRun, FakeSupervisor

DAILY = schedule_of("@daily", DAY)
ORDERS = TableDependency("raw.orders", "ds", spec_of(DAY))
KEY = "2026-06-01"
LIMIT = 60  # seconds after which a test that hangs gives up


@pytest.fixture(autouse=True)
def _present(clock, monkeypatch) -> None:
    clock.instant = at("2026-06-10T00:00:00Z")
    monkeypatch.setattr(PartitionTrigger, "_observations", {})
    monkeypatch.setattr(
        "airflow_chronon.airflow.sensors.triggers._RunTrigger.log", logging.getLogger("triggers"), raising=False
    )


@pytest.fixture
def land(tmp_path: Path) -> Callable[[str], None]:
    """Land a partition: ``raw.orders/ds=2026-06-01``."""

    def land(path: str) -> None:
        folder = tmp_path / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part-0.parquet").write_bytes(b"x")

    return land


@pytest.fixture
def wait_for(tmp_path: Path) -> Callable[..., PartitionTrigger]:
    def build(
        *dependencies: TableDependency, key: str = KEY, on_timeout: str = "fail", **request: str
    ) -> PartitionTrigger:
        given = dependencies or (ORDERS,)
        return PartitionTrigger(
            schedule=schedule_to_json(DAILY),
            dependencies={"backfill": [dependency_to_json(each) for each in given]},
            table=given[0].table,
            catalog={"kind": "filesystem", "root": str(tmp_path)},
            poll_seconds=0.02,  # type: ignore[arg-type]  # whole seconds are for people
            on_timeout=on_timeout,
            **(run_of(key) | request),
        )

    return build


def run_of(key: str = "", run_type: str = "backfill", **more: str) -> dict[str, str]:
    """A run's request as the triggerer renders it."""
    empty = dict.fromkeys(("start_ds", "end_ds", "asked_at", "interval_start", "interval_end"), "")
    return {"partition_key": key, "run_type": run_type} | empty | more


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, LIMIT))


async def outcome(trigger: Any) -> TriggerEvent:
    """The one event of a trigger that shares no stream."""
    events = [event async for event in trigger.run()]
    assert len(events) == 1
    return events[0]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # the condition is another thread's
        await asyncio.sleep(0.01)


class Triggerer:
    """What Airflow's triggerer does with triggers that share streams."""

    def __init__(self) -> None:
        self.streams = SharedStreamManager()

    async def run(self, trigger_id: int, trigger: PartitionTrigger) -> TriggerEvent:
        key = trigger.shared_stream_key()
        if key is None:
            return await outcome(trigger)
        stream = self.streams.subscribe(trigger_id=trigger_id, trigger=trigger, key=key)
        try:
            async for event in trigger.filter_shared_stream(stream):
                return event
        finally:
            await self.streams.unsubscribe(trigger_id, key)
        raise AssertionError("the wait ended without an event")


class TestAWait:
    def test_succeeds_when_its_label_lands(self, wait_for, land):
        async def story() -> TriggerEvent:
            waiting = asyncio.create_task(outcome(wait_for()))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            land("raw.orders/ds=2026-05-31")
            await asyncio.sleep(0.1)
            assert not waiting.done()
            land(f"raw.orders/ds={KEY}")
            return await waiting

        assert isinstance(finish(story()), TaskSuccessEvent)

    def test_of_another_table_is_no_matter(self, wait_for, land):
        # prior art 24
        async def story() -> None:
            waiting = asyncio.create_task(outcome(wait_for()))
            land(f"raw.orders_old/ds={KEY}")
            await asyncio.sleep(0.1)
            assert not waiting.done()
            waiting.cancel()

        finish(story())

    def test_waits_for_a_table_that_is_not_there_and_says_so(self, wait_for, land, caplog):
        # prior art 25
        caplog.set_level(logging.INFO)

        async def story() -> TriggerEvent:
            waiting = asyncio.create_task(outcome(wait_for()))
            await until(lambda: "raw.orders is not there yet" in caplog.text)
            land(f"raw.orders/ds={KEY}")
            return await waiting

        assert isinstance(finish(story()), TaskSuccessEvent)
        assert caplog.text.count("raw.orders is not there yet") == 1  # once, not at every poll
        assert f"partition {KEY}, window [2026-06-01T00:00:00Z, 2026-06-02T00:00:00Z)" in caplog.text
        assert f"waiting for raw.orders ds={KEY}" in caplog.text

    def test_on_a_table_without_partitions_fails_at_once_with_a_sentence(self, wait_for, land, caplog):
        # C17, prior art 25
        land("raw.orders")
        assert FAILURE in finish(outcome(wait_for())).payload
        assert "raw.orders holds data without partitions, and labels of ds are waited for" in caplog.text
        assert "Traceback" not in caplog.text

    def test_on_another_partition_column_fails_at_once(self, wait_for, land, caplog):
        land("raw.orders/day=2026-06-01")
        assert FAILURE in finish(outcome(wait_for())).payload
        assert "raw.orders is partitioned by day, not by ds" in caplog.text

    def test_goes_on_while_the_catalog_cannot_answer_and_says_why(self, wait_for, mocker, caplog):
        caplog.set_level(logging.INFO)
        listings = [CatalogError(Fault("input", "raw.orders", "no rights", "ask for them"))] * 3
        catalog = mocker.Mock()
        catalog.list_partitions.side_effect = [*listings, TableListing.of("ds", [KEY])]
        mocker.patch("airflow_chronon.airflow.sensors.triggers.build_catalog", return_value=catalog)
        assert isinstance(finish(outcome(wait_for())), TaskSuccessEvent)
        assert caplog.text.count("no rights") == 1

    @pytest.mark.parametrize(
        ("policy", "ends"), [(Lookback.WARN, True), (Lookback.IGNORE, True), (Lookback.REQUIRE, False)]
    )
    def test_treats_a_hole_in_the_lookback_as_its_policy_says(self, wait_for, land, caplog, policy, ends):
        # C17: 05-30 is missing; what lies before the first landed label is not a hole
        caplog.set_level(logging.INFO)
        for label in ("2026-05-29", "2026-05-31", KEY):
            land(f"raw.orders/ds={label}")
        trigger = wait_for(replace(ORDERS, reach=5 * DAY, policy=policy))

        async def story() -> TriggerEvent:
            waiting = asyncio.create_task(outcome(trigger))
            if not ends:
                await until(lambda: "has holes: ds=2026-05-30" in caplog.text)
                assert not waiting.done()
                land("raw.orders/ds=2026-05-30")
            return await waiting

        event = finish(story())
        assert isinstance(event, TaskSuccessEvent)
        warned = [
            record for record in caplog.records if record.levelno == logging.WARNING and "has holes" in record.message
        ]
        assert bool(warned) is (policy is Lookback.WARN)
        said = event.xcoms
        assert said == ({"return_value": warned[0].message} if warned else None)

    def test_for_sub_partitions_looks_under_each_label(self, wait_for, land):
        # C20
        async def story() -> TriggerEvent:
            waiting = asyncio.create_task(outcome(wait_for(replace(ORDERS, sub=("region=eu", "region=us")))))
            land(f"raw.orders/ds={KEY}/region=eu")
            await asyncio.sleep(0.1)
            assert not waiting.done()
            land(f"raw.orders/ds={KEY}/region=us")
            return await waiting

        assert isinstance(finish(story()), TaskSuccessEvent)

    def test_on_a_time_partitioned_table_ends_when_its_newest_value_is_there(self, wait_for, tmp_path, caplog):
        # C18
        import pyarrow as pa
        import pyarrow.parquet as pq

        caplog.set_level(logging.INFO)
        (tmp_path / "raw.clicks").mkdir()

        def write(name: str, *moments: datetime) -> None:
            part = tmp_path / "raw.clicks" / f"_{name}"  # hidden until it is whole
            pq.write_table(pa.table({"ts": list(moments)}), part)
            part.rename(part.with_name(name))

        write("a.parquet", datetime(2026, 6, 1, 23, tzinfo=UTC))

        async def story() -> TriggerEvent:
            waiting = asyncio.create_task(outcome(wait_for(TableDependency("raw.clicks", "ts"))))
            await until(lambda: "the newest ts of raw.clicks is 2026-06-01T23:00:00Z" in caplog.text)
            write("b.parquet", datetime(2026, 6, 2, tzinfo=UTC))
            return await waiting

        assert isinstance(finish(story()), TaskSuccessEvent)

    def test_on_an_expression_ends_when_it_is_true_or_greater(self, wait_for, mocker):
        # C19
        values = iter([None, False, "2026-06-01", "2026-06-02"])
        catalog = mocker.Mock()
        catalog.evaluate.side_effect = lambda table, expression: next(values)
        mocker.patch("airflow_chronon.airflow.sensors.triggers.build_catalog", return_value=catalog)
        assert isinstance(finish(outcome(wait_for(replace(ORDERS, expression="max(ds)")))), TaskSuccessEvent)
        assert next(values, "used up") == "used up"

    def test_where_nothing_is_needed_is_over_before_it_began(self, wait_for):
        # C16: the cut-off leaves nothing
        old = CutOffs(start=at("2026-06-05T00:00:00Z"))
        trigger = wait_for(replace(ORDERS, cut=old))
        assert trigger.shared_stream_key() is None
        assert isinstance(finish(outcome(trigger)), TaskSuccessEvent)

    def test_of_a_manual_run_without_a_window_is_over_before_it_began(self, wait_for):
        # H7
        assert isinstance(finish(outcome(wait_for(key=""))), TaskSuccessEvent)

    @pytest.mark.parametrize(
        ("request_", "says"),
        [
            ({"key": KEY, "start_ds": KEY}, "both a partition key '2026-06-01' and start_ds or end_ds are given"),
            ({"key": "", "end_ds": KEY}, "end_ds '2026-06-01' is given without start_ds"),
            ({"key": "2026-07-01"}, "has not closed"),
            ({"key": "", "start_ds": "2026-06-02", "end_ds": "2026-06-01"}, "is before start_ds"),
        ],
    )
    def test_of_a_request_that_contradicts_itself_leaves_the_one_failure_to_the_work(
        self, wait_for, caplog, request_, says
    ):
        # C27
        trigger = wait_for(**request_)
        assert trigger.shared_stream_key() is None
        assert isinstance(finish(outcome(trigger)), TaskSuccessEvent)
        assert says in caplog.text

    def test_of_a_range_waits_for_every_label_of_it(self, wait_for, land):
        # C27
        async def story() -> TriggerEvent:
            waiting = asyncio.create_task(outcome(wait_for(key="", start_ds="2026-06-01", end_ds="2026-06-02")))
            land("raw.orders/ds=2026-06-02")
            await asyncio.sleep(0.1)
            assert not waiting.done()
            land("raw.orders/ds=2026-06-01")
            return await waiting

        assert isinstance(finish(story()), TaskSuccessEvent)


class TestItsDeadline:
    """Airflow keeps it in its database and hands it to the trigger as ``timeout_after``, after a restart too."""

    @pytest.mark.parametrize(("on_timeout", "kind"), [("fail", TriggerEvent), ("skip", TaskSkippedEvent)])
    def test_ends_the_wait_as_it_is_told(self, wait_for, clock, on_timeout, kind, caplog):
        # prior art 27
        trigger = wait_for(on_timeout=on_timeout)
        deadline = datetime.fromtimestamp(clock.instant, UTC)
        trigger.timeout_after = deadline + timedelta(seconds=BACKSTOP_SECONDS)
        event = finish(outcome(trigger))
        assert type(event) is kind
        assert (FAILURE in (event.payload or {})) is (on_timeout == "fail")
        assert "time is up" in caplog.text
        assert "raw.orders is not there yet" in caplog.text

    def test_lies_before_the_end_that_airflow_makes_itself(self, wait_for, clock):
        async def story() -> None:
            trigger = wait_for()
            trigger.timeout_after = datetime.fromtimestamp(clock.instant + BACKSTOP_SECONDS + 1, UTC)
            waiting = asyncio.create_task(outcome(trigger))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            clock.instant += 1
            assert FAILURE in (await waiting).payload

        finish(story())

    def test_does_not_begin_anew_with_a_new_triggerer(self, wait_for, clock):
        deadline = datetime.fromtimestamp(clock.instant + BACKSTOP_SECONDS + 5, UTC)
        first = wait_for()
        _, kwargs = first.serialize()
        clock.instant += 5  # the first triggerer died meanwhile
        again = PartitionTrigger(**kwargs)
        again.timeout_after = deadline
        assert FAILURE in finish(outcome(again)).payload

    def test_is_no_matter_when_the_label_is_there_at_last(self, wait_for, land, clock):
        land(f"raw.orders/ds={KEY}")
        trigger = wait_for()
        trigger.timeout_after = datetime.fromtimestamp(clock.instant, UTC)
        assert isinstance(finish(outcome(trigger)), TaskSuccessEvent)


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


class TestAGate:
    SCHEDULE = schedule_of({Mode.BACKFILL: "0 6 * * mon", Mode.UPLOAD: "0 2 * * *"}, DAY)

    def gate(self, mode: str, **request: str) -> GateTrigger:
        return GateTrigger(schedule=schedule_to_json(self.SCHEDULE), mode=mode, **run_of(**request))

    def test_skips_a_mode_whose_schedule_does_not_fire_for_the_partition(self):
        # C10: 2026-06-02 is a Tuesday
        event = finish(outcome(self.gate("backfill", key="2026-06-02", run_type="scheduled")))
        assert isinstance(event, TaskSkippedEvent)

    def test_lets_a_mode_through_whose_fire_has_come(self):
        for mode in ("backfill", "upload"):
            event = finish(outcome(self.gate(mode, key="2026-06-07", run_type="scheduled")))
            assert isinstance(event, TaskSuccessEvent)

    def test_holds_a_mode_until_its_own_fire(self, clock, mocker, caplog):
        # C10: on Mondays the upload fires at two and the backfill at six
        caplog.set_level(logging.INFO)
        clock.instant = at("2026-06-08T02:00:00Z")
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            clock.instant += int(seconds)

        mocker.patch("airflow_chronon.airflow.sensors.triggers.asyncio.sleep", sleep)
        assert isinstance(
            finish(outcome(self.gate("backfill", key="2026-06-07", run_type="scheduled"))), TaskSuccessEvent
        )
        assert sum(slept) == 4 * 3600
        assert max(slept) <= 60  # clocks are set while triggers sleep
        assert "backfill fires at 2026-06-08T06:00:00Z" in caplog.text

    def test_lets_replays_and_manual_runs_through_at_once(self):
        # C9: every mode, whatever the schedule
        for request in ({"key": "2026-06-02"}, {"key": "", "run_type": "manual"}):
            assert isinstance(finish(outcome(self.gate("backfill", **request))), TaskSuccessEvent)

    def test_leaves_the_one_failure_of_a_request_that_contradicts_itself_to_the_work(self, caplog):
        # C27
        event = finish(outcome(self.gate("backfill", key="2026-06-02", end_ds="2026-06-02")))
        assert isinstance(event, TaskSuccessEvent)
        assert "give the key, or the range, not both" in caplog.text.lower()


def test_triggers_come_back_from_their_serialised_form(wait_for):
    # what Airflow keeps in its database
    from airflow.serialization.serialized_objects import BaseSerialization

    gate = GateTrigger(schedule=schedule_to_json(DAILY), mode="backfill", **run_of(KEY))
    for trigger in (wait_for(replace(ORDERS, reach=None, sub=("a=b",))), gate):
        path, kwargs = trigger.serialize()
        assert path == f"airflow_chronon.airflow.sensors.triggers.{type(trigger).__name__}"
        back = type(trigger)(**BaseSerialization.deserialize(BaseSerialization.serialize(kwargs)))
        assert back.serialize() == (path, kwargs)


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
        event = finish(outcome(self.of_the_conf(TestAGate().gate("backfill", key="2026-06-07", run_type="scheduled"))))
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
