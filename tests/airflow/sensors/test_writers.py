"""What the triggerer's supervisor tells of the runs that write a table (C30)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from airflow_chronon.airflow.sensors import writers
from airflow_chronon.airflow.sensors.writers import TableOutlook, WriterHistories
from airflow_chronon.core.calendar.instants import HOUR, Instant
from airflow_chronon.core.partitions.listing import TableListing
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.core.waits.outlook import Forecast, Outlook, TableWriter
from airflow_chronon.core.waits.poll import Observation, query_of
from tests.support.schedules import at, schedule_of
from tests.support.supervisor import FakeRun, FakeSupervisor

DAG = "staging_query.t.s.hourly__1"
HOURLY = schedule_of("5 * * * *", HOUR)
NOW = at("2026-06-01T10:30:00Z")


def hour(number: int) -> Instant:
    return at("2026-06-01T00:00:00Z") + number * HOUR


def scheduled(number: int, last_task: str | None = "success", state: str = "success") -> FakeRun:
    """The scheduled run of an hour of the first of June."""
    return FakeRun(f"scheduled__{HOURLY.label(hour(number))}", hour(number), state, last_task)


def replay(number: int, state: str) -> FakeRun:
    return FakeRun(f"backfill__{HOURLY.label(hour(number))}__12ab34cd", None, state, None)


def forecasts(supervisor: FakeSupervisor, hours: Iterable[int]) -> dict[Instant, Forecast]:
    async def ask() -> dict[Instant, Forecast]:
        histories = WriterHistories([TableWriter(DAG, Mode.BACKFILL, HOURLY)], supervisor)
        starts = frozenset(map(hour, hours))
        return await histories.forecasts(await histories.read(starts, now=NOW), starts, now=NOW)

    return asyncio.run(ask())


def outlooks(supervisor: FakeSupervisor, hours: Iterable[int]) -> list[str]:
    return [found.outlook.value for _, found in sorted(forecasts(supervisor, hours).items())]


def test_before_the_first_run_everything_is_to_come() -> None:
    assert outlooks(FakeSupervisor(), [3, 9]) == ["to come", "to come"]


def test_a_table_that_begins_with_its_newest_partition_has_none_before_it() -> None:
    found = forecasts(FakeSupervisor([scheduled(9)]), [7, 8])
    assert [each.outlook for each in found.values()] == [Outlook.NEVER] * 2
    assert all(each.is_before_first for each in found.values())


def test_a_replay_of_an_old_partition_moves_no_beginning() -> None:  # it has no logical date
    runs = [scheduled(9), FakeRun(f"backfill__{HOURLY.label(hour(2))}__0011aabb", None)]
    found = forecasts(FakeSupervisor(runs), [3, 7])
    assert all(each.outlook is Outlook.NEVER and each.is_before_first for each in found.values())


def test_an_outage_is_not_the_beginning() -> None:  # H8
    found = forecasts(FakeSupervisor([scheduled(1), scheduled(2), scheduled(9)]), [0, 5])
    assert [found[hour(n)].outlook for n in (0, 5)] == [Outlook.NEVER] * 2
    assert [found[hour(n)].is_before_first for n in (0, 5)] == [True, False]


@pytest.mark.parametrize(
    ("last_task", "expected"),
    [
        ("success", "gone"),
        ("failed", "failed"),
        ("upstream_failed", "failed"),
        ("skipped", "passed over"),
        (None, "to come"),
        ("deferred", "to come"),
        ("up_for_retry", "to come"),
    ],
)
def test_the_last_task_of_a_run_tells_how_it_stands(last_task: str | None, expected: str) -> None:
    assert outlooks(FakeSupervisor([scheduled(8, last_task), scheduled(9)]), [8]) == [expected]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_an_unfinished_replay_may_write_what_is_missing(state: str) -> None:
    runs = [scheduled(8, "skipped"), scheduled(9), replay(3, state)]
    assert outlooks(FakeSupervisor(runs), [3, 8]) == ["to come", "to come"]


def test_an_unfinished_scheduled_run_is_not_a_replay() -> None:
    runs = [scheduled(8, None, "running"), scheduled(9, None, "queued")]
    assert outlooks(FakeSupervisor(runs), [3]) == ["never"]


def test_a_run_by_hand_with_a_logical_date_is_not_the_newest_scheduled_one() -> None:
    runs = [scheduled(5), FakeRun("manual__2026-06-01T09:00:00+00:00", hour(9))]
    assert outlooks(FakeSupervisor(runs), [9]) == ["to come"]


def test_what_is_gone_from_airflow_is_to_come() -> None:  # its DAG was deleted, or is another branch's
    assert outlooks(FakeSupervisor([FakeRun("scheduled__2026-06-01-09-00", hour(9), dag_id="other")]), [3]) == [
        "to come"
    ]


def test_few_questions_are_asked_and_the_beginning_only_once() -> None:
    supervisor = FakeSupervisor([scheduled(n) for n in range(4, 10)])

    async def poll_twice() -> None:
        histories = WriterHistories([TableWriter(DAG, Mode.BACKFILL, HOURLY)], supervisor)
        starts = frozenset(map(hour, range(-100, 4)))
        for _ in range(2):
            await histories.forecasts(await histories.read(starts, now=NOW), starts, now=NOW)

    asyncio.run(poll_twice())
    # twice what is newest, how runs stand, what is unfinished and what has failed; what is older, once
    assert len(supervisor.asked) <= 18


def test_a_replay_may_write_what_no_scheduled_run_does() -> None:  # of a schedule that covers the newest partition only
    newest_only = schedule_of("5 */6 * * *", HOUR, newest=True)
    label = newest_only.label(hour(5))
    runs = [FakeRun(f"scheduled__{label}", hour(5)), replay(3, "running")]

    async def ask(*hours: int) -> list[Outlook]:
        histories = WriterHistories([TableWriter(DAG, Mode.BACKFILL, newest_only)], FakeSupervisor(runs))
        starts = frozenset(map(hour, hours))
        found = await histories.forecasts(await histories.read(starts, now=NOW), starts, now=NOW)
        return [each.outlook for _, each in sorted(found.items())]

    assert asyncio.run(ask(3)) == [Outlook.TO_COME]
    runs.pop()
    assert asyncio.run(ask(3)) == [Outlook.NEVER]


def replayed(number: int, last_task: str, state: str = "failed", suffix: str = "12ab34cd") -> FakeRun:
    """A replay of an hour that has ended."""
    return FakeRun(f"backfill__{HOURLY.label(hour(number))}__{suffix}", None, state, last_task)


class TestReplaysOfPartitionsThatWereNeverScheduled:
    """Their runs have a random part in their ids: they are found among all runs of the DAG."""

    def test_one_that_failed_is_waited_for(self) -> None:
        runs = [scheduled(9), replayed(3, "upstream_failed"), replayed(4, "success", "success")]
        assert outlooks(FakeSupervisor(runs), [3, 4, 5]) == ["failed", "gone", "never"]

    def test_among_several_one_that_failed_counts(self) -> None:
        runs = [scheduled(9), replayed(3, "failed"), replayed(3, "success", "success", "00ff00ff")]
        assert outlooks(FakeSupervisor(runs), [3]) == ["failed"]

    def test_the_failed_replay_of_a_run_that_was_passed_over(self) -> None:
        runs = [scheduled(3, "skipped"), scheduled(9), replayed(3, "failed")]
        assert outlooks(FakeSupervisor(runs), [3]) == ["failed"]

    def test_all_runs_are_listed_only_when_another_one_has_failed(self) -> None:
        supervisor = FakeSupervisor([scheduled(9), replayed(3, "failed")])

        async def listings(histories: WriterHistories) -> int:
            starts = frozenset((hour(3), hour(4)))
            await histories.forecasts(await histories.read(starts, now=NOW), starts, now=NOW)
            return sum(
                getattr(each, "run_ids", None) is None and hasattr(each, "task_ids") for each in supervisor.asked
            )

        async def story() -> list[int]:
            histories = WriterHistories([TableWriter(DAG, Mode.BACKFILL, HOURLY)], supervisor)
            found = [await listings(histories), await listings(histories)]
            supervisor.runs.append(replayed(4, "failed"))
            return [*found, await listings(histories)]

        assert asyncio.run(story()) == [1, 1, 2]

    def test_of_a_dag_with_very_many_runs_it_is_not_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writers, "_LISTED_RUNS", 1)
        assert outlooks(FakeSupervisor([scheduled(9), replayed(3, "failed")]), [3]) == ["never"]


class TestPolls:
    """Of all who wait for one table."""

    @staticmethod
    def polls(supervisor: FakeSupervisor, wanted: Iterable[int], *listings: Iterable[int]) -> dict[Instant, Forecast]:
        """The forecasts of the last of some polls, each with what is listed in it."""
        wait = Wait("t", "ds", tuple(HOURLY.label(hour(each)) for each in wanted), spec=HOURLY.spec)

        async def poll() -> dict[Instant, Forecast]:
            outlook = TableOutlook([TableWriter(DAG, Mode.BACKFILL, HOURLY)], supervisor)
            observation = Observation({})
            for listed in listings:
                await outlook.ask([wait], now=NOW)
                listing = TableListing.of("ds", [HOURLY.label(hour(each)) for each in listed])
                observation = await outlook.complete(Observation({query_of(wait): listing}), [wait], now=NOW)
            assert not outlook.trouble
            return dict(observation.forecasts)

        return asyncio.run(poll())

    def test_what_is_beyond_the_most_that_are_asked_about_is_not_given_up(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writers, "MOST_ASKED", 3)
        supervisor = FakeSupervisor([scheduled(0, None, "running"), *map(scheduled, range(6, 10))])
        found = self.polls(supervisor, range(10), [], [])
        assert sorted(found) == [hour(7), hour(8), hour(9)]
        found = self.polls(supervisor, range(10), range(1, 10), range(1, 10), range(1, 10))
        assert {start: each.outlook for start, each in found.items()} == {hour(0): Outlook.TO_COME}

    def test_only_what_is_missing_is_asked_about_again(self) -> None:
        supervisor = FakeSupervisor([*map(scheduled, range(4)), scheduled(9)])
        found = self.polls(supervisor, range(10), range(4), range(4))
        assert {each.outlook for start, each in found.items() if start < hour(9)} == {Outlook.NEVER}
        before = len(supervisor.asked)
        self.polls(supervisor, range(4), range(4), range(4))
        again = [each for each in supervisor.asked[before:] if "2026-06-01-03-00" in str(each)]
        assert len(again) == 2  # the newest run, and once the partitions themselves


class TestAChangedCron:
    """Within the day: the runs of the old cron have other ids (H20)."""

    NOON = schedule_of("0 12 * * *", HOUR)

    def outlooks(self, supervisor: FakeSupervisor, *moments: str) -> list[tuple[str, bool]]:
        async def ask() -> dict[Instant, Forecast]:
            histories = WriterHistories([TableWriter(DAG, Mode.BACKFILL, self.NOON)], supervisor)
            starts, now = frozenset(map(at, moments)), at("2026-06-06T12:30:00Z")
            return await histories.forecasts(await histories.read(starts, now=now), starts, now=now)

        return [(each.outlook.value, each.is_before_first) for _, each in sorted(asyncio.run(ask()).items())]

    @pytest.mark.parametrize(
        ("last_task", "state", "expected"),
        [("failed", "failed", "failed"), (None, "running", "to come"), ("skipped", "success", "passed over")],
    )
    def test_a_run_of_the_old_one_decides_about_what_it_was_to_write(
        self, last_task: str | None, state: str, expected: str
    ) -> None:
        runs = [("2026-06-02-05-00", "success"), ("2026-06-05-11-00", "success"), ("2026-06-06-11-00", "success")]
        supervisor = FakeSupervisor([FakeRun(f"scheduled__{key}", None, last_task=last) for key, last in runs])
        supervisor.runs.append(FakeRun("scheduled__2026-06-03-05-00", None, state, last_task))
        assert self.outlooks(supervisor, "2026-06-02T20:00:00Z") == [(expected, False)]

    def test_the_run_that_was_due_may_end_after_todays_would_have(self) -> None:
        runs = [("2026-06-01-05-00", "success"), ("2026-06-03-05-00", "failed"), ("2026-06-03-11-00", "success")]
        supervisor = FakeSupervisor([FakeRun(f"scheduled__{key}", None, last_task=last) for key, last in runs])
        assert self.outlooks(supervisor, "2026-06-02T08:00:00Z") == [("failed", False)]

    def test_a_failed_one_within_one_that_landed_and_only_looks_like_todays(self) -> None:
        # the old cron's run of the hours from six to noon has the id that today's daily run has
        runs = [("2026-06-02-05-00", "success"), ("2026-06-03-05-00", "failed"), ("2026-06-03-11-00", "success")]
        supervisor = FakeSupervisor([FakeRun(f"scheduled__{key}", None, last_task=last) for key, last in runs])
        assert self.outlooks(supervisor, "2026-06-03T02:00:00Z") == [("failed", False)]
        assert self.outlooks(supervisor, "2026-06-03T08:00:00Z") == [("gone", False)]

    def test_what_lies_between_runs_of_both_is_a_hole_and_no_beginning(self) -> None:
        keys = ("2026-06-02-05-00", "2026-06-05-11-00", "2026-06-06-11-00")
        supervisor = FakeSupervisor([FakeRun(f"scheduled__{key}", None) for key in keys])
        assert self.outlooks(supervisor, "2026-06-03T20:00:00Z") == [("never", False)]
        assert self.outlooks(supervisor, "2026-05-31T20:00:00Z") == [("never", True)]
