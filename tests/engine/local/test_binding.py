"""How right parts bind to the left's rows: the source document's own examples, as tables (C21)."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import HOUR, parse_instant
from airflow_chronon.errors import JobFailed
from tests.support.warehouse import (
    DAILY,
    HOURLY,
    THREE_HOURLY,
    Warehouse,
    aggregation,
    entities,
    events,
    group_by,
    join,
    spec_of,
)

SUM, COUNT, LAST = 7, 6, 3
EVENT = {"user": "INTEGER", "ts_ms": "BIGINT", "amount": "BIGINT"}
LEFT = {"user": "INTEGER", "ts_ms": "BIGINT"}
SELECTS = {"user": "user", "amount": "amount"}


def ms(text: str) -> int:
    return parse_instant(f"2026-06-{text}") * 1000


def left(spec: Any = HOURLY) -> dict[str, Any]:
    return events("data.left", spec, selects={"user": "user", "ts": "ts_ms"})


def bound(store: Warehouse, table: str, label: str, column: str) -> dict[str, Any]:
    """The feature of each row by the time of the row."""
    return {
        next(text for text in TEXTS if ms(text) == at): value for at, value in store.rows(table, label, "ts", column)
    }


TEXTS = [f"0{day}T{hour:02}:{minute:02}" for day in (1, 2, 3) for hour in range(24) for minute in range(60)]


class TestSnapshotParts:
    def test_the_row_at_12_07_takes_the_snapshot_that_ended_at_10(self, store: Warehouse) -> None:
        """An hourly join over a part on 3h@1h, whose boundaries are 01, 04, 07, 10, 13."""
        for hour in range(24):  # one event of 1 in each hour of the day
            store.land("data.events", EVENT, [(1, ms(f"01T{hour:02}:30"), 1)], ds=f"2026-06-01-{hour:02}-00")
        store.land(
            "data.left", LEFT, [(1, ms("01T12:00")), (1, ms("01T12:07")), (1, ms("01T12:59"))], ds="2026-06-01-12-00"
        )
        store.land("data.left", LEFT, [(1, ms("01T13:00")), (1, ms("01T13:01"))], ds="2026-06-01-13-00")
        part = group_by(
            events("data.events", HOURLY, selects=SELECTS), aggregations=[aggregation("amount", SUM)], spec=THREE_HOURLY
        )
        document = join(left(), {"groupBy": part}, spec=HOURLY)
        table = store.run(document, "2026-06-01T12:00", "2026-06-01T14:00", spec=HOURLY)
        before = bound(store, table, "2026-06-01-12-00", "user_amount_sum")
        assert before == {"01T12:00": 10, "01T12:07": 10, "01T12:59": 10}  # the events of [00:00, 10:00)
        after = bound(store, table, "2026-06-01-13-00", "user_amount_sum")
        assert after == {"01T13:00": 13, "01T13:01": 13}  # a snapshot that ends at the row's time counts

    def test_a_daily_part_under_a_three_hour_join_is_bounded_staleness(self, store: Warehouse) -> None:
        """Before its midnight a row takes the snapshot of the day before; that is not missing data."""
        spec = spec_of(3 * HOUR)
        store.land("data.events", EVENT, [(1, ms("01T23:59"), 10)], ds="2026-06-01")
        store.land("data.events", EVENT, [(1, ms("02T00:00"), 100), (1, ms("02T20:00"), 100)], ds="2026-06-02")
        for label, rows in {
            "02-18": ["02T18:00", "02T20:59"],
            "02-21": ["02T21:00", "02T23:59"],
            "03-00": ["03T00:00"],
        }.items():
            store.land("data.left", LEFT, [(1, ms(text)) for text in rows], ds=f"2026-06-{label}-00")
        part = group_by(events("data.events", selects=SELECTS), aggregations=[aggregation("amount", SUM)])
        document = join(left(spec), {"groupBy": part}, spec=spec)
        table = store.run(document, "2026-06-02T18:00", "2026-06-03T03:00", spec=spec)
        found = {}
        for label in ("2026-06-02-18-00", "2026-06-02-21-00", "2026-06-03-00-00"):
            found |= bound(store, table, label, "user_amount_sum")
        assert found == {"02T18:00": 10, "02T20:59": 10, "02T21:00": 10, "02T23:59": 10, "03T00:00": 210}

    def test_a_key_that_left_the_window_is_null_and_not_its_older_snapshot(self, store: Warehouse) -> None:
        store.land("data.events", EVENT, [(1, ms("01T00:30"), 5)], ds="2026-06-01-00-00")
        for hour in (1, 2):
            store.land("data.events", EVENT, [(2, ms(f"01T{hour:02}:30"), 7)], ds=f"2026-06-01-{hour:02}-00")
        store.land("data.left", LEFT, [(1, ms("01T01:10")), (1, ms("01T02:10"))], ds="2026-06-01-00-00")
        store.land("data.left", LEFT, [(1, ms("01T02:10"))], ds="2026-06-01-02-00")
        part = group_by(
            events("data.events", HOURLY, selects=SELECTS),
            aggregations=[aggregation("amount", SUM, "60m")],
            spec=HOURLY,
        )
        table = store.run(
            join(left(), {"groupBy": part}, spec=HOURLY), "2026-06-01T02:00", "2026-06-01T03:00", spec=HOURLY
        )
        assert bound(store, table, "2026-06-01-02-00", "user_amount_sum_60m") == {"01T02:10": None}

    def test_a_snapshot_part_is_the_group_bys_own_partition(self, store: Warehouse) -> None:
        """The same code computes both: a row just after midnight has what the table of the day holds."""
        for day in (1, 2):
            store.land("data.events", EVENT, [(u, ms(f"0{day}T0{u}:00"), u) for u in (1, 2)], ds=f"2026-06-0{day}")
        store.land("data.left", LEFT, [(1, ms("03T00:00")), (2, ms("03T12:00"))], ds="2026-06-03")
        part = group_by(events("data.events", selects=SELECTS), aggregations=[aggregation("amount", SUM, "1d", "2d")])
        own = store.run(part, "2026-06-02", "2026-06-03")
        table = store.run(join(left(DAILY), {"groupBy": part}), "2026-06-03", "2026-06-04")
        assert store.rows(table, "2026-06-03", "user", "user_amount_sum_1d", "user_amount_sum_2d") == store.rows(
            own, "2026-06-02"
        )

    def test_entities_bind_to_the_newest_snapshot_before_the_row(self, store: Warehouse) -> None:
        for day, tier in ((1, "basic"), (2, "gold")):
            store.land("data.users", {"user": "INTEGER", "tier": "VARCHAR"}, [(1, tier)], ds=f"2026-06-0{day}")
        store.land("data.left", LEFT, [(1, ms("02T23:59")), (9, ms("02T23:00"))], ds="2026-06-02")
        store.land("data.left", LEFT, [(1, ms("03T00:00"))], ds="2026-06-03")
        part = group_by(
            entities("data.users", selects={"user": "user", "tier": "tier"}), aggregations=None, accuracy=None
        )
        table = store.run(join(left(DAILY), {"groupBy": part, "prefix": "now"}), "2026-06-02", "2026-06-04")
        assert bound(store, table, "2026-06-02", "now_user_tier") == {"02T23:59": "basic", "02T23:00": None}
        assert bound(store, table, "2026-06-03", "now_user_tier") == {"03T00:00": "gold"}

    def test_a_snapshot_with_two_rows_for_a_key_fails_instead_of_doubling_rows(self, store: Warehouse) -> None:
        store.land("data.users", {"user": "INTEGER", "tier": "VARCHAR"}, [(1, "a"), (1, "b")], ds="2026-06-01")
        store.land("data.left", LEFT, [(1, ms("02T10:00"))], ds="2026-06-02")
        part = group_by(
            entities("data.users", selects={"user": "user", "tier": "tier"}), aggregations=None, accuracy=None
        )
        with pytest.raises(JobFailed, match="two rows for user=1"):
            store.run(join(left(DAILY), {"groupBy": part}), "2026-06-02", "2026-06-03")


class TestEntitiesLeft:
    def test_a_rows_time_is_its_partitions_end(self, store: Warehouse) -> None:
        """The snapshot that ends with the partition, and of a 3h@1h part the one that ended at 22:00."""
        store.land("data.accounts", {"user": "INTEGER", "plan": "VARCHAR"}, [(1, "free")], ds="2026-06-01")
        for hour in range(24):
            store.land("data.events", EVENT, [(1, ms(f"01T{hour:02}:30"), 1)], ds=f"2026-06-01-{hour:02}-00")
        by_hour = events("data.events", HOURLY, selects=SELECTS)
        daily = group_by(by_hour, aggregations=[aggregation("amount", SUM)], name="team.daily__1")
        block = group_by(by_hour, aggregations=[aggregation("amount", SUM)], spec=THREE_HOURLY, name="team.block__1")
        now = group_by(by_hour, aggregations=[aggregation("amount", SUM)], name="team.now__1", accuracy=0)
        document = join(
            entities("data.accounts", selects={"user": "user", "plan": "plan"}),
            {"groupBy": daily, "prefix": "day"},
            {"groupBy": block, "prefix": "block"},
            {"groupBy": now, "prefix": "now"},  # under an entities left a temporal part binds to snapshots too
        )
        table = store.run(document, "2026-06-01", "2026-06-02")
        assert store.columns(table, "2026-06-01")[:2] == ["user", "plan"]
        assert store.rows(table, "2026-06-01") == [(1, "free", 24, 22, 24)]


class TestTemporalParts:
    def test_an_event_at_the_rows_own_time_does_not_count(self, store: Warehouse) -> None:
        rows = [(1, ms("01T11:07"), 1), (1, ms("01T12:06"), 10), (1, ms("01T12:07"), 100)]
        store.land("data.events", EVENT, rows[:1], ds="2026-06-01-11-00")
        store.land("data.events", EVENT, rows[1:], ds="2026-06-01-12-00")
        store.land("data.left", LEFT, [(1, ms("01T12:07")), (1, ms("01T12:08"))], ds="2026-06-01-12-00")
        part = group_by(
            events("data.events", HOURLY, selects=SELECTS),
            aggregations=[aggregation("amount", SUM, "1h"), aggregation("amount", LAST)],
            accuracy=0,
        )
        table = store.run(
            join(left(), {"groupBy": part}, spec=HOURLY), "2026-06-01T12:00", "2026-06-01T13:00", spec=HOURLY
        )
        assert bound(store, table, "2026-06-01-12-00", "user_amount_sum_1h") == {"01T12:07": 11, "01T12:08": 110}
        assert bound(store, table, "2026-06-01-12-00", "user_amount_last") == {"01T12:07": 10, "01T12:08": 100}

    def test_only_partitions_that_had_closed_are_read(self, store: Warehouse) -> None:
        """A daily source under an hourly join: today's partition closes later, so yesterday's is the newest."""
        store.land("data.events", EVENT, [(1, ms("01T23:00"), 1)], ds="2026-06-01")
        store.land("data.events", EVENT, [(1, ms("02T01:00"), 10)], ds="2026-06-02")
        for hour in (11, 23):
            store.land("data.left", LEFT, [(1, ms(f"02T{hour}:30"))], ds=f"2026-06-02-{hour}-00")
        part = group_by(events("data.events", selects=SELECTS), aggregations=[aggregation("amount", SUM)], accuracy=0)
        document = join(left(), {"groupBy": part}, spec=HOURLY)
        table = store.run(document, "2026-06-02T11:00", "2026-06-03T00:00", spec=HOURLY)
        assert bound(store, table, "2026-06-02-11-00", "user_amount_sum") == {"02T11:30": 1}
        assert bound(store, table, "2026-06-02-23-00", "user_amount_sum") == {"02T23:30": 11}

    def test_temporal_entities_are_the_snapshot_and_the_mutations_since(self, store: Warehouse) -> None:
        """A reversal takes the old row away, the row after it counts; both only from their own time on."""
        row = {"user": "INTEGER", "ts_ms": "BIGINT", "amount": "BIGINT"}
        store.land("data.orders", row, [(1, ms("01T10:00"), 5), (1, ms("01T11:00"), 7)], ds="2026-06-01")
        changed = {**row, "changed_ms": "BIGINT", "undone": "BOOLEAN"}
        changes = [
            (1, ms("02T03:00"), 100, ms("02T03:00"), False),  # a new order
            (1, ms("01T11:00"), 7, ms("02T12:00"), True),  # the order of 7 becomes one of 70
            (1, ms("01T11:00"), 70, ms("02T12:00"), False),
        ]
        store.land("data.order_changes", changed, changes, ds="2026-06-02")
        times = ["02T02:00", "02T03:00", "02T03:01", "02T12:00", "02T12:01"]
        store.land("data.left", LEFT, [(1, ms(text)) for text in times], ds="2026-06-02")
        source = entities(
            "data.orders",
            mutations="data.order_changes",
            selects=SELECTS,
            timeColumn="ts_ms",
            mutationTimeColumn="changed_ms",
            reversalColumn="undone",
        )
        part = group_by(
            source,
            aggregations=[aggregation("amount", SUM), aggregation("amount", COUNT), aggregation("amount", 1)],
            accuracy=0,
        )
        table = store.run(join(left(DAILY), {"groupBy": part}), "2026-06-02", "2026-06-03")
        sums = bound(store, table, "2026-06-02", "user_amount_sum")
        assert sums == {"02T02:00": 12, "02T03:00": 12, "02T03:01": 112, "02T12:00": 112, "02T12:01": 175}
        assert bound(store, table, "2026-06-02", "user_amount_max")["02T12:01"] == 100
        assert bound(store, table, "2026-06-02", "user_amount_count")["02T12:01"] == 3


class TestKeysAndBootstraps:
    def test_keys_are_mapped_and_prefixed(self, store: Warehouse) -> None:
        store.land("data.events", EVENT, [(1, ms("01T10:00"), 5), (2, ms("01T10:00"), 8)], ds="2026-06-01")
        pair = {"buyer": "INTEGER", "seller": "INTEGER", "ts_ms": "BIGINT"}
        store.land("data.left", pair, [(1, 2, ms("02T10:00"))], ds="2026-06-02")
        part = group_by(events("data.events", selects=SELECTS), aggregations=[aggregation("amount", SUM, "1d")])
        document = join(
            events("data.left", selects={"buyer": "buyer", "seller": "seller", "ts": "ts_ms"}),
            {"groupBy": part, "prefix": "buyer", "keyMapping": {"buyer": "user"}},
            {"groupBy": part, "prefix": "seller", "keyMapping": {"seller": "user"}},
        )
        table = store.run(document, "2026-06-02", "2026-06-03")
        assert store.columns(table, "2026-06-02")[3:] == ["buyer_user_amount_sum_1d", "seller_user_amount_sum_1d"]
        assert store.rows(table, "2026-06-02") == [(1, 2, ms("02T10:00"), 5, 8)]

    def test_a_bootstrapped_value_wins_and_derivations_come_last(self, store: Warehouse) -> None:
        store.land("data.events", EVENT, [(1, ms("01T10:00"), 5), (2, ms("01T10:00"), 8)], ds="2026-06-01")
        store.land("data.left", LEFT, [(1, ms("02T10:00")), (2, ms("02T11:00"))], ds="2026-06-02")
        store.land(
            "data.logged",
            {"user": "INTEGER", "user_amount_sum": "BIGINT", "other": "INTEGER"},
            [(1, 50, 0)],
            ds="2026-06-02",
        )
        part = group_by(events("data.events", selects=SELECTS), aggregations=[aggregation("amount", SUM)])
        document = join(
            left(DAILY),
            {"groupBy": part},
            bootstrapParts=[{"table": "data.logged", "keyColumns": ["user"], "query": {}}],
            derivations=[{"name": "*", "expression": "*"}, {"name": "double", "expression": "user_amount_sum * 2"}],
        )
        table = store.run(document, "2026-06-02", "2026-06-03")
        assert store.rows(table, "2026-06-02", "user", "user_amount_sum") == [(1, 50), (2, 8)]
        derived = f"{table}__derived"
        assert store.columns(derived, "2026-06-02") == ["user", "ts", "user_amount_sum", "double"]
        assert store.rows(derived, "2026-06-02", "user", "double") == [(1, 100), (2, 16)]
