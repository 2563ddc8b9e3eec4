"""Whose turn it is to write (C28)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.runs.write_order import Writer, writers_before

writers = st.builds(
    lambda name, start, first, length: Writer(f"run{name}", float(start), TimeWindow(first, first + length)),
    st.integers(0, 30),
    st.integers(0, 3),
    st.integers(0, 6),
    st.integers(1, 4),
)


def test_a_later_writer_of_the_same_partition_waits_and_the_earlier_does_not() -> None:
    early = Writer("b", 1.0, TimeWindow(0, 10))
    late = Writer("a", 2.0, TimeWindow(0, 10))
    assert writers_before(late, [early]) == (early,)
    assert writers_before(early, [late]) == ()


def test_writers_of_neighbouring_partitions_do_not_wait_for_each_other() -> None:  # half-open windows touch
    assert writers_before(Writer("a", 2.0, TimeWindow(10, 20)), [Writer("b", 1.0, TimeWindow(0, 10))]) == ()


def test_a_range_waits_for_a_run_of_one_of_its_partitions() -> None:
    one = Writer("one", 1.0, TimeWindow(20, 30))
    assert writers_before(Writer("range", 2.0, TimeWindow(0, 100)), [one]) == (one,)


def test_of_two_that_start_in_the_same_instant_one_goes_first() -> None:
    left, right = Writer("a", 1.0, TimeWindow(0, 10)), Writer("b", 1.0, TimeWindow(0, 10))
    assert writers_before(left, [right]) == ()
    assert writers_before(right, [left]) == (left,)


@given(st.lists(writers, unique_by=lambda writer: writer.run_id, max_size=8))
def test_whoever_goes_never_overlaps_another_who_goes_and_somebody_always_goes(found: list[Writer]) -> None:
    going = [writer for writer in found if not writers_before(writer, found)]
    assert bool(going) == bool(found)
    assert not [(one, two) for one in going for two in going if one.run_id < two.run_id and one.overlaps(two)]


@given(st.lists(writers, unique_by=lambda writer: writer.run_id, min_size=1, max_size=8))
def test_when_those_who_go_are_done_everyone_gets_a_turn(found: list[Writer]) -> None:
    left = list(found)
    for _ in found:
        left = [writer for writer in left if writers_before(writer, left)]
    assert left == []


def test_a_retry_goes_to_the_end_of_the_line() -> None:
    first, second = Writer("a", 1.0, TimeWindow(0, 10)), Writer("b", 2.0, TimeWindow(0, 10))
    assert writers_before(replace(first, start=3.0), [second]) == (second,)
