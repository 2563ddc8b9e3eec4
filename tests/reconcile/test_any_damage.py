"""Whatever a power cut, a full disk or a hand has left of one record: its DAG goes on or is retired, and so do all others (S9)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_chronon.core.plan.actions import Report, SetAside, Severity
from tests.support.world import ID, ONE, THREE, TWO, World, deployed, job

PATH = f"dags-folder/main/records/{ID}.json"
OTHERS = {"staging_query.t.s.two__1", "staging_query.t.s.three__1"}


def retiring() -> World:
    """The first conf is gone and its DAG is being retired: its record is all that is left of it."""
    world = deployed(ONE, TWO, THREE, job())
    assert world.fire(ID) is not None
    world.deploy(TWO, THREE, job())
    world.parse()
    world.reconcile()
    assert world.retiring() == {ID}
    return world


def test_every_beginning_of_a_record_is_damaged_and_none_is_taken_for_the_whole() -> None:
    world = retiring()
    whole = world.files.contents[PATH]
    for length in range(len(whole) - 1):  # all but its last line end
        world.files.contents[PATH] = whole[:length]
        records = world.state().read_records()
        assert set(records.damaged) == {ID} and set(records.found) > OTHERS, length


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("is_gone", [False, True], ids=["present", "gone"])
def test_it_is_named_once_and_set_aside(part: float, is_gone: bool) -> None:
    world = retiring() if is_gone else deployed(ONE, TWO, THREE, job())
    whole = world.files.contents[PATH]
    left = world.files.contents[PATH] = whole[: int(len(whole) * part)]
    done = world.reconcile()
    named = [each for each in done.plan.actions if isinstance(each, Report) and each.severity is Severity.ERROR]
    assert [each.conf for each in named] == [ID] and "is damaged" in named[0].fault.message
    assert SetAside(ID) in done.outcome.done and not done.outcome.failed
    assert world.files.contents[f"dags-folder/main/damaged/{ID}.json"] == left
    world.converge()
    assert world.reconcile().is_good
    assert set(world.records()) == OTHERS | {"job.etl.hourly"} | (set() if is_gone else {ID})
    assert (ID in world.live()) is not is_gone


VALUES: tuple[Any, ...] = (None, True, -1, 10**30, 1.5, "x", [], {}, [[]], {"x": 1})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand in JSON, down to its leaves; of a conf's own document the top is enough."""
    if path:
        yield path
    if path[-1:] in (("document",), ("settings",)):
        return
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from places(each, (*path, number))


@pytest.mark.parametrize("is_gone", [False, True], ids=["present", "gone"])
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_any_value_of_another_type_costs_no_other_dag_and_is_over_in_the_end(value: Any, is_gone: bool) -> None:
    calm = retiring() if is_gone else deployed(ONE, TWO, THREE, job())
    whole = json.loads(calm.files.contents[PATH])
    for path in places(whole):
        world = copy.deepcopy(calm)
        document = copy.deepcopy(whole)
        at = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        world.files.contents[PATH] = json.dumps(document).encode()
        first = world.reconcile()
        assert {each.conf for each in first.plan.actions if isinstance(each, Report)} <= {ID}, path
        assert all(each.conf == ID for _, each in first.outcome.failed), path
        world.converge()
        assert world.reconcile().is_good, path
        assert set(world.records()) - {ID} == OTHERS | {"job.etl.hourly"}, path
        assert (ID in world.live()) is not is_gone, path
