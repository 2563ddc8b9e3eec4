"""The argument list of a job (H6)."""

from __future__ import annotations

import pytest

from airflow_chronon.engine.job_argv import JobStart, job_argv

DATE = "2026-06-01T09:00:00Z"


def started(*template: str) -> list[str]:
    """What is appended to a command that wants the legacy argument."""
    start = JobStart("etl.hourly", "jobs/etl/hourly.yaml", "run", DATE)
    return job_argv(template, start, legacy_start_time=True)[len(template) :]


@pytest.mark.parametrize(
    "command",
    [
        "papermill in.ipynb out.ipynb",
        "/opt/venv/bin/papermill in.ipynb",
        "python3 -m papermill in.ipynb",
        "python3 -mpapermill in.ipynb",
        "uv run papermill in.ipynb",
        "conda run -n reports papermill in.ipynb",
        "/usr/bin/env papermill in.ipynb",
    ],
)
def test_papermill_gets_a_parameter_however_it_is_started(command: str) -> None:  # H6
    assert started(*command.split()) == ["-p", "start_time", DATE]


@pytest.mark.parametrize("command", ["python3 job.py", "python3 -m reports papermill.ipynb", "uv run papermills"])
def test_any_other_program_gets_the_option(command: str) -> None:  # H6
    assert started(*command.split()) == ["-start_time", DATE]
