"""The window helper that job code imports (H5, H7)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import airflow_chronon.window as module
from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.calendar.quartz import read_cron
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.settings.environment import job_environment
from airflow_chronon.window import Window, WindowError, current_window

NINE = datetime(2026, 6, 3, 9, tzinfo=UTC)
TEN = datetime(2026, 6, 3, 10, tzinfo=UTC)


def environ(start: str = "", end: str = "", logical_date: str = "", prefix: str = "HOPS") -> dict[str, str]:
    return {f"{prefix}_START_TIME": start, f"{prefix}_END_TIME": end, f"{prefix}_LOGICAL_DATE": logical_date}


class TestReading:
    @pytest.mark.parametrize(
        "start",
        [
            pytest.param("2026-06-03T09:00:00Z", id="as the scheduler writes it"),
            pytest.param("2026-06-03T09:00:00+00:00", id="as a manual run of Hopsworks writes it"),
            pytest.param("2026-06-03T09:00:00.000000+00:00", id="with microseconds"),
            pytest.param("2026-06-03T09:00:00.0Z", id="with a tenth of a second"),
            pytest.param("2026-06-03T09:00:00.000000000Z", id="with nanoseconds"),
            pytest.param("2026-06-03T11:00:00+02:00", id="with another offset"),
            pytest.param("2026-06-03T04:00:00-0500", id="with an offset without a colon"),
            pytest.param("2026-06-03 09:00", id="naive is UTC"),
        ],
    )
    def test_every_spelling_of_an_instant(self, start: str) -> None:  # H5
        assert current_window(environ(start, "2026-06-03T10:00:00Z", start)) == Window(NINE, TEN, NINE)

    def test_microseconds_are_kept(self) -> None:
        window = current_window(environ("2026-06-03T09:00:00.25Z", "2026-06-03T10:00:00Z"))
        assert window is not None and window.start == NINE.replace(microsecond=250_000)

    def test_the_logical_date_is_its_own(self) -> None:  # H2
        window = current_window(environ("2026-06-03T08:00:00Z", "2026-06-03T09:00:00Z", "2026-06-03T09:00:00Z"))
        assert window is not None and window.logical_date == NINE

    def test_without_a_logical_date_it_is_the_start(self) -> None:  # H7
        window = current_window(environ("2026-06-03T09:00:00Z", "2026-06-03T10:00:00Z"))
        assert window is not None and window.logical_date == NINE

    def test_either_family_of_names_will_do_and_hops_wins(self) -> None:
        own = environ("2026-06-03T09:00:00Z", "2026-06-03T10:00:00Z", prefix="CHRONON")
        assert current_window(own) == Window(NINE, TEN, NINE)
        assert current_window(own | {"HOPS_END_TIME": "2026-06-03T09:30:00Z"}) == Window(
            NINE, TEN.replace(hour=9, minute=30), NINE
        )

    def test_a_run_without_a_window_has_none(self) -> None:  # H7
        assert current_window({}) is None
        assert current_window(environ()) is None

    def test_the_process_is_asked_by_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in environ("2026-06-03T09:00:00Z", "2026-06-03T10:00:00Z").items():
            monkeypatch.setenv(name, value)
        assert current_window() == Window(NINE, TEN, NINE)

    def test_it_reads_what_a_scheduled_run_sets(self) -> None:  # H2, H5
        run = IntervalSchedule(read_cron("@hourly"), offset=3600).run_at(int(TEN.timestamp()))
        given = job_environment(conf="c", mode="m", run_id="r", window=run.window, logical_date=run.logical_date)
        assert current_window(given) == Window(NINE.replace(hour=8), NINE, NINE)

    def test_it_reads_what_a_manual_run_sets(self) -> None:  # H7
        window = TimeWindow(int(NINE.timestamp()), int(TEN.timestamp()))
        assert current_window(job_environment(conf="c", mode="m", run_id="r", window=window)) == Window(NINE, TEN, NINE)
        assert current_window(job_environment(conf="c", mode="m", run_id="r", window=None)) is None


class TestErrors:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (environ("2026-06-03T09:00:00Z"), "HOPS_START_TIME is set and HOPS_END_TIME is not"),
            (environ("", "2026-06-03T09:00:00Z"), "HOPS_END_TIME is set and HOPS_START_TIME is not"),
            (environ("2026-06-03T09:00:00Z", "2026-06-03T09:00:00Z"), "not after its start"),
            (environ("yesterday", "2026-06-03T09:00:00Z"), "HOPS_START_TIME is 'yesterday'"),
            (environ("2026-06-31T09:00:00Z", "2026-07-03T09:00:00Z"), "HOPS_START_TIME is '2026-06-31T09:00:00Z'"),
            (environ("2026-06-03T09:00:00Z", "2026-06-03T10:00:00Z", "x"), "HOPS_LOGICAL_DATE is 'x'"),
        ],
    )
    def test_half_a_window_and_bad_instants_are_one_clear_error(self, given: dict[str, str], said: str) -> None:
        with pytest.raises(WindowError, match=said):
            current_window(given)


class TestStandalone:
    def test_it_imports_the_standard_library_only(self) -> None:  # H5
        tree = ast.parse(Path(module.__file__).read_text(), feature_version=(3, 10))
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert {str(each).partition(".")[0] for each in modules} <= set(sys.stdlib_module_names)

    def test_the_file_alone_is_enough_for_a_job(self, tmp_path: Path) -> None:
        (tmp_path / "window.py").write_bytes(Path(module.__file__).read_bytes())
        code = "from window import current_window; print(current_window().end.isoformat())"
        given = environ("2026-06-03T09:00:00Z", "2026-06-03T10:00:00Z") | {"PATH": os.environ["PATH"]}
        done = subprocess.run(
            [sys.executable, "-S", "-c", code], cwd=tmp_path, env=given, capture_output=True, text=True
        )
        assert done.stdout.strip() == TEN.isoformat(), done.stderr
