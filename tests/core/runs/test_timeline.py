"""Timelines say the same as a judgement of every single partition (H20)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR, TimeWindow, iso
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec, partition_format
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.skip_reasons import Reason, Skip
from airflow_chronon.core.runs.stale import Staleness, WriteTimes
from airflow_chronon.core.runs.states import Known, KnownRun, State, partition_rows
from airflow_chronon.core.runs.timeline import Span, spans_of, timeline
from airflow_chronon.core.schedules.revision import ScheduleRevision
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.core.waits.max_lag import Lagging
from tests.support.confs import at, plan_of, staging_query

SCHEDULES = [
    ("5 * * * *", "1h"),
    ("0 * * * *", "1h"),
    ("30 */3 * * *", "3h"),
    ("@daily", "1d"),
    ("0 6 * * MON", "1d"),
    ("*/15 * * * *", "15m"),
]


def random_settings(rng: random.Random, around: int, span: int) -> Settings:
    def instant() -> str:
        return iso(around + rng.randrange(-span, span) // HOUR * HOUR)

    given: dict[str, object] = {}
    if rng.random() < 0.5:
        given |= {"start_date": instant(), "catchup": rng.random() < 0.5}
    if rng.random() < 0.2:
        given["skip_to_date"] = instant()
    if given.get("catchup") and rng.random() < 0.5:
        given["max_catchup_runs"] = rng.randrange(1, 9)
    if rng.random() < 0.15:
        given["covers"] = "newest"
    return Settings(**given)  # type: ignore[arg-type]


def random_staleness(rng: random.Random, starts: list[int], step: int) -> Staleness:
    """A table that reads one of its own grid; some partitions of both were written, some again."""

    def writes() -> WriteTimes:
        chosen = [rng.choice(starts) for _ in range(rng.randrange(0, 60))]
        widths = [rng.choice([1, 1, 7]) * step for _ in chosen]
        return WriteTimes.of(
            (TimeWindow(start, start + width), rng.randrange(9)) for start, width in zip(chosen, widths, strict=True)
        )

    grid = PartitionGrid(step)
    read = TableDependency("ns.t", "ds", PartitionSpec(grid, partition_format("yyyy-MM-dd-HH-mm")), reach=2 * step)
    return Staleness(grid, [read], writes(), {"ns.t": writes()})


def random_case(seed: int) -> tuple[ConfPlan, TimeWindow, StartRanges, Known, int]:
    rng = random.Random(seed)
    _, interval = rng.choice(SCHEDULES)
    base = at("2026-06-01")

    def plan() -> ConfPlan:
        settings = random_settings(rng, base + 5 * step, 30 * step)
        return plan_of(
            staging_query(schedule=rng.choice([c for c, i in SCHEDULES if i == interval]), interval=interval),
            settings=settings,
        )

    step = {"1h": HOUR, "3h": 3 * HOUR, "1d": DAY, "15m": HOUR // 4}[interval]
    found = plan()
    grid = found.spec.grid
    count = rng.randrange(1, 80)
    first = grid.floor(base)
    now = base + rng.randrange(-5 * step, (count + 10) * step)
    starts = [first + place * step for place in range(count)]
    landed = StartRanges.of_starts(
        (s for s in starts if s < now and rng.random() < rng.choice([0.1, 0.9])), interval=step
    )
    runs = []
    for number in range(rng.randrange(0, 12)):
        start = rng.choice(starts)
        width = rng.choice([1, 1, 1, 7]) * step
        state = rng.choice(["success", "failed", "running", "queued"])
        run = KnownRun(f"r{number}", state, rng.random() < 0.5, TimeWindow(start, start + width), (number, ""))
        if rng.random() < 0.3:
            run = replace(run, lagging=(Lagging("ns.e", "ds", PartitionKey("a"), (PartitionKey(rng.choice("bc")),)),))
        runs.append(replace(run, was_skipped=rng.random() < 0.2, is_stranded=state == "queued" and rng.random() < 0.3))
    revisions = []
    if rng.random() < 0.5:
        since = base - rng.randrange(0, 40) * step
        for _ in range(rng.randrange(1, 4)):
            revisions.append(ScheduleRevision(since, plan().schedule, rng.random() < 0.8))
            since += rng.randrange(1, 30) * step + rng.randrange(0, step)
        revisions.append(ScheduleRevision(since, found.schedule))
    known = Known(
        runs=None if rng.random() < 0.1 else runs,
        revisions=revisions,
        halted=Reason(Skip.PAUSED, "in Airflow, now") if rng.random() < 0.1 else None,
        kept_grid="9h" if rng.random() < 0.05 else None,
        landed_inputs={"ns.e": {"b"}},
        staleness=random_staleness(rng, starts, step) if rng.random() < 0.5 else None,
    )
    return found, TimeWindow(first, first + count * step), landed, known, now


def differs(seed: int) -> tuple[list[Span], list[Span]] | None:
    plan, window, landed, known, now = random_case(seed)
    labels = frozenset(plan.spec.label(start) for each in landed.ranges for start in each)
    every = plan.schedule.starts(window.start, window.end)
    expected = spans_of(partition_rows(plan.schedule, every, replace(known, landed=labels), now=now))
    found = timeline(plan.schedule, window, landed, known, now=now)
    return None if found == expected else (found, expected)


def test_a_timeline_is_what_every_single_partition_is() -> None:
    assert [seed for seed in range(300) if differs(seed)] == []


@pytest.mark.soak
def test_ten_thousand_timelines_differ_nowhere() -> None:
    assert [seed for seed in range(10_000) if differs(seed)] == []


def test_a_table_of_years_with_one_hole_is_three_spans() -> None:
    plan = plan_of(staging_query(schedule="* * * * *", interval="1m"))
    first, now = at("2020-01-01"), at("2026-01-01")
    hole = at("2023-05-05 05:05")
    landed = StartRanges(60, (range(first, hole, 60), range(hole + 60, now, 60)))
    found = timeline(plan.schedule, TimeWindow(first, now + 120), landed, Known(runs=[]), now=now)
    assert [(span.state, span.count) for span in found] == [
        (State.LANDED, (hole - first) // 60),
        (State.SKIPPED, 1),
        (State.LANDED, (now - hole) // 60 - 1),
        (State.OPEN, 2),
    ]


def test_ranges_of_labels_hold_the_partitions_of_the_grid_and_nothing_else() -> None:
    plan = plan_of(staging_query(schedule="@daily"))
    labels = ["2026-01-03", "2026-01-01", "2026-01-02", "2026-02-01", "nonsense", "__HIVE_DEFAULT_PARTITION__"]
    found = StartRanges.of_labels(labels, plan.spec)
    assert found.to_json() == [[at("2026-01-01"), 3], [at("2026-02-01"), 1]]
    assert at("2026-01-02") in found and at("2026-01-04") not in found and at("2026-01-02") + 1 not in found
    assert StartRanges.from_json(found.to_json(), interval=DAY) == found
    assert [list(part) for part in found.within(at("2026-01-02") + 1, at("2026-02-01"))] == [[at("2026-01-03")]]
