"""Replaying what a flip to catch-up made due, through Airflow (H10, H11, H13)."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from airflow_chronon.airflow_api.records import BackfillRecord, RunRecord
from airflow_chronon.core.calendar.instants import DAY, HOUR, TimeWindow
from tests.support.confs import at
from tests.support.world import NOW, Killed, World, conf, go_on

ID = "staging_query.t.s.hourly__1"
HOURLY = conf("t.s.hourly__1", schedule="0 * * * *", interval="1h")
START = at("2026-06-09 12:00")  # twelve hours before the world's now
SINCE = {"start_date": "2026-06-09T12:00Z"}


def flipped(*, ran: tuple[int, ...], **settings: object) -> World:
    """An hourly conf whose partitions ``ran`` (hours after the start) have scheduled runs, and which now catches up."""
    world = World()
    world.deploy(HOURLY, **SINCE)
    world.converge()
    for hour in ran:
        start = START + hour * HOUR
        key = world.trees["main"].facts().plans[ID].spec.label(start)
        world.airflow.run_records.append(RunRecord(ID, f"scheduled__{key}", "scheduled", "success", key, start))
    world.now += 60
    world.deploy(HOURLY, **SINCE, catchup=True, **settings)
    world.parse()
    return world


def replayed(world: World) -> list[int]:
    """The hours after the start that were replayed, in the order of creation."""
    runs = [run for run in world.airflow.run_records if run.run_type != "scheduled"]
    return [((run.partition_date or 0) - START) // HOUR for run in runs]


def test_neighbours_run_as_one_backfill_and_single_ones_by_their_key() -> None:
    world = flipped(ran=(3, 5, 11))
    world.reconcile()
    assert [call[0] for call in world.airflow.calls if call[0] in ("create_backfill", "trigger")] == [
        "create_backfill",
        "trigger",
    ]
    assert replayed(world) == [0, 1, 2, 4]  # one backfill at a time: 6 to 10 have to wait
    world.reconcile()
    assert replayed(world) == [0, 1, 2, 4]
    go_on(world)
    assert replayed(world) == [0, 1, 2, 4, 6, 7, 8, 9, 10]
    assert world.records()[ID].pending is None


def test_the_cap_and_the_skip_date_hold_over_all_reconciles() -> None:  # H10, H11
    world = flipped(ran=(4, 7, 11), max_catchup_runs=4)
    go_on(world)
    assert sorted(replayed(world)) == [6, 8, 9, 10]
    world = flipped(ran=(4, 7, 11), max_catchup_runs=9, skip_to_date="2026-06-09T21:00Z")
    go_on(world)
    assert sorted(replayed(world)) == [9, 10]


def test_a_debt_outlasts_a_schedule_that_is_off_for_a_while() -> None:  # H13, H14
    world = flipped(ran=(3, 5, 11))
    world.reconcile()
    world.deploy(HOURLY, **SINCE, catchup=True, enabled=False)
    go_on(world, rounds=2)
    world.deploy(HOURLY, **SINCE, catchup=True)
    go_on(world)
    assert replayed(world) == [0, 1, 2, 4, 6, 7, 8, 9, 10]


DAILY_ID = "staging_query.t.s.day__1"


@pytest.mark.parametrize(
    ("before", "after", "ran", "expected"),
    [
        ("0 6 * * MON", "0 6 * * *", [("2026-05-25", "2026-05-31"), ("2026-06-01", "2026-06-07")], []),
        (
            "0 6 * * *",
            "0 6 * * MON",
            [("2026-05-31", "2026-05-31"), ("2026-06-07", "2026-06-07")],
            [*range(6), *range(7, 13)],
        ),
    ],
)
def test_what_a_run_wrote_under_the_schedule_before_is_known_by_its_own_interval(
    before: str, after: str, ran: list[tuple[str, str]], expected: list[int]
) -> None:  # C28, H13
    world, start = World(), at("2026-05-25")
    world.deploy(conf("t.s.day__1", schedule=before), start_date="2026-05-25")
    world.converge()
    for first, last in ran:
        window = TimeWindow(at(first), at(last) + DAY)
        record = RunRecord(DAILY_ID, f"scheduled__{last}", "scheduled", "success", last, at(last), window=window)
        world.airflow.run_records.append(record)
    world.now += 60
    world.deploy(conf("t.s.day__1", schedule=after), start_date="2026-05-25", catchup=True)
    world.parse()
    go_on(world)
    runs = [run for run in world.airflow.run_records if run.run_type != "scheduled"]
    assert [((run.partition_date or 0) - start) // DAY for run in runs] == expected


def test_dags_that_another_bundle_has_taken_over_get_no_replays() -> None:  # C24
    world = flipped(ran=(3, 11))
    world.airflow.dag_records[ID] = replace(world.airflow.dag_records[ID], bundle="another")
    world.reconcile()
    assert replayed(world) == []


def test_nothing_is_pending_without_a_flip() -> None:
    world = flipped(ran=(11,))
    go_on(world)
    before = len(world.airflow.run_records)
    world.deploy(HOURLY, **SINCE, catchup=True, retries=0)
    go_on(world)
    assert len(world.airflow.run_records) == before


def test_a_backfill_that_someone_else_started_is_waited_for() -> None:
    world = flipped(ran=(11,))
    world.airflow.create_backfill = lambda request: pytest.fail("a second one")  # type: ignore[assignment, method-assign]
    world.airflow.backfill_records.append(BackfillRecord(1, ID, 0, 0))
    assert world.reconcile().is_good
    assert world.records()[ID].pending is not None


@pytest.mark.parametrize("number", range(14))
def test_a_reconciler_that_is_killed_replays_each_partition_once(number: int) -> None:  # C28
    world = flipped(ran=(3, 5, 11), max_catchup_runs=7)
    calm = world.kill_at(number)
    with contextlib.suppress(Killed):
        world.reconcile()
    calm()
    go_on(world)
    assert sorted(replayed(world)) == [1, 2, 4, 6, 7, 8, 9, 10][-7:]


@pytest.mark.parametrize(("size", "gone"), [(20, 2), (80, 2), (80, 8)])
def test_the_calls_of_a_retirement_grow_with_the_dags_that_go_and_not_with_those_that_stay(
    size: int, gone: int
) -> None:
    confs = [conf(f"t.s.c{number}__1") for number in range(size)]
    world = World()
    world.deploy(*confs)
    world.converge()
    world.deploy(*confs[gone:])
    world.parse()
    world.airflow.calls.clear()
    world.reconcile()
    assert len(world.airflow.calls) == 6 + 3 * gone  # active runs, and the runs and tasks for the archive
    world.parse()
    world.airflow.calls.clear()
    world.reconcile()
    assert len(world.airflow.calls) == 6 + 5 * gone  # the same again, a last look at the DAG, and its delete


def test_a_conf_that_is_back_after_its_retirement_leaves_everything_to_its_timetable() -> None:  # H16
    world, other = World(), conf("t.s.other__1")
    world.deploy(HOURLY, other, **SINCE)
    world.converge()
    world.deploy(other)
    world.converge()
    world.deploy(HOURLY, other, **SINCE, catchup=True)
    world.parse()
    world.airflow.run_records.append(RunRecord(ID, "scheduled__x", "scheduled", "success", None, NOW - 2 * HOUR))
    go_on(world)
    assert replayed(world) == []
