"""What reads a partition that is replayed, and what its runs hold for (C15, C16, C27)."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR
from airflow_chronon.core.confs.plan import Plan, good_plans
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.backfill import Replay
from airflow_chronon.core.runs.downstream import with_downstream
from airflow_chronon.core.runs.replay_order import MOST_RANGES, REPLAY, dags_held_for, order_of, read_order
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.settings.model import Settings, Unscheduled
from airflow_chronon.core.waits.outlook import TableWriter
from airflow_chronon.errors import ChrononError
from tests.support.confs import Document, at, dependency, events, group_by, judge, staging_query

NOW = at("2026-06-04 12:30")
BEGUN = at("2026-06-01")  #: every table begins here


def hourly(name: str, *reads: Document, interval: str = "1h", schedule: str = "5 * * * *") -> Document:
    return staging_query(name, schedule=schedule, interval=interval, dependencies=[*reads])


def plans_of(*documents: Document) -> dict[str, Plan]:
    return {plan.key: plan for plan in good_plans(judge(*documents))}


def everything(plan: Plan, table: str) -> frozenset[str]:
    """A table that holds all that has closed since it was begun."""
    assert plan.spec is not None
    grid = plan.spec.grid
    return frozenset(map(plan.spec.label, grid.starts(grid.ceil(BEGUN), grid.floor(NOW))))


def downstream(plans: Mapping[str, Plan], target: str, *labels: str) -> dict[str, list[str]]:
    """The labels that are replayed by name, in the order of the replays."""
    plan = plans[f"staging_query/{target}"]
    assert plan.spec is not None
    replay = Replay(plan, tuple(map(plan.spec.start_of, labels)))
    found = with_downstream([replay], plans, everything, now=NOW)
    return {each.plan.key.partition("/")[2]: list(each.labels) for each in found}


RAW = hourly("t.raw__1")
DAILY = hourly("t.daily__1", dependency("ns.t_raw__1", "1h"), interval="1d", schedule="30 1 * * *")
#: Reads three hours: its own and the two before.
LATE = hourly("t.late__1", dependency("ns.t_raw__1", "1h", start="2h"))


def test_one_late_hour_touches_its_day_and_the_hours_that_reach_back_to_it() -> None:
    found = downstream(plans_of(LATE, DAILY, RAW), "t.raw__1", "2026-06-02-03-00")
    assert next(iter(found)) == "t.raw__1"
    assert found == {
        "t.raw__1": ["2026-06-02-03-00"],
        "t.daily__1": ["2026-06-02"],
        "t.late__1": [f"2026-06-02-0{hour}-00" for hour in (3, 4, 5)],
    }


def test_what_is_not_due_yet_comes_by_itself_and_what_never_began_is_not_begun() -> None:
    plans = plans_of(LATE, DAILY, RAW)
    assert downstream(plans, "t.raw__1", "2026-06-04-03-00")["t.late__1"] == [f"2026-06-04-0{n}-00" for n in (3, 4, 5)]
    assert "t.daily__1" not in downstream(plans, "t.raw__1", "2026-06-04-03-00")  # its day is not over
    replay = Replay(plans["staging_query/t.raw__1"], (at("2026-06-02 03:00"),))
    nothing = lambda plan, table: frozenset[str]()  # noqa: E731
    assert [each.plan.key for each in with_downstream([replay], plans, nothing, now=NOW)] == ["staging_query/t.raw__1"]


def test_a_hole_whose_run_should_have_come_is_filled_with_the_rest() -> None:
    plans = plans_of(LATE, RAW)

    def landed(plan: Plan, table: str) -> frozenset[str]:
        return everything(plan, table) - {"2026-06-02-04-00", "2026-06-04-11-00"}

    raw = plans["staging_query/t.raw__1"]
    for hour, wanted in (("2026-06-02 03:00", 3), ("2026-06-04 11:00", 1)):
        replay = Replay(raw, (at(hour),))
        assert len(with_downstream([replay], plans, landed, now=NOW)[1].starts) == wanted


def test_a_conf_that_reads_its_own_last_partition_is_rebuilt_up_to_the_newest() -> None:
    sums = hourly(
        "t.sums__1",
        dependency("ns.t_raw__1", "1h"),
        dependency("ns.t_sums__1", "1h", start="1h", end="1h"),
    )
    found = downstream(plans_of(sums, RAW), "t.raw__1", "2026-06-04-08-00")
    assert found["t.sums__1"] == ["2026-06-04-08-00", "2026-06-04-09-00", "2026-06-04-10-00", "2026-06-04-11-00"]


def random_tree(rng: random.Random) -> list[Document]:
    sizes = {"1h": HOUR, "3h": 3 * HOUR, "6h": 6 * HOUR, "1d": DAY}
    made: list[tuple[str, str]] = []
    documents = []
    for number in range(rng.randrange(2, 7)):
        name, size = f"t.c{number}__1", rng.choice(list(sizes))
        reads = []
        for producer, finer in rng.sample(made, min(len(made), rng.randrange(0, 3))):
            hours = sizes[finer] // HOUR
            back = rng.choice([0, 0, 1, 2, 5]) * hours
            reads.append(dependency(f"ns.t_{producer}__1", finer, start=f"{back}h", end=f"{rng.choice([0, 0, back])}h"))
        schedule = {"1h": "5 * * * *", "3h": "5 */3 * * *", "6h": "5 */6 * * *", "1d": "30 1 * * *"}[size]
        documents.append(hourly(name, *reads, interval=size, schedule=schedule))
        made.append((f"c{number}", size))
    return documents


def naive(plans: Mapping[str, Plan], target: Plan, starts: set[int]) -> dict[str, set[int]]:
    """Every partition of every conf that reads a touched one, found by asking each of them for what it reads."""
    touched = {target.key: set(starts)}
    writers = {table: plan for plan in plans.values() for table in plan.tables}
    before = None
    while before != (before := {key: set(found) for key, found in touched.items()}):
        for plan in plans.values():
            assert isinstance(plan, ConfPlan)
            grid = plan.spec.grid
            for start in grid.starts(grid.ceil(BEGUN), grid.floor(NOW)):
                for wait in plan.replay_waits(start):
                    producer = writers.get(wait.table)
                    if producer is None:  # of a conf that breaks rules
                        continue
                    assert wait.spec is not None
                    read = set(map(wait.spec.start_of, wait.labels))
                    if wait.lookback is not None and wait.lookback.first is not None:
                        last = wait.spec.start_of(wait.lookback.last)
                        first = wait.spec.start_of(wait.lookback.first)
                        read |= set(range(first, last + 1, wait.spec.grid.interval))
                    if read & before.get(producer.key, set()):
                        touched.setdefault(plan.key, set()).add(start)
    return touched


def differing(seed: int) -> bool:
    rng = random.Random(seed)
    plans = plans_of(*random_tree(rng))
    target = rng.choice(list(plans.values()))
    assert isinstance(target, ConfPlan)
    all_starts = list(target.spec.grid.starts(target.spec.grid.ceil(BEGUN), target.spec.grid.floor(NOW)))
    starts = set(rng.sample(all_starts, rng.randrange(1, 4)))
    found = with_downstream([Replay(target, tuple(sorted(starts)))], plans, everything, now=NOW)
    places = {each.plan.key: place for place, each in enumerate(found)}
    ordered = all(
        places[str(producer)] < places[each.plan.key]
        for each in found
        for producer in each.plan.producers
        if str(producer) in places
    )
    return not ordered or {each.plan.key: set(each.starts) for each in found} != naive(plans, target, starts)


def test_random_trees_beside_a_reading_of_every_partition() -> None:
    assert [seed for seed in range(60) if differing(seed)] == []


@pytest.mark.soak
def test_many_random_trees() -> None:
    assert [seed for seed in range(3_000) if differing(seed)] == []


def test_a_run_holds_for_what_it_reads_of_its_replay_and_for_nothing_else() -> None:
    plans = plans_of(LATE, DAILY, RAW)
    raw = plans["staging_query/t.raw__1"]
    replays = with_downstream([Replay(raw, (at("2026-06-02 03:00"),))], plans, everything, now=NOW)
    assert dags_held_for(replays) == {raw.dag_id}
    carried = json.loads(json.dumps({REPLAY: order_of("ab12", replays, held_for=dags_held_for(replays)).to_json()}))
    order = read_order(carried)
    assert order is not None
    writer = TableWriter(raw.dag_id, Mode.BACKFILL, raw.need_schedule())  # type: ignore[arg-type]

    def first(start: str, end: str) -> list[str]:
        windows = [(at(start), at(end))]
        return [each.run_id for each in order.first_of([writer], windows, own_dag_id="x", own_start=at(end))]

    assert first("2026-06-02 01:00", "2026-06-02 04:00") == ["manual__2026-06-02-03-00__ab12"]
    assert first("2026-06-02 04:00", "2026-06-02 05:00") == []
    nobody = TableWriter(plans["staging_query/t.late__1"].dag_id, Mode.BACKFILL, writer.schedule)
    assert list(order.first_of([nobody], [(None, NOW)], own_dag_id="x", own_start=NOW)) == []  # nobody holds for leaves


def test_a_partition_holds_for_older_ones_of_its_own_and_never_for_itself() -> None:
    sums = hourly("t.sums__1", dependency("ns.t_sums__1", "1h", start="1h", end="1h"))
    plans = plans_of(sums)
    (plan,) = plans.values()
    replay = Replay(plan, tuple(at(f"2026-06-02 0{hour}:00") for hour in (1, 2, 3)))
    order = order_of("ab12", [replay], held_for=dags_held_for([replay]))
    writer = TableWriter(plan.dag_id, Mode.BACKFILL, plan.need_schedule())  # type: ignore[arg-type]
    found = order.first_of([writer], [(None, NOW)], own_dag_id=plan.dag_id, own_start=at("2026-06-02 03:00"))
    assert [each.label for each in found] == ["2026-06-02-01-00", "2026-06-02-02-00"]


def test_a_replay_of_too_many_pieces_is_refused_where_runs_would_have_to_carry_them() -> None:
    (plan,) = plans_of(RAW).values()
    scattered = Replay(plan, tuple(BEGUN + place * 2 * HOUR for place in range(MOST_RANGES + 1)))
    assert order_of("ab12", [scattered], held_for=frozenset()).rebuilds == {}
    with pytest.raises(
        ChrononError, match=f"{MOST_RANGES + 1} pieces of neighbouring partitions.*Give a shorter range"
    ):
        order_of("ab12", [scattered], held_for=frozenset({plan.dag_id}))


@pytest.mark.parametrize(
    "conf",
    [
        None,
        {},
        {REPLAY: None},
        {REPLAY: []},
        {REPLAY: {"id": 5}},
        {REPLAY: {"id": ""}},
        {REPLAY: {"id": "a b; rm"}},
        {REPLAY: {"id": "a", "rebuilds": 3}},
        {REPLAY: {"id": "a", "rebuilds": {"x": 1}}},
        {REPLAY: {"id": "a", "rebuilds": {"x": [0, [[1, 2]]]}}},
        {REPLAY: {"id": "a", "rebuilds": {"x": [-60, [[1, 2]]]}}},
        {REPLAY: {"id": "a", "rebuilds": {"x": [60, [["1", "2"]]]}}},
        {REPLAY: {"id": "a", "rebuilds": {"x": [60, [[0, 10**15]]]}}},
        {REPLAY: {"id": "a", "rebuilds": {"x": [60.5, [[0.5, 1]]]}}},
        {REPLAY: {"id": "a", "held_for": 5}},
    ],
)
def test_what_a_person_wrote_into_the_conf_of_a_run_holds_nothing_up(conf: object) -> None:
    assert read_order(conf) is None


def test_a_conf_that_has_no_dag_is_left_out() -> None:
    found = judge(
        RAW,
        hourly("t.off__1", dependency("ns.t_raw__1", "1h"), schedule="@never"),
        settings=Settings(unscheduled=Unscheduled.OMIT),
    )
    plans = {plan.key: plan for plan in good_plans(found)}
    assert list(downstream(plans, "t.raw__1", "2026-06-02-03-00")) == ["t.raw__1"]


def test_a_group_by_downstream_is_touched_by_its_source() -> None:
    reader = group_by("t.g__1", sources=[events("ns.t_raw__1", "1h")], schedule="30 1 * * *", interval="1d")
    plans = plans_of(reader, RAW)
    raw = plans["staging_query/t.raw__1"]
    found = with_downstream([Replay(raw, (at("2026-06-02 03:00"),))], plans, everything, now=NOW)
    assert any(each.plan.key == "group_by/t.g__1" and each.starts for each in found)
