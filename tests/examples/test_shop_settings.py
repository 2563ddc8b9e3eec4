"""The sample settings: what the catch-up runs of the demo wait for is there, or other catch-up runs make it."""

from __future__ import annotations

from itertools import chain

import pytest
from shop_data import TABLES

from airflow_chronon.core.calendar.instants import DAY, MINUTE, Instant, parse_instant, to_datetime
from tests.support.shop_runs import catch_up_runs, staging_queries

MONDAY = parse_instant("2026-06-01T00:00:00Z")
QUERIES = staging_queries()
SOURCES = {table.name: table for table in TABLES}


def made(now: Instant) -> dict[str, set[Instant]]:
    """The partition starts that the catch-up runs of every staging query write when they begin at ``now``."""
    starts: dict[str, set[Instant]] = {}
    for query in QUERIES:
        windows = query.catch_up(now=now, runs=catch_up_runs(query))
        starts[query.table] = {s for start, end in windows for s in query.spec.grid.starts(start, end)}
    return starts


def unmet(now: Instant) -> list[str]:
    """What no source and no catch-up run provides, of all that the catch-up runs wait for (C17)."""
    starts, missing = made(now), list[str]()
    for query in QUERIES:
        for start, end in query.catch_up(now=now, runs=catch_up_runs(query)):
            for dependency in query.dependencies:
                table = dependency["tableInfo"]["table"]
                back = dependency["startOffset"]["length"] * DAY  # the compiler writes these in days
                if table in starts:
                    grid = next(q.spec.grid for q in QUERIES if q.table == table)
                    have = starts[table]
                    assert back == 0, "a lookback on a table of this repo would need older runs than the demo makes"
                else:
                    grid, have = SOURCES[table].spec.grid, set(SOURCES[table].steps(now=now, days=2))
                missing += [
                    f"{query.name} at {to_datetime(now)}: {table} {to_datetime(s)}"
                    for s in grid.starts(start - back, end)
                    if s not in have
                ]
    return missing


@pytest.mark.parametrize("day", range(8))
def test_at_any_time_of_the_week_catch_up_waits_for_nothing_that_never_comes(day: int) -> None:
    begin = MONDAY + day * DAY
    moments = chain(range(begin, begin + DAY, 5 * MINUTE), range(begin + 59, begin + DAY, 7 * MINUTE))
    assert [problem for now in moments for problem in unmet(now)] == []


def test_the_weekly_query_catches_up_one_week_of_seven_partitions() -> None:  # C9
    weekly = next(query for query in QUERIES if query.name == "growth.visits.weekly__1")
    assert catch_up_runs(weekly) == 1
    ((start, end),) = weekly.catch_up(now=MONDAY + 3 * DAY, runs=1)
    assert (start, end) == (MONDAY - 7 * DAY, MONDAY)


def test_the_demo_has_few_runs_to_make() -> None:
    assert sum(catch_up_runs(query) for query in QUERIES) <= 25
