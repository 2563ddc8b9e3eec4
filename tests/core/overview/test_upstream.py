"""What a wait can tell of the partitions that it lacks, followed through their producers."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.describe.causes import format_cause
from airflow_chronon.core.overview.snapshot import ConfSnapshot, snapshot_of
from airflow_chronon.core.overview.upstream import DEEPEST, MOST_CAUSES, Tasks, Upstream
from airflow_chronon.core.partitions.start_ranges import StartRanges
from tests.support.confs import at, dependency, judge, staging_query

NOW = at("2026-06-01 12:30")
NEWEST = at("2026-06-01 11:00")
LABEL = "2026-06-01-11-00"
RUN = f"scheduled__{LABEL}"


def chain(length: int = 3) -> dict[str, ConfSnapshot]:
    """Hourly confs ``c0``, ``c1`` and so on, each of which reads the one before; the first reads a table of nobody's."""
    documents = [
        staging_query(
            f"t.c{number}__1",
            schedule="5 * * * *",
            interval="1h",
            dependencies=[dependency(table(number - 1), "1h", partitionColumn="ds")],
        )
        for number in range(length)
    ]
    found = {}
    for verdict in judge(*documents).values():
        assert verdict.plan is not None, verdict
        snapshot = snapshot_of(verdict.plan).seen_at(StartRanges.of_starts([NEWEST - HOUR], interval=HOUR), NOW)
        found[snapshot.table] = snapshot
    return found


def table(number: int) -> str:
    return f"ns.t_c{number}__1" if number >= 0 else "raw.orders"


def dag(number: int) -> str:
    return f"staging_query.t.c{number}__1"


def waiting(number: int) -> dict[str, str | None]:
    return {f"wait.{table(number - 1)}": "deferred", "ready": None, "backfill": None, "landed": None}


def walk(tasks: Mapping[tuple[str, str], Tasks], *, confs: Mapping[str, ConfSnapshot] | None = None) -> Upstream:
    return Upstream(chain() if confs is None else confs, tasks, NOW)


def lines(found: Upstream, number: int, *starts: int) -> list[str]:
    return [line for cause in found.causes(table(number), starts or (NEWEST,)) for line in format_cause(cause)]


def test_waits_are_followed_to_the_table_that_nobody_here_writes() -> None:
    known = {(dag(number), RUN): waiting(number) for number in range(3)}
    assert lines(walk(known), 2) == [
        f"staging_query/t.c2__1 {LABEL}: waiting (wait.{table(1)} not over)",
        f"|  run {RUN} of {dag(2)}",
        f"+- staging_query/t.c1__1 {LABEL}: waiting (wait.{table(0)} not over)",
        f"   |  run {RUN} of {dag(1)}",
        f"   +- staging_query/t.c0__1 {LABEL}: waiting (wait.raw.orders not over)",
        f"      |  run {RUN} of {dag(0)}",
        f"      +- raw.orders {LABEL}: not landed",
    ]


def test_the_runs_to_ask_about_are_named_step_by_step() -> None:
    first = walk({})
    assert lines(first, 2) == [f"staging_query/t.c2__1 {LABEL}: missing (what became of its run is not known)"]
    assert first.unknown == {(dag(2), RUN)}
    second = walk({(dag(2), RUN): waiting(2)})
    lines(second, 2)
    assert second.unknown == {(dag(1), RUN)}
    third = walk({(dag(2), RUN): waiting(2), (dag(1), RUN): {"backfill": "running", "landed": None}})
    assert "+- staging_query/t.c1__1 2026-06-01-11-00: running (backfill is running)" in lines(third, 2)
    assert third.unknown == set()


def of_run(tasks: Tasks) -> str:
    return lines(walk({(dag(2), RUN): tasks}), 2)[0].removeprefix(f"staging_query/t.c2__1 {LABEL}: ")


def test_each_state_of_a_run_has_its_words() -> None:
    assert of_run(None) == "missing (it has no scheduled run)"
    assert of_run({"backfill": "failed", "landed": "upstream_failed"}) == "failed (backfill failed)"
    assert of_run({"landed": "success"}) == "missing (its run ended well, and it is not there)"
    assert of_run({"landed": "skipped"}) == "skipped (its run was skipped)"
    assert of_run({"wait.a": "success", "backfill": None}) == "running (its work has not begun)"
    assert of_run({"backfill": "queued", "landed": None}) == "running (backfill is queued)"


def test_a_run_that_has_not_fired_says_when() -> None:
    later = NEWEST + HOUR
    assert lines(walk({}), 2, later) == [
        "staging_query/t.c2__1 2026-06-01-12-00: due (its run fires at 2026-06-01T13:05:00Z)"
    ]


def test_what_was_there_when_its_table_was_seen_is_not_followed() -> None:
    confs = chain()
    one = confs[table(1)]
    confs[table(1)] = one.seen_at(StartRanges.of_starts([NEWEST], interval=HOUR), NOW)
    found = walk({(dag(2), RUN): waiting(2)}, confs=confs)
    assert len(lines(found, 2)) == 2 and found.unknown == set()


def test_a_table_that_the_snapshot_does_not_know_tells_nothing() -> None:
    assert lines(walk({}), -1) == []


def test_it_ends_however_long_the_chain_is_and_however_much_is_missing() -> None:  # S7
    confs = chain(DEEPEST + 4)
    starts = range(NEWEST - 500 * HOUR, NEWEST + HOUR, HOUR)
    known = {
        (dag(number), f"scheduled__{confs[table(0)].schedule.label(start)}"): waiting(number)
        for number in range(DEEPEST + 4)
        for start in starts
    }
    found = walk(known, confs=confs).causes(table(DEEPEST + 3), starts)
    assert found[0].more == len(starts) - 3
    assert sum(len(format_cause(cause)) for cause in found) <= 3 * MOST_CAUSES
