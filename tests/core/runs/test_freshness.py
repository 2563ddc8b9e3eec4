"""Lag, gaps and late partitions, judged by the grid alone."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.freshness import HORIZON, Freshness, FreshnessRecord, judge_freshness
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import at, plan_of, staging_query

NOW = at("2026-06-10 05:30")


def hourly(schedule: str = "5 * * * *", **settings: Any) -> ConfPlan:
    return plan_of(staging_query(schedule=schedule, interval="1h"), settings=Settings(**settings))


def hours(*labels: str) -> StartRanges:
    return StartRanges.of_starts(map(at, labels), interval=HOUR)


def judged(plan: ConfPlan, landed: StartRanges, *, freshness: int | None = 2 * HOUR, now: int = NOW) -> Freshness:
    return judge_freshness(plan.schedule, landed, freshness=freshness, now=now)


def test_a_partition_is_late_when_its_end_is_as_long_ago_as_freshness_says_and_not_a_second_before() -> None:
    landed = hours("2026-06-10 01:00", "2026-06-10 02:00")
    plan = hourly(start_date="2026-06-10T01:00Z")
    assert judged(plan, landed, now=at("2026-06-10 06:00") - 1).late == ()
    assert judged(plan, landed, now=at("2026-06-10 06:00")).late == (at("2026-06-10 03:00"),)


def test_lag_is_the_time_since_the_end_of_the_newest_that_landed() -> None:
    assert judged(hourly(), hours("2026-06-10 01:00", "2026-06-09 22:00")).lag == 3 * HOUR + HOUR // 2
    assert judged(hourly(), hours()).lag is None
    assert judged(hourly(), hours("2026-06-10 05:00")).lag == 0  # landed before it closed


def test_what_is_missing_counts_from_the_first_that_landed() -> None:
    found = judged(hourly(), hours("2026-06-10 00:00", "2026-06-10 02:00"), freshness=None)
    assert found.missing == 3  # one, three and four o'clock
    assert found.late == ()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"start_date": "2026-06-10T02:00Z"}, 2),
        ({"end_date": "2026-06-10T02:00Z"}, 2),
        ({"start_date": "2026-06-10T00:00Z", "end_date": "2026-06-10T02:00Z"}, 2),
        ({"start_date": "2026-06-10T00:00Z", "skip_to_date": "2026-06-10T01:00Z"}, 3),
    ],
)
def test_what_the_schedule_is_not_to_write_is_never_late(settings: dict[str, str], expected: int) -> None:
    plan = hourly(**settings)
    late = judged(plan, hours("2026-06-09 23:00"), freshness=0, now=at("2026-06-10 04:10")).late
    assert len(late) == expected


def test_a_table_that_never_began_is_late_with_its_newest_partition_or_from_its_start_date_on() -> None:
    now = at("2026-06-10 04:10")
    assert judged(hourly(), hours(), freshness=0, now=now).late == (at("2026-06-10 03:00"),)
    begun = hourly(start_date="2026-06-10T01:00Z")
    assert len(judged(begun, hours(), freshness=0, now=now).late) == 3


def test_a_schedule_of_the_newest_day_alone_owes_no_other_day() -> None:
    plan = plan_of(staging_query(schedule="0 6 * * MON"), settings=Settings(covers="newest", start_date="2026-06-01"))  # type: ignore[arg-type]
    landed = StartRanges.of_starts([at("2026-06-07")], interval=DAY)
    found = judge_freshness(plan.schedule, landed, freshness=DAY, now=at("2026-06-17"))
    assert found.late == (at("2026-06-14"),)


def test_a_conf_without_a_schedule_is_never_late() -> None:
    assert judged(hourly(schedule="@never"), hours()).late == ()


def test_a_table_that_stopped_years_ago_is_counted_within_a_horizon() -> None:
    plan = plan_of(staging_query(schedule="* * * * *", interval="1m"))
    found = judge_freshness(plan.schedule, StartRanges(60, (range(0, 60, 60),)), freshness=0, now=NOW)
    assert len(found.late) == found.missing == HORIZON


def test_only_what_becomes_late_from_now_on_is_news_and_once() -> None:
    interval, freshness = HOUR, HOUR
    late = (at("2026-06-10 01:00"), at("2026-06-10 02:00"))
    record = FreshnessRecord().after(Freshness(0, 2, late), interval=interval, freshness=freshness, now=NOW)
    assert record.news(Freshness(0, 2, late), interval=interval, freshness=freshness) == ()  # late before anyone asked
    later = (*late, at("2026-06-10 04:00"))
    found = Freshness(0, 3, later)
    record = record.after(found, interval=interval, freshness=freshness, now=NOW + HOUR)
    (start,) = record.news(found, interval=interval, freshness=freshness)
    assert start == at("2026-06-10 04:00")
    record = record.with_told(start, interval=interval)
    assert record.news(found, interval=interval, freshness=freshness) == ()


def test_what_has_landed_is_forgotten_and_is_news_again_when_it_goes() -> None:
    late = Freshness(0, 1, (at("2026-06-10 06:00"),))
    record = FreshnessRecord(since=NOW).with_told(late.late[0], interval=HOUR)
    landed = record.after(Freshness(0, 0, ()), interval=HOUR, freshness=HOUR, now=NOW)
    assert landed.told.ranges == ()
    assert landed.news(late, interval=HOUR, freshness=HOUR) == late.late


def test_a_record_survives_being_written_down() -> None:
    record = FreshnessRecord(NOW, NOW - DAY).with_told(at("2026-06-10 01:00"), interval=HOUR)
    assert FreshnessRecord.from_json(record.to_json(), interval=HOUR) == record
