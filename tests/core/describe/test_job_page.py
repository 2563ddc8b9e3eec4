"""The page of a job in Airflow."""

from __future__ import annotations

import pytest

from airflow_chronon.core.describe.page import plan_page
from tests.support.jobs import HEAD, plan_of


def runs_shown(schedule: str) -> tuple[str, list[str]]:
    """The heading over the runs, and a line for each."""
    page = plan_page(plan_of(f"{HEAD}schedule: {{{schedule}}}\n"))
    heading, *lines = page.split("#### ")[2].splitlines()
    return heading, [line for line in lines if line.startswith("| 20")]


@pytest.mark.parametrize("start", ["", ", start_time: 2026-01-15"])
def test_a_job_that_began_before_it_shows_the_reference_week(start: str) -> None:
    heading, lines = runs_shown(f"cron_expression: '0 0 * * *'{start}")
    assert heading == "Runs of a reference week" and len(lines) == 7
    assert lines[0].startswith("| 2026-06-01T00:00:00Z | 2026-05-31T00:00:00Z |")


def test_a_job_that_begins_later_shows_its_first_runs_with_the_short_first_window() -> None:  # H3
    heading, lines = runs_shown("cron_expression: '0 0 1 * *', start_time: '2026-07-20T10:05:00Z'")
    assert heading == "Runs from its start on"
    assert lines[0] == "| 2026-08-01T00:00:00Z | 2026-07-20T10:05:00Z | 2026-07-20T10:05:00Z | 2026-08-01T00:00:00Z |"
    assert lines[1].startswith("| 2026-09-01T00:00:00Z | 2026-08-01T00:00:00Z |")


def test_a_page_without_catch_up_promises_no_run_since_its_start() -> None:  # H8
    page = plan_page(plan_of(HEAD + "schedule: {cron_expression: '@hourly', start_time: '2026-01-01'}"))
    assert "No interval begins before 2026-01-01T00:00:00Z" in page
    assert "waits for its next fire" in page and "The first interval begins" not in page
