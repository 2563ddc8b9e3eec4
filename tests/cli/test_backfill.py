"""``airflow-chronon backfill`` (C9, C27)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import BackfillRecord, DagRecord, RunRecord
from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from tests.support.command_line import Answer, Command
from tests.support.confs import dependency
from tests.support.confs import staging_query as document
from tests.support.hourly_conf import CONF, DAG, SPEC, Place, airflow, labels, place, run

__all__ = ["airflow", "place"]  # fixtures

SPAN = ("--start-ds", labels(1, 1)[0], "--end-ds", labels(6, 6)[0])


def backfill(command: Command, place: Place, *arguments: str) -> Answer:
    return command("backfill", CONF, "--root", place.root, *arguments)


def printed(answer: Answer) -> list[str]:
    return [line.strip() for line in answer.out.splitlines() if line.startswith("  ")]


def created(airflow: FakeAirflow) -> list[str]:
    return sorted(str(record.partition_key) for record in airflow.run_records if record.state == "queued")


def test_missing_is_the_default_and_exactly_what_is_printed_is_created(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    place.land(*labels(3, 3))
    answer = backfill(command, place, *SPAN)
    assert answer.code == 0
    assert printed(answer) == created(airflow) == [*labels(1, 2), *labels(4, 6)]
    assert "5 partitions, 3 as one range and 2 by key" in answer.out
    assert "5 runs created, for exactly these partitions" in answer.err


def test_a_dry_run_prints_the_same_and_creates_nothing(place: Place, command: Command, airflow: FakeAirflow) -> None:
    answer = backfill(command, place, *SPAN, "--dry-run")
    assert printed(answer) == labels(1, 6)
    assert created(airflow) == []
    assert not [name for name, *_ in airflow.calls if name in ("create_backfill", "trigger", "unpause")]


def test_a_dry_run_needs_no_airflow(place: Place, command: Command) -> None:
    answer = backfill(command, place, *SPAN, "--dry-run", "--format", "json")
    assert answer.code == 0
    assert answer.json["replays"][0]["labels"] == labels(1, 6)


def test_without_airflow_it_says_how_to_name_one(place: Place, command: Command) -> None:
    answer = backfill(command, place, *SPAN)
    assert answer.code == 2
    assert "AIRFLOW_CONN_CHRONON_AIRFLOW" in answer.err
    assert answer.out == ""


def test_failed_takes_those_whose_newest_run_failed_and_all_takes_every_one(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    place.land(*labels(1, 6))
    airflow.run_records = [
        run(labels(2, 2)[0], "failed"),
        replace(run(labels(3, 3)[0], "failed"), run_id="a", start=1),
        replace(run(labels(3, 3)[0], "success", "manual"), run_id="b", start=2),
    ]
    assert printed(backfill(command, place, *SPAN, "--failed", "--dry-run")) == labels(2, 2)
    assert printed(backfill(command, place, *SPAN, "--all", "--dry-run")) == labels(1, 6)
    assert printed(backfill(command, place, *SPAN, "--dry-run")) == []


def test_a_partition_whose_run_is_under_way_is_left_to_it(place: Place, command: Command, airflow: FakeAirflow) -> None:
    airflow.run_records = [run(labels(3, 3)[0], "running"), run(labels(4, 4)[0], "queued")]
    for selection in ("--missing", "--all"):
        answer = backfill(command, place, *SPAN, selection, "--dry-run")
        assert printed(answer) == [*labels(1, 2), *labels(5, 6)]
        assert answer.out.endswith(": left to the runs that are under way: 2\n")


def test_a_range_is_read_in_time_and_says_so(place: Place, command: Command, airflow: FakeAirflow) -> None:  # C27
    answer = backfill(command, place, "--start-ds", "2026-06-01 01:30", "--end-ds", "2026-06-01-02-15", "--dry-run")
    assert printed(answer) == labels(1, 2)
    assert "2026-06-01 01:30 lies in 2026-06-01-01-00\n2026-06-01-02-15 lies in 2026-06-01-02-00\n" in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--start-ds", "2026-06-02", "--end-ds", "2026-06-01"), "is before start_ds"),
        (("--start-ds", "2199-06-01"), "newest closed one is"),
    ],
)
def test_a_range_that_cannot_be_is_refused_before_airflow_is_asked(
    place: Place, command: Command, airflow: FakeAirflow, arguments: tuple[str, ...], said: str
) -> None:
    answer = backfill(command, place, *arguments)
    assert answer.code == 2
    assert said in answer.err
    assert airflow.calls == []


def test_a_paused_dag_and_an_active_backfill_are_refused_after_the_labels_are_printed(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    airflow.dag_records[DAG] = DagRecord(DAG, is_paused=True)
    answer = backfill(command, place, *SPAN)
    assert answer.code == 2
    assert "--unpause" in answer.err
    assert printed(answer) == labels(1, 6)
    airflow.backfill_records = [BackfillRecord(4, DAG, 0, 3600)]
    airflow.run_records = [run("2026-05-01-00-00", "running", "backfill")]
    answer = backfill(command, place, *SPAN, "--unpause")
    assert answer.code == 2
    assert "backfill 4" in answer.err
    assert created(airflow) == []
    assert airflow.dag_records[DAG].is_paused


def test_wait_ends_with_the_labels_that_failed(
    place: Place, command: Command, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def time_passes(seconds: float) -> None:
        ended = ["success" if record.partition_key != labels(4, 4)[0] else "failed" for record in airflow.run_records]
        airflow.run_records = [replace(r, state=s) for r, s in zip(airflow.run_records, ended, strict=True)]

    monkeypatch.setattr("airflow_chronon.cli.replay_progress.time.sleep", time_passes)
    airflow.before = lambda name: _dated(airflow)
    answer = backfill(command, place, *SPAN, "--wait")
    assert answer.code == 1
    assert [line for line in answer.err.splitlines() if labels(4, 4)[0] in line] == [
        f"{DAG} {labels(4, 4)[0]}: failed (backfill__{labels(4, 4)[0]}__3)"
    ]
    assert "6 queued" in answer.err
    assert "1 failed, 5 success" in answer.err


def _dated(airflow: FakeAirflow) -> None:
    """Runs of the fake have no time of their own; Airflow gives each one after its partition's end."""

    def dated(record: RunRecord) -> RunRecord:
        return replace(record, run_after=(record.partition_date or 0) + 3600)

    airflow.run_records = [dated(record) for record in airflow.run_records]


