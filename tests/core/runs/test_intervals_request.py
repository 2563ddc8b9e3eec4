"""What an Airflow run of a job asks for (H4, H7)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import HOUR, TimeWindow, parse_instant
from airflow_chronon.core.calendar.quartz import read_cron
from airflow_chronon.core.runs.intervals_request import JobRunRequest, requested_window
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.intervals import JobSchedule, NoSuchInterval

NOW = parse_instant("2026-06-02T00:00:00Z")
START = parse_instant("2026-06-01T10:05:00Z")
MOVED = JobSchedule(read_cron("@hourly"), CatchUp(start=START), offset=HOUR)


def test_a_data_interval_that_is_given_by_hand_is_the_window_as_it_is() -> None:  # H7
    given = TimeWindow(parse_instant("2026-06-01T12:00:00Z"), parse_instant("2026-06-01T13:00:00Z"))
    found = requested_window(JobRunRequest(interval=given), MOVED, now=NOW)
    assert found is not None and (found.window, found.logical_date) == (given, given.start)


def test_the_interval_of_a_scheduled_run_is_moved_as_the_schedule_says() -> None:  # H2
    interval = TimeWindow(parse_instant("2026-06-01T12:00:00Z"), parse_instant("2026-06-01T13:00:00Z"))
    found = requested_window(JobRunRequest("2026-06-01T12:00:00Z", interval), MOVED, now=NOW)
    assert found is not None and found.window == TimeWindow(interval.start - HOUR, interval.end - HOUR)


def test_a_key_before_the_start_would_reach_over_it() -> None:  # H4
    with pytest.raises(NoSuchInterval, match="reaches over the schedule's start 2026-06-01T10:05:00Z"):
        requested_window(JobRunRequest("2026-06-01T10:00:00Z"), MOVED, now=NOW)
    first = requested_window(JobRunRequest("2026-06-01T10:05:00Z"), MOVED, now=NOW)
    assert first is not None and first.logical_date == START
    earlier = requested_window(JobRunRequest("2026-06-01T09:00:00Z"), MOVED, now=NOW)
    assert earlier is not None  # replays before the start are good
