"""Whatever the order of their steps: never two writers of a partition at once, and every run ends (C28)."""

from __future__ import annotations

import random

import pytest

from airflow_chronon.airflow.dags.plans import build_dag
from airflow_chronon.airflow.operators.modes import ChrononOperator
from airflow_chronon.core.calendar.instants import HOUR, TimeWindow
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import at, plan_of, staging_query
from tests.support.writing_world import WritingWorld

START = at("2026-06-01 00:00")


def work_task(interval: str, branch: str, slots: int) -> ChrononOperator:
    document = staging_query("t.s.x__1", schedule="@never", interval=interval)
    plan = plan_of(document, settings=Settings(max_active_runs=slots), branch=branch)
    task = build_dag(plan, path="x", doc="").get_task("backfill")
    assert isinstance(task, ChrononOperator)
    return task


TASKS = {
    (interval, branch, slots): work_task(interval, branch, slots)
    for interval, branch in (("1h", "main"), ("3h", "try/this"))
    for slots in (1, 2, 4)
}


def hours(start: int, length: int) -> TimeWindow:
    return TimeWindow(START + start * HOUR, START + (start + length) * HOUR)


def world_of(seed: int) -> WritingWorld:
    """Two branches with tables on two grids, runs of one partition and of ranges, jobs elsewhere, outages, tries that fail,
    DAGs that are paused or gone."""
    chance = random.Random(seed)
    hourly = TASKS["1h", "main", chance.choice((1, 2, 4))]
    coarse = TASKS["3h", "try/this", chance.choice((1, 2, 4))]
    slots = {task._plan.dag_id: task.max_active_tis_per_dag or 0 for task in (hourly, coarse)}
    world = WritingWorld(chance, slots, outages=chance.choice((0.0, 0.0, 0.05)))
    for number in range(chance.randint(2, 4)):
        window = hours(chance.randint(0, 3), chance.choice((1, 1, 2)))
        world.add(hourly, f"hourly-{number}", window, fails=seed % 2).is_elsewhere = chance.random() < 0.4
    for number in range(chance.randint(1, 3)):
        work = world.add(coarse, f"coarse-{number}", hours(chance.choice((0, 3)), 3), fails=chance.choice((0, 0, 1)))
        work.is_lost = chance.random() < 0.2
    return world


@pytest.mark.parametrize("first", range(0, 300, 75))
def test_of_two_branches_on_two_grids_one_writes_a_partition_at_a_time(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = 0
    for seed in range(first, first + 75):
        world = world_of(seed)
        world.install(monkeypatch)
        try:
            world.play()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert {work.run_id for work in world.works if not work.is_lost} <= set(world.written)
        at_once = max(at_once, world.most_at_once)
    assert at_once > 1  # of partitions that do not overlap, several are written at a time


def world_of_two(seed: int) -> WritingWorld:
    """Two branches that begin the same partition together."""
    chance = random.Random(seed)
    tasks = TASKS["1h", "main", 4], TASKS["3h", "try/this", 4]
    world = WritingWorld(chance, {task._plan.dag_id: 4 for task in tasks}, effort=30)
    world.add(tasks[0], "hourly", hours(0, 1))
    world.add(tasks[1], "coarse", hours(0, 3))
    return world


def test_of_two_that_begin_together_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(200):
        world = world_of_two(seed)
        world.install(monkeypatch)
        world.play()


def test_whoever_stands_still_while_it_draws_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # it has seen nobody, and will take the lowest number
    world = world_of_two(0)
    world.install(monkeypatch)
    slow, quick = world.works
    world.advance(slow, lambda: ("tasks", None, None) in world.fake.calls)
    world.advance(quick, lambda: quick.state == "deferred" or quick in world.writing)
    assert world.writing == []
    world.play()
    assert sorted(world.written) == ["coarse", "hourly"]


def test_a_writer_that_wakes_gets_its_slot_from_those_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Airflow counts the waiting ones among those of max_active_tis_per_dag, and one that wakes up has to get a slot again
    for seed in range(60):
        task = TASKS["1h", "main", (1, 2)[seed % 2]]
        world = WritingWorld(random.Random(seed), {task._plan.dag_id: task.max_active_tis_per_dag or 0})
        world.install(monkeypatch)
        for number in range(6):
            world.add(task, f"run-{number}", hours(0, 1))
        world.play()
