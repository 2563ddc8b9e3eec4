"""What a job's command gets, and what it is refused (H2 to H7, H18); the command really runs."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.log import redact

from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.dags import build_dags
from tests.support.airflow_jobs import context, job_plan, see, state_of, write_job
from tests.support.schedules import at

DAG_ID = "job.etl.hourly"
SHOW = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps([sys.argv[2:], dict(os.environ)]))"
WINDOW = ("HOPS_START_TIME", "HOPS_END_TIME", "HOPS_LOGICAL_DATE")


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """Where the job tells what it was given."""
    return tmp_path / "seen.json"


@pytest.fixture
def run(tmp_path: Path, seen: Path, clock, monkeypatch):
    """Run the task of a job as a worker does; returns the arguments and the environment that its command saw."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    for name in WINDOW:
        monkeypatch.delenv(name, raising=False)
    logger = logging.getLogger("job")
    monkeypatch.setattr("airflow_chronon.airflow.operators.job.JobOperator.log", logger, raising=False)
    clock.instant = at("2026-06-10T00:00:00Z")
    root = tmp_path / "root"

    def run(given: dict[str, Any], *, argv: tuple[str, ...] = (), **document: Any) -> tuple[list[str], dict[str, str]]:
        schedule = document.pop("schedule", {"cron_expression": "0 * * * *"})
        runner = {"kind": "command", "argv": [sys.executable, "-c", SHOW, str(seen), *argv]}
        write_job(root, runner={**runner, **document.pop("runner", {})}, schedule=schedule, **document)
        see(state_of(tmp_path / "home"), job_plan(root, DAG_ID), now=at("2026-06-01T00:20:00Z"))
        build_dags(conf_root=root)[DAG_ID].get_task("run").execute(given)
        arguments, environment = json.loads(seen.read_text())
        return arguments, environment

    return run


def window(environment: dict[str, str]) -> tuple[str | None, ...]:
    return tuple(environment.get(name) for name in WINDOW)


NINE, TEN = "2026-06-01T09:00:00Z", "2026-06-01T10:00:00Z"


