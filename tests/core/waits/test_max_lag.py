"""How far behind a table may be (C17 with ``max_lag``): against a reading that counts partition by partition, and case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.describe.format import format_wait
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec, partition_format
from airflow_chronon.core.partitions.listing import TableListing
from airflow_chronon.core.waits.dependencies import Lookback, TableDependency, Wait, merged
from airflow_chronon.core.waits.max_lag import Lagging, MaxLag, lagging_from_json
from airflow_chronon.core.waits.outlook import Forecast, Outlook
from airflow_chronon.core.waits.poll import Observation, Query, judge
from airflow_chronon.core.waits.readiness import labels_ready
from tests.support.confs import at

HOURLY = PartitionSpec(PartitionGrid(HOUR), partition_format("yyyy-MM-dd-HH-mm"))
NOON = at("2026-06-01 12:00")
AFTER = MaxLag(2, HOUR)


def label(hour: int) -> PartitionKey:
    """Of the partition that starts so many hours after midnight."""
    return HOURLY.label(at("2026-06-01") + hour * HOUR)


def wait_of(*, needs: int = 1, reach: int = 5, lag: MaxLag | None = AFTER, **more: object) -> Wait:
    """What a run that ends at noon waits for: its last hours, and as many again as its range reaches back."""
    dependency = TableDependency("raw.orders", "ds", HOURLY, reach=reach * HOUR, max_lag=lag, **more)  # type: ignore[arg-type]
    (found,) = dependency.waits(NOON - needs * HOUR, NOON, grid=HOURLY.grid)
    return found


def listing(*hours: int) -> TableListing:
    return TableListing.of("ds", [label(hour) for hour in hours])


class TestAWaitWithMaxLag:
    def test_goes_on_after_its_time_with_the_newest_there(self) -> None:
        wait, there = wait_of(), listing(8, 9, 10)
        before = labels_ready(wait, there, waited=HOUR - 1)
        assert not before.satisfied and before.lagging == ()
        assert before.reason.endswith("; after 1h of waiting the run goes on with ds=2026-06-01-10-00 (max_lag)")
        after = labels_ready(wait, there, waited=HOUR)
        assert after.satisfied
        assert after.lagging == (Lagging("raw.orders", "ds", label(10), (label(11),)),)
        assert "raw.orders was read up to ds=2026-06-01-10-00, 1 partition behind (max_lag)" in after.reason

    def test_is_over_at_once_when_everything_is_there(self) -> None:
        found = labels_ready(wait_of(), listing(8, 9, 10, 11))
        assert found.satisfied and found.lagging == () and found.reason == ""

    def test_goes_on_waiting_while_the_newest_is_further_behind(self) -> None:
        assert labels_ready(wait_of(), listing(8, 9), waited=9 * HOUR).satisfied
        assert not labels_ready(wait_of(), listing(7, 8), waited=9 * HOUR).satisfied

    def test_a_table_without_partitions_is_waited_for(self) -> None:
        assert not labels_ready(wait_of(), listing(), waited=9 * HOUR).satisfied

    def test_a_hole_below_the_newest_is_no_lag(self) -> None:  # C17
        assert not labels_ready(wait_of(needs=3), listing(8, 9, 11), waited=9 * HOUR).satisfied

    def test_what_the_run_does_not_read_is_no_older_input(self) -> None:
        wait = wait_of(reach=1, lag=MaxLag(5, HOUR))  # it reads from 10:00
        assert labels_ready(wait, listing(9, 10), waited=HOUR).satisfied
        assert not labels_ready(wait, listing(8, 9), waited=HOUR).satisfied

    @pytest.mark.parametrize("policy", [Lookback.REQUIRE, Lookback.WARN])
    def test_a_hole_of_the_lookback_below_the_newest_counts_as_ever(self, policy: Lookback) -> None:  # C17
        found = labels_ready(wait_of(policy=policy), listing(7, 9, 10), waited=HOUR)
        assert found.satisfied is (policy is Lookback.WARN)
        assert "has holes: ds=2026-06-01-08-00" in found.reason
        assert bool(found.lagging) is found.satisfied

    def test_what_is_missing_between_the_newest_and_the_needed_one_is_no_hole(self) -> None:
        found = labels_ready(wait_of(policy=Lookback.REQUIRE), listing(7, 8, 9), waited=HOUR)
        assert found.satisfied and found.lagging[0].lacks == (label(10), label(11))

    def test_goes_on_where_nobody_will_write_the_newest(self) -> None:  # C30
        start = NOON - HOUR
        never: dict[str, Forecast] = {label(11): Forecast(Outlook.NEVER, "staging_query.t.orders__1", start, label(11))}
        assert labels_ready(wait_of(), listing(9, 10), never).hopeless is None
        assert labels_ready(wait_of(), listing(9, 10), never, waited=HOUR).satisfied
        assert labels_ready(wait_of(), listing(5), never, waited=HOUR).hopeless is not None

    def test_says_so_where_waits_are_told(self) -> None:
        assert format_wait(wait_of()).endswith(", after 1h with one that is at most 2 partitions behind (max_lag)")

    def test_that_is_one_of_several_of_a_table_holds_for_none(self) -> None:
        assert merged([wait_of(), wait_of(lag=None)])[0].max_lag is None
        assert merged([wait_of(), wait_of(reach=3)])[0].oldest == NOON - 4 * HOUR
        assert merged([wait_of(), wait_of(lag=MaxLag(1, 2 * HOUR))])[0].max_lag == MaxLag(1, 2 * HOUR)

    def test_is_judged_by_how_long_it_has_gone_on(self) -> None:
        observation = Observation({Query("labels"): listing(9, 10)})
        assert not judge([wait_of()], observation).satisfied
        found = judge([wait_of()], observation, waited=HOUR)
        assert found.satisfied and [each.newest for each in found.lagging] == [label(10)]


def may_go_on(needed: set[int], there: set[int], *, reads_from: int, most: int) -> int | None:
    """Brute force: the newest hour that the run may do with; None where it has to wait, or lacks nothing.

    By counting: a run may do with hour ``h`` when it is there, everything after it is missing up to the last needed one, what
    is needed up to it is there, and no more than ``most`` lie between.
    """
    last = max(needed)
    for hour in range(reads_from, last):
        after = range(hour + 1, last + 1)
        if hour in there and not there & set(after) and {each for each in needed if each <= hour} <= there:
            return hour if len(after) <= most else None
    return None


@given(
    there=st.sets(st.integers(0, 11)),
    needs=st.integers(1, 6),
    reach=st.integers(1, 8),
    most=st.integers(1, 8),
    waited=st.sampled_from([0, HOUR - 1, HOUR, 9 * HOUR]),
    policy=st.sampled_from(Lookback),
)
@settings(max_examples=3000, deadline=None)
def test_agrees_with_counting(
    there: set[int], needs: int, reach: int, most: int, waited: int, policy: Lookback
) -> None:
    wait = wait_of(needs=needs, reach=reach, lag=MaxLag(most, HOUR), policy=policy)
    needed = set(range(12 - needs, 12))
    assert {HOURLY.format.decode(each) for each in wait.labels} == {at("2026-06-01") + hour * HOUR for hour in needed}
    reads_from = 12 - needs - reach
    found = labels_ready(wait, listing(*there), waited=waited)
    strict = labels_ready(replace(wait, max_lag=None), listing(*there), waited=waited)
    newest = None if needed <= there else may_go_on(needed, there, reads_from=reads_from, most=most)
    if newest is None or waited < HOUR:
        assert (found.satisfied, found.lagging) == (strict.satisfied, ())
        return
    # the lookback alone decides then, as if what is missing were there
    filled = labels_ready(replace(wait, max_lag=None), listing(*there, *range(newest + 1, 12)))
    assert found.satisfied is filled.satisfied
    if found.satisfied:
        (lag,) = found.lagging
        assert (lag.newest, lag.lacks) == (label(newest), tuple(map(label, range(newest + 1, 12))))
        assert not lag.landed_since({label(hour) for hour in there})
        assert lag.landed_since({*lag.lacks[:1]}) == lag.lacks[:1]


@given(st.builds(Lagging, *[st.text(max_size=9)] * 3, st.lists(st.text(max_size=9)).map(tuple)))  # type: ignore[arg-type]
def test_what_a_run_went_without_comes_back_from_its_json(found: Lagging) -> None:
    assert lagging_from_json([found.to_json()]) == (found,)


@pytest.mark.parametrize("damaged", [None, 7, "", "{", "[7]", [{}], [{"table": 1}], {"table": "t"}, [["a"]]])
def test_a_damaged_record_of_it_is_none(damaged: object) -> None:  # S9
    assert lagging_from_json(damaged) == ()
