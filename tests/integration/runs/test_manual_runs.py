"""Runs that a person starts: by label, by a range of labels, or without a window (C27, H7)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from airflow_api import ApiError, DagRun

from tests.support.integration.compiled_confs import LAND, CompiledConf, shell, staging_query
from tests.support.integration.deployment import Deployment, utc_now

pytestmark = pytest.mark.soak

REPORT = "env | grep -E '^(CHRONON|HOPS)_' | sort\n" + LAND
DAILY = staging_query("manual.daily", reads="manual.raw", airflow={"runner": shell(REPORT)})
THREE_HOURS = staging_query("manual.blocks", every=180)
WINDOW_VARIABLES = ("_START_TIME=", "_END_TIME=", "_LOGICAL_DATE=", "CHRONON_PARTITION=", "CHRONON_PARTITIONS=")


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture(scope="module")
def manual(deployment: Deployment) -> Iterator[Deployment]:
    deployment.deploy(DAILY, THREE_HOURS)
    yield deployment
    deployment.withdraw(DAILY, THREE_HOURS)


@pytest.fixture(scope="module")
def runs(manual: Deployment) -> dict[str, DagRun]:
    """Every kind of request, asked at once; all of them have ended."""
    api = manual.real.api
    manual.land("manual.raw", *(f"2026-06-{day:02d}" for day in range(1, 12)))
    asked = {
        "key": api.trigger(DAILY.dag_id, partition_key="2026-06-01"),
        "range": api.trigger(DAILY.dag_id, params={"start_ds": "2026-06-02", "end_ds": "2026-06-04"}),
        "one by params": api.trigger(DAILY.dag_id, params={"start_ds": "2026/6/5"}),
        "key and params": api.trigger(DAILY.dag_id, partition_key="2026-06-06", params={"start_ds": "2026-06-07"}),
        "end alone": api.trigger(DAILY.dag_id, params={"end_ds": "2026-06-08"}),
        "nothing": api.trigger(DAILY.dag_id),
        "a logical date alone": api.trigger(DAILY.dag_id, logical_date=_day("2026-06-08")),
        "key and another logical date": api.trigger(
            DAILY.dag_id, partition_key="2026-06-09", logical_date=_day("2026-06-03")
        ),
        "interval": api.trigger(
            DAILY.dag_id, logical_date=_day("2026-06-10"), interval=(_day("2026-06-10"), _day("2026-06-12"))
        ),
    }
    return dict(zip(asked, manual.ends_of(asked.values()), strict=True))


def test_a_label_runs_its_partition(manual: Deployment, runs: dict[str, DagRun]) -> None:
    assert runs["key"].state == "success"
    said = manual.log(runs["key"], "backfill")
    assert "CHRONON_PARTITIONS=2026-06-01" in said
    assert "CHRONON_START_TIME=2026-06-01T00:00:00Z" in said
    assert "HOPS_END_TIME=2026-06-02T00:00:00Z" in said  # H5


def test_a_range_runs_every_label_of_it_in_one_job(manual: Deployment, runs: dict[str, DagRun]) -> None:
    assert runs["range"].state == "success"
    labels = ["2026-06-02", "2026-06-03", "2026-06-04"]
    assert f"CHRONON_PARTITIONS={','.join(labels)}" in manual.log(runs["range"], "backfill")
    assert sorted(event["partition_key"] for event in manual.events(runs["range"])) == labels


def test_a_start_alone_is_one_partition_in_any_spelling(manual: Deployment, runs: dict[str, DagRun]) -> None:
    assert "CHRONON_PARTITIONS=2026-06-05" in manual.log(runs["one by params"], "backfill")


@pytest.mark.parametrize(
    ("request_name", "sentence"),
    [
        ("key and params", "params: both a partition key '2026-06-06' and start_ds or end_ds are given (C27)."),
        ("end alone", "end_ds: end_ds '2026-06-08' is given without start_ds (H7)."),
    ],
)
def test_a_request_that_contradicts_itself_fails_once_with_one_sentence(
    manual: Deployment, runs: dict[str, DagRun], request_name: str, sentence: str
) -> None:
    run = runs[request_name]
    assert run.state == "failed"
    states = manual.real.api.task_states(run)
    assert [task for task, state in states.items() if state == "failed"] == ["backfill"]
    assert run.note is not None and run.note.startswith(sentence)
    said = [line for line in manual.log(run, "backfill") if "(C27)" in line or "(H7)" in line]
    assert said and said[0].startswith(sentence)


@pytest.mark.parametrize("request_name", ["nothing", "a logical date alone"])
def test_a_run_without_a_window_waits_for_nothing_and_has_no_window_variables(
    manual: Deployment, runs: dict[str, DagRun], request_name: str
) -> None:
    run = runs[request_name]
    assert run.state == "success"
    assert "nothing is needed of manual.raw" in manual.log(run, "wait.manual.raw")
    said = manual.log(run, "backfill")
    assert "CHRONON_MODE=backfill" in said
    assert f"CHRONON_CONF=staging_query/{DAILY.name}" in said
    assert not [line for line in said if any(name in line for name in WINDOW_VARIABLES)]
    assert manual.real.api.task_states(run)["landed"] == "skipped"
    assert run.note is not None and "no partition is written" in run.note
    assert not manual.events(run)


def test_the_note_of_a_run_names_its_partitions(runs: dict[str, DagRun]) -> None:
    for request_name, label in {
        "key": "2026-06-01",
        "range": "2026-06-02 … 2026-06-04",
        "interval": "2026-06-11",
    }.items():
        note = runs[request_name].note
        assert note is not None and label in note


def test_a_range_that_nobody_can_read_makes_no_run(manual: Deployment, runs: dict[str, DagRun]) -> None:
    before = manual.runs(DAILY)
    with pytest.raises(ApiError, match="start_ds"):
        manual.real.api.trigger(DAILY.dag_id, params={"start_ds": "2026-06-1x"})
    assert manual.runs(DAILY) == before


def test_the_key_wins_over_a_logical_date_that_contradicts_it(manual: Deployment, runs: dict[str, DagRun]) -> None:
    run = runs["key and another logical date"]
    assert run.state == "success"
    assert "CHRONON_PARTITIONS=2026-06-09" in manual.log(run, "backfill")


def test_a_data_interval_given_by_hand_runs_its_whole_partitions(manual: Deployment, runs: dict[str, DagRun]) -> None:
    assert "CHRONON_PARTITIONS=2026-06-10,2026-06-11" in manual.log(runs["interval"], "backfill")


def test_only_what_was_asked_for_is_written(manual: Deployment, runs: dict[str, DagRun]) -> None:
    assert manual.landed(DAILY) == {f"2026-06-{day:02d}" for day in (1, 2, 3, 4, 5, 9, 10, 11)}


@pytest.mark.parametrize(
    ("conf", "key", "what"),
    [
        pytest.param(DAILY, "2026-13-45", "2026-13-45", id="no date"),
        pytest.param(DAILY, "yesterday", "yesterday", id="no label at all"),
        pytest.param(DAILY, "2026-6-1", "2026-6-1", id="another spelling"),
        pytest.param(DAILY, "20260601", "20260601", id="another format"),
        pytest.param(DAILY, "2026-06-01 ", "2026-06-01 ", id="a space too many"),
        pytest.param(DAILY, f"{utc_now():%Y-%m-%d}", "has not closed at", id="not closed yet"),
        pytest.param(THREE_HOURS, "2026-06-01-01-30", "2026-06-01-00-00", id="off the grid, with the nearest labels"),
        pytest.param(THREE_HOURS, "2026-06-01", "2026-06-01", id="a day on a grid of hours"),
    ],
)
def test_a_bad_label_is_refused_in_one_sentence(manual: Deployment, conf: CompiledConf, key: str, what: str) -> None:
    before = manual.runs(conf)
    with pytest.raises(ApiError) as refused:
        manual.real.api.trigger(conf.dag_id, partition_key=key)
    assert 400 <= refused.value.status < 500
    assert what in refused.value.detail
    assert "\n" not in refused.value.detail and "Traceback" not in refused.value.detail
    assert manual.runs(conf) == before