class TestTheWindow:
    def test_of_a_scheduled_run_is_its_interval(self, run):
        # H2, H5
        _, environment = run(context(NINE, interval=(at(NINE), at(TEN)), run_type="scheduled"))
        assert window(environment) == (NINE, TEN, NINE)
        assert environment["CHRONON_START_TIME"] == NINE and environment["CHRONON_PARTITION"] == NINE
        assert environment["CHRONON_CONF"] == "job/etl.hourly"
        assert (environment["CHRONON_MODE"], environment["CHRONON_RUN_ID"]) == ("run", "run-1")

    def test_of_a_replay_is_worked_out_from_its_key(self, run):
        # H18: a re-run years later sees what the first run saw
        assert window(run(context(NINE, run_type="backfill"))[1]) == (NINE, TEN, NINE)

    def test_is_moved_by_the_offset(self, run):
        # H2: eleven o'clock with 25 hours gives 09:00 to 10:00 of the day before
        schedule = {"cron_expression": "0 * * * *", "start_time_offset_seconds": 25 * HOUR}
        _, environment = run(context(TEN), schedule=schedule)
        assert window(environment) == ("2026-05-31T09:00:00Z", "2026-05-31T10:00:00Z", TEN)

    def test_is_widened_by_the_lookback(self, run):
        # H3
        schedule = {"cron_expression": "0 * * * *", "lookback_seconds": 25 * HOUR}
        _, environment = run(context(TEN, interval=(at(TEN), at(TEN) + HOUR), run_type="scheduled"), schedule=schedule)
        assert window(environment) == ("2026-05-31T10:00:00Z", "2026-06-01T11:00:00Z", TEN)

    def test_of_a_scheduled_run_outlives_a_change_of_the_cron(self, run):
        # H18: a retry sees the same window
        given = context(NINE, interval=(at(NINE), at(TEN)), run_type="scheduled")
        assert window(run(given, schedule={"cron_expression": "0 0 * * *"})[1]) == (NINE, TEN, NINE)

    def test_of_a_scheduled_run_outlives_the_schedule(self, run, caplog):
        # H12, H18: it waited for a slot when the job lost its schedule, or is cleared later
        given = context(NINE, interval=(at(NINE), at(TEN)), run_type="scheduled")
        with caplog.at_level(logging.INFO, logger="job"):
            assert window(run(given, schedule=None)[1]) == (NINE, TEN, NINE)
        assert "neither moved nor widened" in caplog.text

    def test_of_the_short_first_interval_can_be_replayed(self, run):
        # H4, H15: it was first seen at 00:20
        _, environment = run(context("2026-06-01T00:20:00Z"))
        assert window(environment)[:2] == ("2026-06-01T00:20:00Z", "2026-06-01T01:00:00Z")

    def test_given_by_hand_is_as_given_and_named_by_its_start(self, run):
        # H7
        given = context(start_time="2026-06-01T09:15:00Z", end_time="2026-06-01T11:00:00+00:00")
        assert window(run(given)[1]) == ("2026-06-01T09:15:00Z", "2026-06-01T11:00:00Z", "2026-06-01T09:15:00Z")

    def test_may_be_given_a_logical_date(self, run):
        given = context(start_time=NINE, end_time=TEN, logical_date="2026-05-01")
        assert window(run(given)[1])[2] == "2026-05-01T00:00:00Z"

    def test_is_not_there_when_none_was_asked_for(self, run):
        # H7
        _, environment = run(context())
        assert window(environment) == (None, None, None)
        assert not [name for name in environment if name.startswith("CHRONON_START") or name == "CHRONON_PARTITION"]
        assert environment["CHRONON_CONF"] == "job/etl.hourly"

    def test_of_a_job_without_a_schedule_is_what_is_given(self, run):
        assert window(run(context(start_time=NINE, end_time=TEN), schedule=None)[1]) == (NINE, TEN, NINE)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (context(NINE, start_time=NINE, end_time=TEN), "both a partition key"),
            (context(end_time=TEN), "end without a start"),
            (context(start_time=NINE), "no end"),
            (context(logical_date=NINE), "without a window"),
            (context(start_time=TEN, end_time=NINE), "not after its start"),
            (context(start_time="nine", end_time=TEN), "'nine' is not an instant"),
            (context("2026-06-01T08:30:00Z"), "Use 2026-06-01T08:00:00Z or 2026-06-01T09:00:00Z"),
            (context("2026-06-10T00:00:00Z"), "has not come"),
        ],
    )
    def test_one_sentence_and_no_retry(self, run, seen, given, says):
        # C27, H7
        with pytest.raises(AirflowFailException, match=says):
            run(given)
        assert not seen.exists()

    def test_a_key_is_refused_where_there_is_no_schedule(self, run):
        with pytest.raises(AirflowFailException, match="has no schedule"):
            run(context(NINE), schedule=None)


