"""The variables of a job (H5, H7)."""

from __future__ import annotations

from typing import Any

from airflow_chronon.core.calendar.instants import TimeWindow, parse_instant
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.settings.environment import WINDOW_VARIABLES, job_environment

WINDOW = TimeWindow(parse_instant("2026-06-01T01:00:00Z"), parse_instant("2026-06-01T07:00:00Z"))
NAMES: dict[str, Any] = {"conf": "group_by/a", "mode": "backfill", "run_id": "run-1"}


def test_a_window_is_reported_in_whole_seconds_with_a_z():
    labels = (PartitionKey("2026-06-01-01-00"), PartitionKey("2026-06-01-04-00"))
    found = job_environment(**NAMES, window=WINDOW, partitions=labels)
    assert found["HOPS_START_TIME"] == found["CHRONON_START_TIME"] == "2026-06-01T01:00:00Z"
    assert found["HOPS_END_TIME"] == found["CHRONON_END_TIME"] == "2026-06-01T07:00:00Z"
    assert found["HOPS_LOGICAL_DATE"] == found["CHRONON_LOGICAL_DATE"] == "2026-06-01T01:00:00Z"  # H7: its start
    assert found["CHRONON_PARTITION"] == "2026-06-01-04-00"
    assert found["CHRONON_PARTITIONS"] == "2026-06-01-01-00,2026-06-01-04-00"
    assert set(found) == {*WINDOW_VARIABLES, "CHRONON_CONF", "CHRONON_MODE", "CHRONON_RUN_ID"}


def test_a_logical_date_of_its_own_is_reported():
    found = job_environment(**NAMES, window=WINDOW, logical_date=WINDOW.end)
    assert found["HOPS_LOGICAL_DATE"] == "2026-06-01T07:00:00Z"
    assert "CHRONON_PARTITION" not in found


def test_without_a_window_only_the_names_are_reported():
    # H7
    assert job_environment(**NAMES, window=None) == {
        "CHRONON_CONF": "group_by/a",
        "CHRONON_MODE": "backfill",
        "CHRONON_RUN_ID": "run-1",
    }


def test_what_is_given_on_the_run_wins_over_the_jobs_own_and_that_over_what_is_worked_out():
    # H5
    own = {"HOPS_START_TIME": "own", "HOPS_END_TIME": "own", "REGION": "eu"}
    found = job_environment(**NAMES, window=WINDOW, own=own, given={"HOPS_START_TIME": "given"})
    assert (found["HOPS_START_TIME"], found["HOPS_END_TIME"], found["REGION"]) == ("given", "own", "eu")
    assert found["CHRONON_START_TIME"] == "2026-06-01T01:00:00Z"
    assert own["HOPS_START_TIME"] == "own"


def test_more_partitions_than_a_variable_can_hold_keep_no_job_from_starting() -> None:
    # S7: a month of minutes is 734 KB of labels, and Linux takes 128 KiB
    labels = tuple(PartitionKey(f"{number:016}") for number in range(43_200))
    found = job_environment(conf="c", mode="backfill", run_id="r", window=TimeWindow(0, 60), partitions=labels)
    assert found["CHRONON_PARTITION"] == labels[-1] and "CHRONON_PARTITIONS" not in found
