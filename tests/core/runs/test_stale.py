"""What is stale (C15, C16), beside a reading of every write and every partition one by one."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, TimeWindow
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from airflow_chronon.core.runs.stale import Staleness, WriteTimes
from airflow_chronon.core.waits.dependencies import CutOffs, TableDependency
from tests.support.confs import at

BASE = at("2026-06-01")
FORMAT = partition_format("yyyy-MM-dd-HH-mm")
Writes = list[tuple[TimeWindow, int]]


@dataclass(frozen=True)
class Case:
    """What a consumer reads of its producers, and when each was written."""

    grid: PartitionGrid
    reads: list[TableDependency]
    own: Writes
    sources: dict[str, Writes]
    count: int

    @property
    def staleness(self) -> Staleness:
        sources = {table: WriteTimes.of(writes) for table, writes in self.sources.items()}
        return Staleness(self.grid, self.reads, WriteTimes.of(self.own), sources)

    @property
    def starts(self) -> list[int]:
        return [BASE + place * self.grid.interval for place in range(self.count)]


def random_writes(rng: random.Random, step: int, first: int, end: int) -> Writes:
    found = []
    for _ in range(rng.randrange(0, 25)):
        start = rng.randrange(first, end) // step * step
        found.append((TimeWindow(start, start + rng.choice([1, 1, 1, 3]) * step), BASE + rng.randrange(0, 60)))
    return found


def random_case(seed: int) -> Case:
    rng = random.Random(seed)
    step = rng.choice([15 * MINUTE, HOUR, DAY])
    count = rng.randrange(1, 15)
    reads, sources = [], {}
    for number in range(rng.randrange(1, 4)):
        finer = rng.choice(
            [size for size in (5 * MINUTE, 15 * MINUTE, HOUR, DAY) if size <= step and step // size < 30]
        )
        table = f"ns.t{number}"
        cut = CutOffs()
        if rng.random() < 0.3:
            first = BASE + rng.randrange(-3, 5) * finer
            last = first + rng.randrange(0, 20) * finer
            cut = CutOffs(first if rng.random() < 0.7 else None, last + finer, last)
        reads.append(
            TableDependency(
                table,
                "ds",
                PartitionSpec(PartitionGrid(finer), FORMAT),
                lag=rng.choice([0, 0, 1, 2]) * finer,
                reach=rng.choice([0, 0, finer, 4 * finer, None]),
                cut=cut,
                expression=rng.choice([None, None, "max(ds)"]),
            )
        )
        if rng.random() < 0.9:
            sources[table] = random_writes(rng, finer, BASE - 6 * step, BASE + count * step)
    own = random_writes(rng, step, BASE, BASE + count * step)
    return Case(PartitionGrid(step), reads, own, sources, count)


def is_read(read: TableDependency, at_start: int, start: int, end: int) -> bool:
    """Whether a run over ``[start, end)`` reads the partition of a table that starts at ``at_start`` (C16), said naively."""
    assert read.spec is not None
    stop = at_start + read.spec.grid.interval
    if read.cut.start is not None and at_start < read.cut.start:
        return False
    if read.cut.end is not None and stop > read.cut.end:
        return False
    since = None if read.reach is None else start - read.lag - read.reach
    return at_start < end - read.lag and (since is None or stop > since)


def brute_force(case: Case, start: int) -> tuple[int, int] | None:
    """When the newest write came that makes a partition stale, and when it was itself written."""
    end = start + case.grid.interval
    own = [time for window, time in case.own if window.start <= start and end <= window.end]
    if not own:
        return None
    newest = None
    for read in case.reads:
        assert read.spec is not None
        step = read.spec.grid.interval
        last = dict[int, int]()
        for window, time in case.sources.get(read.table, ()):
            for each in range(window.start, window.end, step):
                last[each] = max(last.get(each, 0), time)
        for each, time in last.items():
            if is_read(read, each, start, end) and time > max(own):
                newest = time if newest is None else max(newest, time)
    return None if newest is None else (newest, max(own))


def differs(seed: int) -> list[tuple[int, object, object]]:
    case = random_case(seed)
    staleness = case.staleness
    expected = {start: brute_force(case, start) for start in case.starts}
    found = {start: staleness.of(start) for start in case.starts}
    wrong: list[tuple[int, object, object]] = [
        (start, found[start], expected[start])
        for start in case.starts
        if (None if (stale := found[start]) is None else (stale.wrote, stale.written)) != expected[start]
    ]
    ranges = staleness.ranges(case.starts[0], case.starts[-1] + case.grid.interval)
    stale_starts = [start for each in ranges.ranges for start in each]
    if stale_starts != [start for start in case.starts if expected[start]]:
        wrong.append((-1, ranges, expected))
    return wrong


def test_what_is_stale_is_what_a_reading_of_every_write_says() -> None:
    assert [seed for seed in range(300) if differs(seed)] == []


def test_random_histories_hold_what_is_stale_and_what_is_not() -> None:
    found = [brute_force(case, start) for case in map(random_case, range(300)) for start in case.starts]
    assert sum(each is not None for each in found) > 200 and found.count(None) > 200


@pytest.mark.soak
def test_ten_thousand_histories_differ_nowhere() -> None:
    assert [seed for seed in range(10_000) if differs(seed)] == []


def hour(number: int) -> TimeWindow:
    return TimeWindow(BASE + number * HOUR, BASE + (number + 1) * HOUR)


def hourly(own: Writes, source: Writes, *, reach: int = 0) -> Staleness:
    read = TableDependency("ns.source", "ds", PartitionSpec(PartitionGrid(HOUR), FORMAT), reach=reach)
    return Staleness(PartitionGrid(HOUR), [read], WriteTimes.of(own), {"ns.source": WriteTimes.of(source)})


def test_a_replay_of_a_producer_makes_stale_what_read_it_and_a_replay_of_that_ends_it() -> None:
    source = [(hour(number), BASE + number) for number in range(5)]
    own = [(hour(number), BASE + 100 + number) for number in range(5)]
    assert not hourly(own, source).ranges(BASE, BASE + 5 * HOUR).ranges
    replayed = [*source, (hour(2), BASE + 500)]
    staleness = hourly(own, replayed, reach=HOUR)  # hours 2 and 3 read hour 2
    assert staleness.ranges(BASE, BASE + 5 * HOUR).to_json() == [[BASE + 2 * HOUR, 2]]
    stale = staleness.of(BASE + 3 * HOUR)
    assert str(stale) == (
        "ns.source 2026-06-01-02-00 was written at 2026-06-01T00:08:20Z, after this was written at 2026-06-01T00:01:43Z"
    )
    healed = hourly([*own, (hour(3), BASE + 600)], replayed, reach=HOUR)
    assert healed.ranges(BASE, BASE + 5 * HOUR).to_json() == [[BASE + 2 * HOUR, 1]]


def test_what_came_after_a_run_had_passed_it_over_makes_its_partition_stale() -> None:
    # C17: a hole in a lookback that only warns, and max_lag
    late = [(hour(0), BASE), (hour(1), BASE + 900)]
    own = [(hour(2), BASE + 500)]
    assert hourly(own, late, reach=2 * HOUR).of(BASE + 2 * HOUR) is not None
    assert hourly(own, late[:1], reach=2 * HOUR).of(BASE + 2 * HOUR) is None


def test_a_partition_of_which_nothing_is_known_is_not_stale() -> None:
    assert hourly([], [(hour(0), BASE + 9)]).of(BASE) is None
    assert hourly([(hour(0), BASE + 1)], []).of(BASE) is None
    assert hourly([(hour(0), BASE + 9)], [(hour(0), BASE + 9)]).of(BASE) is None  # in the same second


def test_long_histories_of_one_write_are_one_stretch() -> None:
    writes = [(TimeWindow(BASE + place * HOUR, BASE + (place + 1) * HOUR), BASE) for place in range(10_000)]
    assert WriteTimes.of(writes) == WriteTimes((TimeWindow(BASE, BASE + 10_000 * HOUR),), (BASE,))
