"""Join right parts bind row by row (C21). Literal tables, worked out by hand from the rule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.confs import Document, entities, events, group_by, join, labels_waited, plan_of, waits_of

HOURLY: dict[str, Any] = {"schedule": "0 * * * *"}
THREE_AT_ONE: dict[str, Any] = {"schedule": "0 1-22/3 * * *", "interval": "3h", "offset": "1h"}


def part(source: Document, **of: Any) -> Document:
    return group_by("t.g.part__1", sources=[source], windows=["1d"], **of)


def waits(label: str, part_: Document, *, left: Document | None = None, **of_join: Any) -> list[Document]:
    """What one partition of the join waits for besides its left."""
    plan = plan_of(join(left=left or events("data.left", "1h"), parts=[part_], **of_join), part_)
    return [wait for wait in waits_of(plan, label) if wait["table"] != "data.left"]


class TestSnapshotPartUnderEvents:
    @pytest.mark.parametrize(
        ("label", "labels", "lookback"),
        [
            # rows in [12:00, 13:00) take the snapshot that ends at 10:00: source [07:00, 10:00), window 1d behind it
            pytest.param(
                "2026-06-10-12-00", ["2026-06-10-07-00"], ("2026-06-09-07-00", "2026-06-10-04-00"), id="the 12:07 row"
            ),
            # floor(13:00) = 13:00 and floor(13:59:59.999) = 13:00: the snapshot that ends at 13:00
            pytest.param(
                "2026-06-10-13-00",
                ["2026-06-10-10-00"],
                ("2026-06-09-10-00", "2026-06-10-07-00"),
                id="from a boundary on",
            ),
            pytest.param(
                "2026-06-10-15-00",
                ["2026-06-10-10-00"],
                ("2026-06-09-10-00", "2026-06-10-07-00"),
                id="up to a boundary",
            ),
            pytest.param(
                "2026-06-10-00-00", ["2026-06-09-19-00"], ("2026-06-08-19-00", "2026-06-09-16-00"), id="over midnight"
            ),
        ],
    )
    def test_a_three_hour_part_under_an_hourly_join(
        self, label: str, labels: list[str], lookback: tuple[str, str]
    ) -> None:
        (wait,) = waits(label, part(events(interval="3h", offset="1h"), accuracy=1, **THREE_AT_ONE), **HOURLY)
        assert wait["labels"] == labels
        assert wait["lookback"] == {"from": lookback[0], "to": lookback[1]}

    @pytest.mark.parametrize(
        ("label", "day"),
        [
            pytest.param("2026-06-10-00-00", "2026-06-09", id="just after midnight"),
            pytest.param("2026-06-10-12-00", "2026-06-09", id="at noon"),
            pytest.param("2026-06-10-21-00", "2026-06-09", id="up to midnight: a row at 23:59 takes yesterday's"),
        ],
    )
    def test_a_daily_part_under_a_three_hour_join_is_bounded_staleness(self, label: str, day: str) -> None:
        (wait,) = waits(
            label, part(events(), accuracy=1, schedule="@daily"), left=events("data.left", "3h"), schedule="0 */3 * * *"
        )
        assert wait["labels"] == [day]

    def test_a_coarser_join_needs_every_snapshot_that_its_rows_take(self) -> None:
        # a day of rows over 3h@1h snapshots: those that end from 22:00 the day before to 22:00
        (wait,) = waits(
            "2026-06-10", part(events(interval="3h", offset="1h"), accuracy=1, **THREE_AT_ONE), left=events("data.left")
        )
        ends = ["2026-06-09-19-00", "2026-06-09-22-00", *(f"2026-06-10-{hour:02d}-00" for hour in range(1, 20, 3))]
        assert wait["labels"] == ends

    def test_a_lag_moves_what_the_snapshot_is_made_of(self) -> None:
        (wait,) = waits("2026-06-10-12-00", part(events(interval="1h", lag="2h"), accuracy=1, **THREE_AT_ONE), **HOURLY)
        assert wait["labels"] == [f"2026-06-10-{hour:02d}-00" for hour in (5, 6, 7)]

    def test_snapshot_entities_need_the_snapshot_itself(self) -> None:
        (wait,) = waits("2026-06-10-12-00", part(entities(mutations="data.m"), accuracy=1, schedule="@daily"), **HOURLY)
        assert (wait["table"], wait["labels"]) == ("data.accounts", ["2026-06-09"]) and "lookback" not in wait

    def test_the_trees_own_part_decides_the_grid_not_the_copy_in_the_join(self) -> None:
        copy = part(events(), accuracy=1, schedule="@daily")
        current = part(events(interval="3h", offset="1h"), accuracy=1, **THREE_AT_ONE)
        plan = plan_of(join(left=events("data.left", "1h"), parts=[copy], **HOURLY), current)
        # the snapshot [07:00, 10:00) of the current part, whose source in the copy is daily
        assert labels_waited(plan, "2026-06-10-12-00")["data.events"] == ["2026-06-10"]


class TestPartUnderEntities:
    @pytest.mark.parametrize("accuracy", [0, 1])
    def test_a_row_stands_at_the_end_of_its_partition(self, accuracy: int) -> None:
        (wait,) = waits("2026-06-10", part(events(), accuracy=accuracy, schedule="@daily"), left=entities("data.left"))
        assert wait["labels"] == ["2026-06-10"]

    def test_the_snapshot_is_the_one_that_ends_at_or_before_it(self) -> None:
        (wait,) = waits(
            "2026-06-10", part(entities(), schedule="0 2 * * *", offset="2h", interval="1d"), left=entities("data.left")
        )
        # the part's day [02:00, 02:00) that ends on June 10th at 02:00 overlaps two days of its source
        assert wait["labels"] == ["2026-06-09", "2026-06-10"]

    def test_mutations_are_not_awaited(self) -> None:
        found = waits(
            "2026-06-10", part(entities(mutations="data.m"), accuracy=0, schedule="@daily"), left=entities("data.left")
        )
        assert [wait["table"] for wait in found] == ["data.accounts"]


class TestTemporalEventsPart:
    @pytest.mark.parametrize(
        ("interval", "offset", "lag", "label", "labels"),
        [
            pytest.param("1h", None, None, "2026-06-10-12-00", ["2026-06-10-12-00"], id="the same hour"),
            pytest.param(
                "30m", None, None, "2026-06-10-12-00", ["2026-06-10-12-00", "2026-06-10-12-30"], id="both halves"
            ),
            pytest.param("1h", None, "2h", "2026-06-10-12-00", ["2026-06-10-10-00"], id="a lag"),
            pytest.param(
                None,
                None,
                None,
                "2026-06-10-12-00",
                ["2026-06-09"],
                id="a day has not closed at noon: the newest that has",
            ),
            pytest.param(None, None, None, "2026-06-10-23-00", ["2026-06-10"], id="it closes at midnight"),
            pytest.param("3h", "1h", None, "2026-06-10-12-00", ["2026-06-10-10-00"], id="it closes with the window"),
            pytest.param(
                "3h", "1h", None, "2026-06-10-13-00", ["2026-06-10-10-00"], id="none closes inside: the newest closed"
            ),
        ],
    )
    def test_source_partitions_are_needed_once_closed(
        self, interval: str | None, offset: str | None, lag: str | None, label: str, labels: list[str]
    ) -> None:
        (wait,) = waits(label, part(events(interval=interval, offset=offset, lag=lag), accuracy=0), **HOURLY)
        assert wait["labels"] == labels

    def test_past_the_end_partition_the_last_valid_one_is_awaited(self) -> None:  # C17
        (wait,) = waits(
            "2026-06-10-12-00", part(events(interval="1h", endPartition="2026-06-10-05-00"), accuracy=0), **HOURLY
        )
        assert wait["labels"] == ["2026-06-10-05-00"]

    @pytest.mark.parametrize(
        ("source", "labels"),
        [
            pytest.param(
                events(interval="1h", topic="kafka://t"), ["2026-06-10-12-00"], id="a topic makes it temporal"
            ),
            pytest.param(
                events(interval="1h"),
                [f"2026-06-09-{hour:02d}-00" for hour in range(24)],
                id="without one it is a snapshot",
            ),
        ],
    )
    def test_accuracy_absent_follows_the_topic(self, source: Document, labels: list[str]) -> None:
        (wait,) = waits("2026-06-10-12-00", part(source, schedule="@daily"), **HOURLY)
        assert wait["labels"] == labels

    def test_a_join_source_is_temporal_when_its_left_has_a_topic(self) -> None:
        for topic, labels in ((None, ["2026-06-09"]), ("kafka://t", ["2026-06-10"])):
            inner = join("t.j.inner__1", left=events("data.inner", topic=topic))
            outer = part({"joinSource": {"join": inner}}, schedule="@daily")
            plan = plan_of(join(left=events("data.left", "1h"), parts=[outer], **HOURLY), inner)
            assert labels_waited(plan, "2026-06-10-23-00")["ns.t_j_inner__1"] == labels


class TestTemporalEntitiesPart:
    def test_the_snapshots_before_the_rows_and_the_mutations_up_to_them(self) -> None:
        found = waits(
            "2026-06-10", part(entities(mutations="data.m"), accuracy=0, schedule="@daily"), left=events("data.left")
        )
        assert {wait["table"]: wait["labels"] for wait in found} == {
            "data.accounts": ["2026-06-09"],
            "data.m": ["2026-06-10"],
        }

    def test_the_snapshot_tables_own_grid_counts(self) -> None:
        source = entities(interval="3h", offset="1h", mutations="data.m")
        found = waits("2026-06-10-12-00", part(source, accuracy=0, schedule="@daily"), **HOURLY)
        assert {wait["table"]: wait["labels"] for wait in found} == {
            "data.accounts": ["2026-06-10-07-00"],
            "data.m": ["2026-06-10-10-00"],
        }


class TestBootstrapParts:
    @pytest.mark.parametrize(
        ("query", "labels"),
        [
            pytest.param(None, ["2026-06-09"], id="daily when it says nothing: the newest closed"),
            pytest.param({"partitionInterval": {"length": 1, "timeUnit": 0}}, ["2026-06-10-12-00"], id="its own grid"),
        ],
    )
    def test_they_bind_like_a_temporal_events_part(self, query: Document | None, labels: list[str]) -> None:
        bootstrap = {"table": "data.boot"} | ({"query": query} if query else {})
        plan = plan_of(join(left=events("data.left", "1h"), bootstraps=[bootstrap], **HOURLY))
        assert labels_waited(plan, "2026-06-10-12-00")["data.boot"] == labels


def test_the_left_is_read_at_its_lag_without_lookback() -> None:  # C16
    plan = plan_of(join(left=events("data.left", "1h", lag="1h", startPartition="2023-01-01"), **HOURLY))
    (wait,) = waits_of(plan, "2026-06-10-12-00")
    assert wait["labels"] == ["2026-06-10-11-00"] and "lookback" not in wait
