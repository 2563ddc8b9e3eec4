"""Replays through Airflow: checked before, exact after (C27, C28, cases 11 to 15)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_chronon.airflow_api.errors import Conflict
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import BackfillRecord, BackfillRequest, DagRecord, Reprocess, RunRecord
from airflow_chronon.airflow_api.replay import (
    ReplayIncomplete,
    ReplayOptions,
    ReplayRefused,
    by_key,
    check_ready,
    range_of,
    start,
)
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET, contract_key
from airflow_chronon.core.runs.backfill import Replay
from tests.support.confs import plan_of, staging_query

PLAN = plan_of(staging_query("t.s.x__1", schedule="@never", interval="1h"))
DAG = PLAN.dag_id


def replay(*hours: int) -> Replay:
    return Replay(PLAN, tuple(PLAN.spec.start_of(f"2026-06-01-{hour:02}-00") for hour in hours))


@pytest.fixture
def airflow() -> FakeAirflow:
    return FakeAirflow(dag_records={DAG: DagRecord(DAG)}, specs={DAG: PLAN.spec})


def created(airflow: FakeAirflow) -> list[str]:
    return [str(run.partition_key) for run in airflow.run_records]


def test_the_longest_stretch_is_a_backfill_and_the_rest_runs_by_key(airflow: FakeAirflow) -> None:
    asked = replay(1, 3, 4, 5, 8, 9)
    label_range = range_of(asked)
    assert label_range is not None
    assert [label[11:13] for label in label_range.labels] == ["03", "04", "05"]
    assert [label[11:13] for label in by_key(asked)] == ["01", "08", "09"]
    check_ready(airflow, [asked], ReplayOptions())
    assert created(airflow) == []
    started = start(airflow, asked, ReplayOptions(max_active_runs=2))
    assert sorted(label for _, label in started.runs) == list(asked.labels)
    assert sorted(created(airflow)) == list(asked.labels)


def test_one_label_needs_no_backfill(airflow: FakeAirflow) -> None:
    assert range_of(replay(4)) is None
    check_ready(airflow, [replay(4)], ReplayOptions())
    start(airflow, replay(4), ReplayOptions())
    assert [name for name, *_ in airflow.calls if name.startswith(("create", "trigger"))] == ["trigger"]


def test_a_range_that_has_run_runs_again(airflow: FakeAirflow) -> None:
    for times in (1, 2, 3):
        check_ready(airflow, [replay(1, 2)], ReplayOptions())
        start(airflow, replay(1, 2), ReplayOptions())
        assert len(created(airflow)) == 2 * times
        airflow.run_records = [replace(run, state="success") for run in airflow.run_records]
        airflow.backfill_records = [replace(each, completed=1) for each in airflow.backfill_records]


def test_backwards_reaches_both_ways_of_running(airflow: FakeAirflow) -> None:
    start(airflow, replay(1, 3, 5, 6), ReplayOptions(backwards=True))
    [request] = [call[1] for call in airflow.calls if call[0] == "create_backfill"]
    assert request.backwards
    assert [call[2][11:13] for call in airflow.calls if call[0] == "trigger"] == ["03", "01"]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (None, "does not know the DAG"),
        (DagRecord(DAG, is_stale=True), "no longer loads the DAG"),
        (DagRecord(DAG, is_paused=True), "is paused: its replay would wait for ever.*--unpause"),
    ],
)
def test_a_dag_that_would_not_run_is_refused(airflow: FakeAirflow, record: DagRecord | None, said: str) -> None:
    airflow.dag_records = {} if record is None else {DAG: record}
    with pytest.raises(ReplayRefused, match=said):
        check_ready(airflow, [replay(1, 2)], ReplayOptions())
    assert created(airflow) == []


def test_a_paused_dag_is_unpaused_when_that_is_wished(airflow: FakeAirflow) -> None:
    airflow.dag_records[DAG] = DagRecord(DAG, is_paused=True)
    check_ready(airflow, [replay(1, 2)], ReplayOptions(unpause=True))
    assert airflow.dag_records[DAG].is_paused  # a check changes nothing
    start(airflow, replay(1, 2), ReplayOptions(unpause=True))
    assert not airflow.dag_records[DAG].is_paused


def test_another_active_backfill_is_named_and_a_finished_one_is_no_hindrance(airflow: FakeAirflow) -> None:
    first = replay(1, 2).starts
    airflow.backfill_records = [BackfillRecord(1, DAG, first[0], first[1], completed=5)]
    check_ready(airflow, [replay(4, 5)], ReplayOptions())
    airflow.backfill_records.append(BackfillRecord(2, DAG, first[0], first[1]))
    airflow.run_records.append(RunRecord(DAG, "r", "backfill", "running", "2026-06-01-02-00", first[1]))
    with pytest.raises(ReplayRefused, match=r"backfill 2 of .* \(2026-06-01-01-00 to 2026-06-01-02-00\) is active"):
        check_ready(airflow, [replay(4, 5)], ReplayOptions())


def test_a_backfill_whose_runs_have_ended_is_waited_for_until_airflow_notices(airflow: FakeAirflow) -> None:
    first = replay(1, 2).starts
    airflow.backfill_records.append(BackfillRecord(2, DAG, first[0], first[1]))
    looks: list[float] = []

    def time_passes(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            airflow.backfill_records[0] = replace(airflow.backfill_records[0], completed=1)

    check_ready(airflow, [replay(4, 5)], ReplayOptions(), pause=time_passes)
    assert len(looks) == 3


def test_a_backfill_that_never_ends_is_refused_in_the_end(airflow: FakeAirflow) -> None:
    airflow.backfill_records.append(BackfillRecord(2, DAG, 0, 3600))
    with pytest.raises(ReplayRefused, match="backfill 2 of"):
        check_ready(airflow, [replay(4, 5)], ReplayOptions(), pause=lambda seconds: None)


def test_another_grid_at_the_first_write_is_refused(airflow: FakeAirflow) -> None:  # C22
    airflow.states[CONTRACTS_ASSET, contract_key(DAG)] = "3h"
    with pytest.raises(ReplayRefused, match="begun on the grid 3h, and the conf is now on 1h"):
        check_ready(airflow, [replay(1)], ReplayOptions())


def test_a_plan_of_airflows_that_is_not_ours_is_refused_before_anything_is_created(airflow: FakeAirflow) -> None:
    class Shrinking(FakeAirflow):  # case 11: errors of an iteration are swallowed, and a range shrinks in silence
        def plan_backfill(self, request: BackfillRequest) -> tuple[str, ...]:
            return super().plan_backfill(request)[:-1]

    shrinking = Shrinking(dag_records=airflow.dag_records, specs=airflow.specs)
    with pytest.raises(ReplayRefused, match="would run 2 of 3 partitions: not 2026-06-01-05-00"):
        check_ready(shrinking, [replay(3, 4, 5)], ReplayOptions())
    assert created(shrinking) == []


def test_runs_that_airflow_made_besides_or_left_out_are_reported(airflow: FakeAirflow) -> None:
    class Widening(FakeAirflow):
        def create_backfill(self, request: BackfillRequest) -> BackfillRecord:
            return super().create_backfill(replace(request, last=request.last + 3600))

    widening = Widening(dag_records=airflow.dag_records, specs=airflow.specs)
    with pytest.raises(ReplayIncomplete, match="made runs of 4 of 3 partitions: also 2026-06-01-06-00"):
        start(widening, replay(3, 4, 5), ReplayOptions())


def test_a_backfill_that_slipped_in_between_is_a_conflict_and_nothing_is_created(airflow: FakeAirflow) -> None:
    check_ready(airflow, [replay(1, 2)], ReplayOptions())
    airflow.backfill_records.append(BackfillRecord(1, DAG, 0, 0))
    with pytest.raises(Conflict):
        start(airflow, replay(1, 2), ReplayOptions())
    assert created(airflow) == []


def test_a_backfill_whose_first_answer_was_lost_counts_as_made(airflow: FakeAirflow) -> None:
    class Forgetful(FakeAirflow):
        def create_backfill(self, request: BackfillRequest) -> BackfillRecord:
            super().create_backfill(request)
            return super().create_backfill(request)  # the client's second try

    forgetful = Forgetful(dag_records=airflow.dag_records, specs=airflow.specs)
    assert len(start(forgetful, replay(3, 4), ReplayOptions()).runs) == 2


def test_every_replay_is_checked_before_the_first_one_starts(airflow: FakeAirflow) -> None:
    other = plan_of(staging_query("t.s.unknown__1", schedule="@never", interval="1h"))
    with pytest.raises(ReplayRefused, match="unknown"):
        check_ready(airflow, [replay(1, 2), Replay(other, replay(1).starts)], ReplayOptions())
    assert created(airflow) == []


@pytest.mark.parametrize(
    ("state", "reprocess", "again"),
    [
        ("success", Reprocess.NONE, False),
        ("success", Reprocess.FAILED, False),
        ("success", Reprocess.COMPLETED, True),
        ("failed", Reprocess.FAILED, True),
        ("failed", Reprocess.COMPLETED, True),
        ("running", Reprocess.COMPLETED, False),
    ],
)
def test_the_fake_runs_again_what_airflow_runs_again(
    airflow: FakeAirflow, state: str, reprocess: Reprocess, again: bool
) -> None:
    run = airflow.trigger(DAG, partition_key=PartitionKey("2026-06-01-01-00"))
    airflow.run_records[0] = replace(run, state=state)
    request: Any = BackfillRequest(DAG, replay(1).starts[0], replay(1).starts[0], reprocess)
    assert bool(airflow.plan_backfill(request)) is again
