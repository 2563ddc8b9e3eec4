"""From a tree to its load and from a load to the size of an Airflow."""

from __future__ import annotations

import pytest

from airflow_chronon.core.sizing.load import Load, load_of
from airflow_chronon.core.sizing.size import IDLE_SHARE, SOON, Size, size_of
from tests.support.confs import at, plan_of, staging_query

DAY = at("2026-06-01")


def loaded(dags: int, **more: int) -> Load:
    given = {
        "waiting": dags,
        "waits": dags,
        "runs_a_day": dags,
        "runs_in_busiest_hour": dags,
        "work_in_busiest_hour": dags,
    }
    return Load(dags=dags, **{**given, **more})


def value(size: Size, name: str) -> int | str:
    (found,) = [each.value for each in size.settings if name in each.name]
    return found


class TestTheLoad:
    def test_runs_are_counted_by_the_hour_of_their_fire(self) -> None:
        hourly, daily = (
            plan_of(staging_query("t.hourly__1", schedule="5 * * * *", minutes=60)),
            plan_of(staging_query("t.daily__1")),
        )
        found = load_of([hourly, daily], day=DAY)
        assert (found.dags, found.runs_a_day, found.runs_in_busiest_hour, found.work_in_busiest_hour) == (2, 25, 2, 2)

    def test_a_conf_that_is_off_has_a_dag_and_no_runs(self) -> None:
        found = load_of([plan_of(staging_query("t.off__1", schedule="@never"))], day=DAY)
        assert (found.dags, found.runs_a_day, found.waiting, found.waits) == (1, 0, 0, 0)

    def test_a_tree_without_confs_has_none(self) -> None:
        assert load_of([], day=DAY) == loaded(0) == loaded(0).scaled(10)

    def test_ten_times_the_confs_are_ten_times_the_load(self) -> None:
        assert loaded(10, waits=25).scaled(100) == loaded(100, waits=250)


class TestTheSize:
    @pytest.mark.parametrize("dags", [1, 15, 100, 1000, 10_000])
    def test_it_keeps_what_it_promises(self, dags: int) -> None:
        size = size_of(loaded(dags), work_seconds=60)
        assert size.scheduler.longest <= SOON and not size.scheduler.replays_starve
        assert size.parse_seconds <= IDLE_SHARE * int(value(size, "min_file_process_interval"))
        assert int(value(size, "triggerers")) * int(value(size, "capacity")) >= size.load.waits

    def test_a_thousand_waiting_runs_cost_less_than_a_tenth_of_a_core(self) -> None:
        size = size_of(loaded(1000, runs_in_busiest_hour=100), work_seconds=60)
        assert size.scheduler.cores < 0.1 < size.without.cores
        assert value(size, "pass_over_waiting_runs") == "True"

    def test_longer_work_needs_more_slots(self) -> None:
        short, long = (int(value(size_of(loaded(1000), work_seconds=each), "parallelism")) for each in (1, 600))
        assert short < long / 10

    def test_many_confs_are_split_over_loader_files(self) -> None:
        assert [value(size_of(loaded(each), work_seconds=1), "loader files") for each in (1000, 1001, 10_000)] == [
            1,
            2,
            10,
        ]
