"""What an Airflow run of a job asks for (H4, H7)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import HOUR, TimeWindow, parse_instant
from airflow_chronon.core.calendar.quartz import read_cron
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import IntervalSchedule, NoSuchInterval
from airflow_chronon.core.schedules.request import RunRequest

NOW = parse_instant("2026-06-02T00:00:00Z")
START = parse_instant("2026-06-01T10:05:00Z")
MOVED = IntervalSchedule(read_cron("@hourly"), CatchUp(start=START), offset=HOUR)


def test_a_data_interval_that_is_given_by_hand_is_the_window_as_it_is() -> None:  # H7
    given = TimeWindow(parse_instant("2026-06-01T12:00:00Z"), parse_instant("2026-06-01T13:00:00Z"))
    found = MOVED.requested(RunRequest(interval=given), now=NOW)
    assert found is not None and (found.window, found.logical_date) == (given, given.start)


def test_the_interval_of_a_scheduled_run_is_moved_as_the_schedule_says() -> None:  # H2
    interval = TimeWindow(parse_instant("2026-06-01T12:00:00Z"), parse_instant("2026-06-01T13:00:00Z"))
    found = MOVED.requested(RunRequest("2026-06-01T12:00:00Z", interval=interval), now=NOW)
    assert found is not None and found.window == TimeWindow(interval.start - HOUR, interval.end - HOUR)


def test_a_key_before_the_start_would_reach_over_it() -> None:  # H4
    with pytest.raises(NoSuchInterval, match="reaches over the schedule's start 2026-06-01T10:05:00Z"):
        MOVED.requested(RunRequest("2026-06-01T10:00:00Z"), now=NOW)
    first = MOVED.requested(RunRequest("2026-06-01T10:05:00Z"), now=NOW)
    assert first is not None and first.logical_date == START
    earlier = MOVED.requested(RunRequest("2026-06-01T09:00:00Z"), now=NOW)
    assert earlier is not None  # replays before the start are good


@pytest.mark.parametrize(
    ("request_", "interval"),
    [
        pytest.param({"partition_key": "2026-06-01T12:00:00Z"}, ("12:00", "13:00"), id="a replay, by its key"),
        pytest.param({"partition_key": "2026-06-01T12:30:00Z"}, ("12:30", "13:00"), id="under an earlier cron"),
        pytest.param({"partition_key": "2026-06-01"}, ("00:00", "01:00"), id="before the start"),
        pytest.param({"start_time": "2026-06-01T12:00:00Z", "end_time": "2026-06-01T13:00:00Z"}, None, id="by hand"),
        pytest.param({"partition_key": "noon"}, None, id="a key of something else"),
        pytest.param({}, None, id="nothing asked"),
    ],
)
def test_a_past_run_covers_its_interval_whatever_the_cron_says_today(
    request_: dict[str, str], interval: tuple[str, str] | None
) -> None:  # H20
    run = MOVED.recorded(RunRequest(**request_), now=NOW)  # type: ignore[arg-type]
    expected = None if interval is None else TimeWindow(*(parse_instant(f"2026-06-01T{text}") for text in interval))
    assert (None if run is None else run.interval) == expected


def test_a_past_scheduled_run_covers_the_interval_with_which_it_was_made() -> None:  # H18, H20
    made = TimeWindow(parse_instant("2026-06-01T00:00:00Z"), parse_instant("2026-06-02T00:00:00Z"))
    run = MOVED.recorded(RunRequest("2026-06-01T00:00:00Z", is_scheduled=True, interval=made), now=NOW)
    assert run is not None and run.interval == made
