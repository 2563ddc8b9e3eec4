"""Waits and gates in an event loop, over real folders and Airflow's own shared streams (C10, C17 to C20)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from airflow.triggers.base import TaskSkippedEvent, TaskSuccessEvent, TriggerEvent

from airflow_chronon.airflow.sensors.triggers import BACKSTOP_SECONDS, FAILURE, GateTrigger, PartitionTrigger
from airflow_chronon.core.calendar.instants import DAY, HOUR
from airflow_chronon.core.partitions.listing import TableListing
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.waits.dependencies import CutOffs, Lookback, TableDependency
from airflow_chronon.core.waits.max_lag import LAGGING_KEY, MaxLag, lagging_from_json
from airflow_chronon.errors import CatalogError, Fault
from tests.support.schedules import at
from tests.support.triggers import DAILY, KEY, ORDERS, finish, gate, outcome, run_of, until

pytestmark = pytest.mark.usefixtures("present")


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

    def test_waits_for_a_table_that_is_not_there_and_says_so(self, wait_for, land, caplog, tmp_path):
        # prior art 25
        caplog.set_level(logging.INFO)

        async def story() -> TriggerEvent:
            waiting = asyncio.create_task(outcome(wait_for()))
            await until(lambda: "raw.orders is not there yet" in caplog.text)
            land(f"raw.orders/ds={KEY}")
            return await waiting

        assert isinstance(finish(story()), TaskSuccessEvent)
        assert caplog.text.count("raw.orders is not there yet") == 1  # once, not at every poll
        assert f"looked for in {tmp_path}/raw.orders" in caplog.text
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

    def test_goes_on_with_the_newest_there_once_it_has_waited_so_long(self, wait_for, land, clock, caplog):
        # C17: max_lag
        caplog.set_level(logging.INFO)
        land("raw.orders/ds=2026-05-31")
        trigger = wait_for(replace(ORDERS, reach=5 * DAY, max_lag=MaxLag(1, HOUR)))

        async def story() -> TriggerEvent:
            waiting = asyncio.create_task(outcome(trigger))
            await until(lambda: "after 1h of waiting the run goes on with ds=2026-05-31 (max_lag)" in caplog.text)
            clock.instant += HOUR - 1
            await asyncio.sleep(0.1)
            assert not waiting.done()
            clock.instant += 1
            return await waiting

        event = finish(story())
        assert isinstance(event, TaskSuccessEvent)
        (kept,) = lagging_from_json(event.xcoms[LAGGING_KEY])
        assert (kept.table, kept.newest, kept.lacks) == ("raw.orders", "2026-05-31", (KEY,))
        (said,) = [each for each in caplog.records if each.levelno == logging.WARNING and each.name == "triggers"]
        assert "the run goes on after 1h of waiting: raw.orders was read up to ds=2026-05-31, 1 partition behind" in (
            said.message
        )
        assert "raw.orders is there" not in caplog.text

    def test_counts_the_time_from_before_a_restart_of_the_triggerer(self, wait_for, land, clock):
        # C17: max_lag; only Airflow's database knows when the wait began
        land("raw.orders/ds=2026-05-31")
        trigger = wait_for(replace(ORDERS, reach=5 * DAY, max_lag=MaxLag(1, HOUR)))
        trigger.timeout = DAY
        began = datetime.fromtimestamp(clock.instant - HOUR, UTC)
        trigger.timeout_after = began + timedelta(seconds=DAY + BACKSTOP_SECONDS)
        assert LAGGING_KEY in finish(outcome(trigger)).xcoms

    def test_keeps_how_long_it_lasts_only_where_that_matters(self, wait_for):
        assert "timeout" not in wait_for().serialize()[1]
        trigger = wait_for()
        trigger.timeout = DAY
        _, kwargs = trigger.serialize()
        assert PartitionTrigger(**kwargs).timeout == DAY

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


class TestAGate:
    def test_skips_a_mode_whose_schedule_does_not_fire_for_the_partition(self):
        # C10: 2026-06-02 is a Tuesday
        event = finish(outcome(gate("backfill", key="2026-06-02", run_type="scheduled")))
        assert isinstance(event, TaskSkippedEvent)

    def test_lets_a_mode_through_whose_fire_has_come(self):
        for mode in ("backfill", "upload"):
            event = finish(outcome(gate(mode, key="2026-06-07", run_type="scheduled")))
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
        assert isinstance(finish(outcome(gate("backfill", key="2026-06-07", run_type="scheduled"))), TaskSuccessEvent)
        assert sum(slept) == 4 * 3600
        assert max(slept) <= 60  # clocks are set while triggers sleep
        assert "backfill fires at 2026-06-08T06:00:00Z" in caplog.text

    def test_lets_replays_and_manual_runs_through_at_once(self):
        # C9: every mode, whatever the schedule
        for request in ({"key": "2026-06-02"}, {"key": "", "run_type": "manual"}):
            assert isinstance(finish(outcome(gate("backfill", **request))), TaskSuccessEvent)

    def test_leaves_the_one_failure_of_a_request_that_contradicts_itself_to_the_work(self, caplog):
        # C27
        event = finish(outcome(gate("backfill", key="2026-06-02", end_ds="2026-06-02")))
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
