"""When a partition should land, beside a reading of random chains that asks every partition by itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, TimeWindow
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.states import KnownRun, PartitionRow, State
from airflow_chronon.core.runs.why import PartitionFact, TableConf, TaskFact, Unmet, explain_partition
from airflow_chronon.core.waits.dependencies import Wait
from tests.support.confs import at, dependency, judge, staging_query

BASE = at("2026-06-01")
SOURCE = "vendor.e"
INTERVALS = {"15m": 15 * MINUTE, "1h": HOUR, "1d": DAY}


@dataclass
class World:
    """Confs that read each other, what became of each partition, and how long work takes."""

    now: int
    plans: list[ConfPlan] = field(default_factory=list)
    delays: list[int] = field(default_factory=list)  #: from a partition's end to its fire, by conf
    reads: list[list[int]] = field(default_factory=list)  #: by place of the conf; none: the source alone
    usual: list[int | None] = field(default_factory=list)
    is_halted: list[bool] = field(default_factory=list)
    source_lasts: int = 0  #: what of the source ends later has not landed
    states: dict[tuple[int, int], tuple[State, int]] = field(default_factory=dict)  #: and since when it works

    def place(self, plan: Plan) -> int:
        return next(place for place, each in enumerate(self.plans) if each.key == plan.key)

    def state(self, place: int, start: int) -> tuple[State, int]:
        """The state of a partition; one that runs works since the instant, and waits for its inputs when that is 0."""
        if start + self.plans[place].spec.grid.interval > self.now:
            return State.OPEN, 0
        return self.states.get((place, start), (State.DUE, 0))

    # what ``why`` asks

    def writers(self, reader: ConfPlan, table: str) -> Sequence[TableConf]:
        return [TableConf(plan.dag_id, plan) for plan in self.plans if plan.table == table]

    def partitions(self, plan: Plan, table: str, starts: Sequence[int]) -> Sequence[PartitionFact]:
        place, found = self.place(plan), []
        for start in starts:
            state, since = self.state(place, start)
            run_id = f"{place} {start} {since}" if state in (State.RUNNING, State.QUEUED, State.FAILED) else None
            window = TimeWindow(start, start + self.plans[place].spec.grid.interval)
            run = None if run_id is None else KnownRun(run_id, state.value, True, window)
            label = plan.need_schedule().label(start)
            found.append(PartitionFact(PartitionRow(label, start, state, run_id=run_id), run))
        return found

    def unmet(self, reader: ConfPlan, wait: Wait) -> Unmet | None:
        assert wait.spec is not None
        missing = []
        for label in wait.labels:
            start = wait.spec.format.decode(label)
            if wait.table == SOURCE:
                is_there = start + wait.spec.grid.interval <= self.source_lasts
            else:
                (writer,) = self.writers(reader, wait.table)
                plan = writer.verdict.plan
                assert plan is not None
                is_there = self.state(self.place(plan), start)[0] is State.LANDED
            if not is_there:
                missing.append(label)
        return Unmet(tuple(missing)) if missing else None

    def halted(self, plan: Plan) -> str:
        return "paused" if self.is_halted[self.place(plan)] else ""

    def tasks(self, plan: Plan, run_id: str) -> Sequence[TaskFact]:
        place, _, since = map(int, run_id.split())
        if since:
            return [TaskFact("backfill", "running", 1, since)]
        tables = [SOURCE] if not self.reads[place] else [self.plans[each].table for each in self.reads[place]]
        return [TaskFact(f"wait.{table}", "deferred", 1) for table in tables]

    def others_at_work(self, plan: Plan, task_id: str, run_id: str) -> Sequence[str]:
        return ()

    def active_runs(self, plan: Plan) -> Sequence[str]:
        return ()

    def log(self, plan: Plan, run_id: str, task: TaskFact) -> tuple[str, ...]:
        return ()

    def usual_seconds(self, plan: Plan, task_id: str) -> int | None:
        return self.usual[self.place(plan)]


def random_world(seed: int) -> World:
    rng = random.Random(seed)
    now = BASE + DAY + rng.randrange(0, DAY)
    world = World(now, source_lasts=rng.choice([now + 2 * DAY, now + 2 * DAY, BASE + rng.randrange(0, 2 * DAY)]))
    documents, sizes = list[dict[str, object]](), list[str]()
    for place in range(rng.randrange(1, 6)):
        finer = [each for each in range(place) if rng.random() < 0.7][:2]
        size = max([rng.choice(list(INTERVALS)), *(sizes[each] for each in finer)], key=lambda size: INTERVALS[size])
        minute = rng.randrange(0, 15)
        hour = rng.randrange(0, 5)
        cron = {"15m": f"{minute}-59/15 * * * *", "1h": f"{minute} * * * *", "1d": f"{minute} {hour} * * *"}[size]
        world.delays.append(minute * MINUTE + (hour * HOUR if size == "1d" else 0))
        world.reads.append(finer)
        world.usual.append(None if rng.random() < 0.05 else rng.randrange(1, 3 * HOUR))
        world.is_halted.append(rng.random() < 0.05)
        sizes.append(size)
        tables = [(f"ns.t_c{each}__1", sizes[each]) for each in finer] or [(SOURCE, size)]
        named = [
            dependency(table, of, partitionFormat="yyyy-MM-dd-HH-mm" if of != "1d" else None) for table, of in tables
        ]
        documents.append(staging_query(f"t.c{place}__1", schedule=cron, interval=size, dependencies=named))
    verdicts = judge(*documents)
    for place in range(len(documents)):
        plan = verdicts[f"staging_query/t.c{place}__1"]
        assert isinstance(plan, ConfPlan), plan
        world.plans.append(plan)
        step = INTERVALS[sizes[place]]
        for start in range(BASE, now - step + 1, step):
            if start + step + world.delays[place] <= now:
                state = rng.choice([State.LANDED] * 5 + [State.RUNNING, State.RUNNING, State.DUE, State.QUEUED])
                state = State.FAILED if rng.random() < 0.003 else state
                since = now - rng.randrange(1, 4 * HOUR) if state is State.RUNNING and rng.random() < 0.5 else 0
                world.states[place, start] = state, since
    return world


def brute_force(world: World, place: int, start: int) -> int | None:
    """When a partition should land; None when nobody knows, or it never will by itself."""
    step, usual, now = world.plans[place].spec.grid.interval, world.usual[place], world.now
    (state, since), halted = world.state(place, start), world.is_halted[place]
    if state is State.LANDED:
        return now
    if state is State.FAILED or usual is None or (halted and state is not State.RUNNING):
        return None
    if since:
        return max(now, since + usual)
    if state is State.QUEUED:
        return now + usual
    ends = [now, start + step + world.delays[place]] if state in (State.OPEN, State.DUE) else [now]
    if not world.reads[place] and start + step > world.source_lasts:
        return None
    for each in world.reads[place]:
        finer = world.plans[each].spec.grid.interval
        for at_start in range(start, start + step, finer):
            if world.state(each, at_start)[0] is not State.LANDED:
                expected = brute_force(world, each, at_start)
                if expected is None:
                    return None
                ends.append(expected)
    return max(ends) + usual


def asked(world: World, rng: random.Random) -> tuple[int, int]:
    """The last conf, and one of its partitions: of two days around now."""
    place = len(world.plans) - 1
    step = world.plans[place].spec.grid.interval
    return place, (world.now + rng.randrange(-DAY, DAY // 2)) // step * step


def differs(seed: int) -> tuple[int | None, int | None] | None:
    world = random_world(seed)
    place, start = asked(world, random.Random(seed + 1))
    found = explain_partition(world.plans[place], start, world).expected
    expected = brute_force(world, place, start)
    return None if found == expected else (found, expected)


def test_estimates_are_those_of_a_reading_of_every_partition() -> None:
    assert [seed for seed in range(300) if differs(seed)] == []


def test_random_chains_have_estimates_and_none() -> None:
    cases = [(random_world(seed), random.Random(seed + 1)) for seed in range(300)]
    found = [(world.now, brute_force(world, *asked(world, rng))) for world, rng in cases]
    assert sum(each is None for _, each in found) > 30
    assert sum(each is not None and each > now for now, each in found) > 60


@pytest.mark.soak
def test_estimates_of_ten_thousand_chains_differ_nowhere() -> None:
    assert [seed for seed in range(10_000) if differs(seed)] == []
