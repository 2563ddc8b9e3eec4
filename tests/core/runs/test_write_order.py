"""Whose turn it is to write (C28)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.runs.write_order import (
    DRAWING,
    Ticket,
    Writer,
    lacking_a_slot,
    next_number,
    passed_by,
    writers_before,
)


def writer(run_id: str, number: int, start: int = 0, length: int = 10, **of: object) -> Writer:
    state, written, dag_id = of.get("state", "running"), of.get("written", "ns.t"), of.get("dag_id", "a")
    ticket = Ticket(str(written), TimeWindow(start, start + length), 1, number, bool(of.get("is_first")))
    return Writer((str(dag_id), run_id, "backfill"), ticket, str(state))


writers = st.builds(
    lambda name, number, first, length, dag_id: writer(f"run{name}", number, first, length, dag_id=dag_id),
    st.integers(0, 30),
    st.integers(1, 4),
    st.integers(0, 6),
    st.integers(1, 4),
    st.sampled_from("ab"),
)


def test_a_later_writer_of_the_same_partition_waits_and_the_earlier_does_not() -> None:
    early, late = writer("b", 1), writer("a", 2)
    assert writers_before(late, [early]) == (early,)
    assert writers_before(early, [late]) == ()


def test_writers_of_neighbouring_partitions_do_not_wait_for_each_other() -> None:  # half-open windows touch
    assert writers_before(writer("a", 2, 10), [writer("b", 1, 0)]) == ()


def test_writers_of_other_tables_do_not_wait_for_each_other() -> None:
    assert writers_before(writer("a", 2), [writer("b", 1, written="ns.other")]) == ()


def test_a_range_waits_for_a_run_of_one_of_its_partitions() -> None:
    one = writer("one", 1, 20)
    assert writers_before(writer("range", 2, 0, 100), [one]) == (one,)


@pytest.mark.parametrize("other", [{"run_id": "b"}, {"run_id": "a", "dag_id": "b"}], ids=["run", "DAG"])
def test_of_two_that_drew_the_same_number_one_goes_first(other: dict[str, str]) -> None:
    left, right = writer("a", 1), writer(number=1, **other)  # type: ignore[arg-type]
    assert writers_before(left, [right]) == ()
    assert writers_before(right, [left]) == (left,)


def test_whoever_just_draws_is_waited_for_since_his_number_may_be_lower() -> None:
    drawing = writer("b", DRAWING)
    assert writers_before(writer("a", 1), [drawing]) == (drawing,)


def test_whoever_gave_up_drawing_is_not_waited_for() -> (
    None
):  # Airflow did not answer him; two such would wait for ever
    assert writers_before(writer("a", 1), [writer("b", DRAWING, state="deferred")]) == ()


def test_a_number_is_higher_than_all_that_are_there() -> None:
    assert next_number([]) == 1
    assert next_number([writer("a", 3), writer("b", 7), writer("c", DRAWING)]) == 8


@pytest.mark.parametrize("state", ["scheduled", "up_for_reschedule"])
def test_whoever_only_waits_and_has_no_slot_is_passed_and_knows_it(state: str) -> None:
    # its DAG may be paused or gone
    waiting, me = writer("a", 1, state=state), writer("b", 2)
    assert writers_before(me, [waiting]) == () and passed_by(me, [waiting])
    first = replace(me, ticket=replace(me.ticket, is_first=True))
    assert writers_before(replace(waiting, state="running"), [first]) == (first,)


@pytest.mark.parametrize("state", ["scheduled", "up_for_reschedule", "deferred"])
def test_whoever_is_at_work_is_waited_for_slot_or_not(state: str) -> None:  # its job may be elsewhere
    working = writer("b", 2, state=state, is_first=True)
    assert writers_before(writer("a", 1), [working]) == (working,)
    assert not passed_by(writer("a", 1), [working])


def test_those_at_work_that_wait_for_a_slot_again_are_told_from_those_that_have_one() -> None:
    found = [
        writer("a", 1, state="scheduled", is_first=True),
        writer("b", 2, state="queued", is_first=True),
        writer("c", 3, state="scheduled"),
    ]
    assert lacking_a_slot(found) == {("a", "a", "backfill")}


def test_a_ticket_is_kept_as_json() -> None:
    ticket = Ticket("ns.t", TimeWindow(1, 5), 3, 7, True, "print")
    assert Ticket.from_json(ticket.to_json()) == ticket
    assert Ticket.from_json({**ticket.to_json(), "added_by_a_later_version": 1}) == ticket


def test_the_ticket_of_an_earlier_try_is_not_of_the_same_work() -> None:
    ticket = Ticket("ns.t", TimeWindow(1, 5), 3, 7)
    assert ticket.is_of_same_work(replace(ticket, number=DRAWING))
    assert not ticket.is_of_same_work(replace(ticket, attempt=4))


@given(st.lists(writers, unique_by=lambda each: each.task, max_size=8))
def test_whoever_goes_never_overlaps_another_who_goes_and_somebody_always_goes(found: list[Writer]) -> None:
    going = [each for each in found if not writers_before(each, found)]
    assert bool(going) == bool(found)
    assert not [(one, two) for one in going for two in going if one != two and one.ticket.overlaps(two.ticket)]


@given(st.lists(writers, unique_by=lambda each: each.task, min_size=1, max_size=8))
def test_when_those_who_go_are_done_everyone_gets_a_turn(found: list[Writer]) -> None:
    left = list(found)
    for _ in found:
        left = [each for each in left if writers_before(each, left)]
    assert left == []