def test_json_is_all_that_stands_on_stdout(place: Place, command: Command, airflow: FakeAirflow) -> None:
    answer = backfill(command, place, *SPAN, "--format", "json")
    value: dict[str, Any] = answer.json
    assert [entry["label"] for entry in value["runs"]] == labels(1, 6)
    assert value["replays"][0] | {"labels": []} == {
        "conf": f"staging_query/{CONF}",
        "dag_id": DAG,
        "labels": [],
        "range": [labels(1, 1)[0], labels(6, 6)[0]],
        "by_key": [],
    }


def test_runs_at_a_time_default_to_the_confs_setting(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:  # H12
    backfill(command, place, *SPAN)
    assert [call[1].max_active_runs for call in airflow.calls if call[0] == "create_backfill"] == [4]
    airflow.backfill_records.clear()
    airflow.run_records.clear()
    backfill(command, place, *SPAN, "--max-active-runs", "2")
    assert [call[1].max_active_runs for call in airflow.calls if call[0] == "create_backfill"] == [4, 2]


def test_a_number_of_runs_below_one_is_a_usage_error(place: Place, command: Command, airflow: FakeAirflow) -> None:
    answer = backfill(command, place, *SPAN, "--max-active-runs", "0")
    assert answer.code == 2
    assert "from 1" in answer.err
    assert created(airflow) == []


def test_two_selections_at_once_are_refused(command: Command, place: Place) -> None:
    answer = backfill(command, place, *SPAN, "--failed", "--all", "--dry-run")
    assert answer.code == 2 and "--failed and --all" in answer.err


class TestItsInputs:
    """A three-hourly conf that reads an hourly one (C30)."""

    TOTAL, RAW = "staging_query.t.s.total__1", "staging_query.t.s.raw__1"
    RANGE = ("--start-ds", "2026-06-01-03-00", "--end-ds", "2026-06-01-06-00")

    @pytest.fixture
    def chain(self, place: Place, airflow: FakeAirflow) -> Place:
        raw = document("t.s.raw__1", schedule="5 * * * *", interval="1h")
        reads = [dependency("ns.t_s_raw__1", "1h")]
        total = document("t.s.total__1", schedule="15 */3 * * *", interval="3h", dependencies=reads)
        for each in (raw, total):
            path = place.root / "compiled" / "staging_queries" / "t" / each["metaData"]["name"].removeprefix("t.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(each))
        for dag_id in (self.RAW, self.TOTAL):
            airflow.dag_records[dag_id] = DagRecord(dag_id)
        airflow.specs[self.RAW] = PartitionSpec(PartitionGrid(HOUR), partition_format("yyyy-MM-dd-HH-mm"))
        airflow.specs[self.TOTAL] = PartitionSpec(PartitionGrid(3 * HOUR), partition_format("yyyy-MM-dd-HH-mm"))
        return place

    def call(self, command: Command, place: Place, *arguments: str) -> Answer:
        return command("backfill", self.TOTAL, "--root", place.root, *self.RANGE, *arguments)

    def test_that_are_not_there_are_named(self, chain: Place, command: Command) -> None:
        answer = self.call(command, chain, "--dry-run")
        assert printed(answer) == ["2026-06-01-03-00", "2026-06-01-06-00"]
        assert "staging_query/t.s.raw__1 lacks 6 partitions that these runs read" in answer.err
        assert "--with-upstream replays them first" in answer.err

    def test_that_lack_one_partition_name_it_once(self, chain: Place, command: Command) -> None:
        for hour in (3, 4, 6, 7, 8):
            folder = chain.warehouse / "ns.t_s_raw__1" / f"ds=2026-06-01-{hour:02}-00"
            folder.mkdir(parents=True)
            (folder / "part-0.parquet").touch()
        answer = self.call(command, chain, "--dry-run")
        assert "lacks 1 partition that these runs read, 2026-06-01-05-00: --with-upstream" in answer.err

    def test_come_first_on_request(self, chain: Place, command: Command) -> None:
        answer = self.call(command, chain, "--dry-run", "--with-upstream", "--format", "json")
        assert [(each["dag_id"], len(each["labels"])) for each in answer.json["replays"]] == [
            (self.RAW, 6),
            (self.TOTAL, 2),
        ]
        assert "lacks" not in answer.err

    def test_are_replayed_for_runs_that_wait_for_them_already(
        self, chain: Place, command: Command, airflow: FakeAirflow
    ) -> None:
        airflow.run_records = [
            replace(run(label, "running"), dag_id=self.TOTAL) for label in ("2026-06-01-03-00", "2026-06-01-06-00")
        ]
        answer = self.call(command, chain, "--dry-run", "--with-upstream", "--all")
        assert "staging_query/t.s.raw__1: 6 partitions" in answer.out
        assert "left to the runs that are under way: 2" in answer.out


@pytest.mark.parametrize("selection", ["--missing", "--failed", "--all"])
def test_a_stranded_run_is_ended_and_replaced(
    place: Place, command: Command, airflow: FakeAirflow, selection: str
) -> None:
    asked = labels(1, 3)
    airflow.run_records = [replace(run(label, "queued", "backfill"), note="mine") for label in asked]
    first, last = (SPEC.start_of(label) for label in (asked[0], asked[-1]))
    airflow.backfill_records = [BackfillRecord(1, DAG, first, last, is_paused=True, completed=last)]
    span = ("--start-ds", asked[0], "--end-ds", asked[-1])
    dry = backfill(command, place, *span, selection, "--dry-run")
    assert dry.code == 0 and printed(dry) == asked
    assert {each.note for each in airflow.run_records} == {"mine"}  # a dry run changes nothing
    answer = backfill(command, place, *span, selection)
    assert answer.code == 0 and "under way" not in answer.out
    ended = [each for each in airflow.run_records if each.state == "failed"]
    assert [each.partition_key for each in ended] == asked
    assert ended[0].note == (
        "mine\nEnded by airflow-chronon backfill: it could never start, since it was cleared after its backfill was cancelled."
    )
    assert created(airflow) == asked


def test_one_stranded_run_is_replaced_by_its_key(place: Place, command: Command, airflow: FakeAirflow) -> None:
    (label,) = labels(2, 2)
    start = SPEC.start_of(label)
    airflow.run_records = [run(label, "queued", "backfill")]
    airflow.backfill_records = [BackfillRecord(1, DAG, start, start, is_paused=True, completed=start)]
    assert backfill(command, place, "--start-ds", label).code == 0
    assert [(each.run_type, each.state) for each in airflow.run_records] == [
        ("backfill", "failed"),
        ("manual", "queued"),
    ]


def test_more_runs_than_one_replay_may_have_are_refused_with_the_first_piece(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:  # S7
    answer = backfill(command, place, "--start-ds", "2018-01-01", "--end-ds", "2025-12-31")
    assert answer.code == 2 and not answer.out and not created(airflow)
    said = f"{CONF}: these are 70128 runs, and one replay has at most 50000 (S7). Replay them in pieces, first"
    assert f"{said} airflow-chronon backfill {DAG} --start-ds 2018-01-01-00-00 --end-ds" in answer.err
    piece = answer.err.strip().rstrip(".").partition("airflow-chronon backfill ")[2].split()
    assert command("backfill", *piece, "--root", place.root, "--dry-run").code == 0