class TestTheEnvironment:
    def test_the_run_wins_over_the_job_and_that_over_what_is_computed(self, run, monkeypatch):
        # H5
        monkeypatch.setenv("SECRET", "s3")
        _, environment = run(
            context(NINE, conf={"env": {"GIVEN": 1, "BOTH": "run"}}),
            env={"REGION": "eu", "BOTH": "job", "HOPS_END_TIME": "never", "TOKEN": "${SECRET}"},
        )
        assert (environment["GIVEN"], environment["BOTH"], environment["REGION"]) == ("1", "run", "eu")
        assert (environment["HOPS_END_TIME"], environment["HOPS_START_TIME"]) == ("never", NINE)
        assert environment["TOKEN"] == "s3"

    def test_what_a_run_sets_is_read_as_json_writes_it(self, run):
        # H5
        env = {"NONE": None, "YES": True, "HALF": 0.5, "TEXT": "a b"}
        _, environment = run(context(NINE, conf={"env": env}), env={"NONE": "job"})
        assert [environment[name] for name in env] == ["job", "true", "0.5", "a b"]

    @pytest.mark.parametrize(
        ("env", "says"),
        [
            ({"A": {"x": 1}}, "'A' is a list or an object"),
            ({"A": [1]}, "'A' is a list or an object"),
            ({"A=B": "x"}, "'A=B' cannot be the name"),
            ({"": "x"}, "'' cannot be the name"),
        ],
    )
    def test_what_no_variable_can_be_is_one_sentence_and_no_retry(self, run, seen, env, says):
        # H5
        with pytest.raises(AirflowFailException, match=says):
            run(context(NINE, conf={"env": env}))
        assert not seen.exists()

    @pytest.mark.parametrize("name", ["BASH_ENV", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "JAVA_TOOL_OPTIONS"])
    def test_a_run_may_not_choose_what_is_executed_and_a_job_may(self, run, seen, name):
        # S5
        with pytest.raises(
            AirflowFailException, match=f"a run may not set {name}, which decides .* [(]S5[)]. Set it in"
        ):
            run(context(NINE, conf={"env": {name: "/tmp/evil"}}))
        assert not seen.exists()
        _, environment = run(context(NINE), env={name: "/nothing/there"})
        assert environment[name] == "/nothing/there"

    def test_airflows_own_secrets_are_not_in_it(self, run, monkeypatch):
        # S5
        monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "f3rnet")
        monkeypatch.setenv("AIRFLOW_CONN_CHRONON_AIRFLOW", "http://admin:f3rnet@h")
        _, environment = run(context(NINE))
        assert "f3rnet" not in str(environment) and environment["AIRFLOW_HOME"] and environment["PATH"]
        _, environment = run(context(NINE), runner={"pass_env": ["AIRFLOW_CONN_CHRONON_*"]})
        assert [name for name, text in environment.items() if "f3rnet" in text] == ["AIRFLOW_CONN_CHRONON_AIRFLOW"]

    def test_what_was_filled_in_is_told_to_airflows_masker(self, run, monkeypatch, caplog):
        # S4
        monkeypatch.setenv("DB_PW", "hunter-two")
        monkeypatch.setenv("TOKEN", "t0ken-of/it")
        with caplog.at_level(logging.INFO, logger="job"):
            arguments, _ = run(context(NINE), argv=("--pw=${DB_PW}",), env={"TOKEN": "${TOKEN}"})
        assert arguments == ["--pw=hunter-two"] and "hunter" not in caplog.text and "--pw=${DB_PW}" in caplog.text
        assert redact("it is hunter-two, t0ken-of/it, t0ken-of%2Fit") == "it is ***, ***, ***"

    def test_the_runners_own_variables_stand_below_the_jobs(self, run):
        _, environment = run(context(NINE), runner={"env": {"A": "runner", "B": "runner"}}, env={"B": "job"})
        assert (environment["A"], environment["B"]) == ("runner", "job")


class TestTheCommand:
    def test_gets_the_legacy_argument_when_that_is_asked_for(self, run):
        # H6
        assert run(context(NINE), legacy_start_time_arg=True)[0] == ["-start_time", NINE]
        assert run(context(NINE))[0] == []

    def test_and_not_without_a_window(self, run):
        # H6, H7
        assert run(context(), legacy_start_time_arg=True)[0] == []

    def test_papermill_gets_it_as_a_parameter(self, run):
        # H6
        arguments, _ = run(context(NINE), argv=("-m", "papermill", "in.ipynb"), legacy_start_time_arg=True)
        assert arguments == ["-m", "papermill", "in.ipynb", "-p", "start_time", NINE]

    def test_may_name_its_logical_date(self, run):
        assert run(context(NINE), argv=("--date", "{partition}"))[0] == ["--date", NINE]
        assert run(context(), argv=("--date", "{partition}"))[0] == []

    def test_that_fails_may_be_tried_again(self, run):
        with pytest.raises(AirflowException, match="exit code 3") as failed:
            run(context(NINE), runner={"argv": [sys.executable, "-c", "raise SystemExit(3)"]})
        assert not isinstance(failed.value, AirflowFailException)

    def test_that_is_not_there_may_not(self, run):
        with pytest.raises(AirflowFailException, match="cannot start 'no-such-program'"):
            run(context(NINE), runner={"argv": ["no-such-program"]})
