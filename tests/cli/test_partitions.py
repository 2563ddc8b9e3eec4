"""``airflow-chronon partitions`` (H20)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_chronon.airflow_api.errors import NoRights
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import BackfillRecord, TaskRecord
from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET, contract_key
from airflow_chronon.core.waits.max_lag import LAGGING_KEY, Lagging
from airflow_chronon.deployment import DEFAULT_BUNDLE
from airflow_chronon.state.folder import open_state
from tests.support.command_line import Command
from tests.support.confs import staging_query
from tests.support.hourly_conf import CONF, DAG, SPEC, Place, airflow, labels, place, run

__all__ = ["airflow", "place"]  # fixtures


def test_without_airflow_catalogs_tell_what_has_landed(place: Place, command: Command) -> None:
    place.land(*labels(3, 4))
    answer = command(
        "partitions", CONF, "--root", place.root, "--start-ds", "2026-06-01 2", "--end-ds", "2026/06/01 5:00"
    )
    assert answer.code == 0
    assert [line.split()[:2] for line in answer.out.splitlines()[1:5]] == [
        ["2026-06-01-02-00", "missing"],
        ["2026-06-01-03-00", "landed"],
        ["2026-06-01-04-00", "landed"],
        ["2026-06-01-05-00", "missing"],
    ]
    assert answer.out.splitlines()[-1] == "2 missing, 2 landed"
    assert "no connection names an Airflow" in answer.err


@pytest.mark.parametrize("name", ["partitions", "backfill"])
def test_a_range_of_too_many_is_refused(
    place: Place, command: Command, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:  # C27
    monkeypatch.setattr("airflow_chronon.core.partitions.limits.MOST", 23)
    answer = command(name, CONF, "--root", place.root, "--start-ds", "2026-06-01")
    assert answer.code == 2 and not answer.out
    assert "more than 23 partitions (S7). Give a shorter range." in answer.err


def test_a_day_means_all_its_partitions_and_one_label_means_itself(place: Place, command: Command) -> None:  # C27
    day = command("partitions", CONF, "--root", place.root, "--start-ds", "2026-06-01", "--format", "json")
    assert [row["label"] for row in day.json["partitions"]] == labels(0, 23)
    one = command("partitions", CONF, "--root", place.root, "--start-ds", "2026-06-01-03-00", "--format", "json")
    assert [row["label"] for row in one.json["partitions"]] == labels(3, 3)


def test_airflow_adds_running_failed_and_skipped_with_the_reason(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    place.land(*labels(1, 1))
    airflow.run_records = [
        run("2026-06-01-01-00", "success"),
        run("2026-06-01-02-00", "failed"),
        replace(
            run("2026-06-01-03-00", "running", "manual"), partition_key=None, conf={"start_ds": "2026-06-01-03-00"}
        ),
        run("2026-06-01-05-00", "success"),
    ]
    airflow.run_records[2] = replace(airflow.run_records[2], partition_date=None)
    answer = command(
        "partitions",
        DAG,
        "--root",
        place.root,
        "--start-ds",
        labels(1, 1)[0],
        "--end-ds",
        labels(5, 5)[0],
        "--format",
        "json",
    )
    rows = answer.json["partitions"]
    assert [row["state"] for row in rows] == ["landed", "failed", "running", "skipped", "missing"]
    assert rows[3]["reason"] == "catch-up off"
    assert rows[1]["run_id"] == "scheduled__2026-06-01-02-00"
    assert rows[4]["reason"] == "its run ended well, and it is not there"
    assert answer.json["airflow"] is True


def test_late_partitions_are_told(place: Place, command: Command, airflow: FakeAirflow) -> None:
    (place.root / "chronon.yaml").write_text("freshness: 2h\n")
    place.land(*labels(1, 1))
    answer = command(
        "partitions", CONF, "--root", place.root, "--start-ds", labels(1, 1)[0], "--end-ds", labels(2, 2)[0]
    )
    lines = answer.out.splitlines()
    assert "late since 2026-06-01T05:00:00Z" in lines[2] and "late" not in lines[1]
    assert lines[-1] == "1 landed, 1 skipped; 1 of them late"


def let_lag(place: Place) -> None:
    """The conf reads six more hours, and may go without the newest of them."""
    (file,) = place.root.rglob("orders.hourly_rollup__1")
    document = json.loads(file.read_text())
    document["tableDependencies"][0]["startOffset"] = {"length": 6, "timeUnit": 0}
    file.write_text(json.dumps(document))
    (place.root / "chronon.yaml").write_text("max_lag: {partitions: 4, after: 1h}\n")


def test_what_a_run_went_without_is_told(place: Place, command: Command, airflow: FakeAirflow) -> None:
    # C17: max_lag
    let_lag(place)
    place.land(*labels(1, 2))
    airflow.run_records = [run(label, "success") for label in labels(1, 2)]
    lag = Lagging("raw.orders", "ds", PartitionKey("2026-06-01-01-30"), (PartitionKey("2026-06-01-01-45"),))
    airflow.xcoms[DAG, f"scheduled__{labels(1, 1)[0]}", "wait.raw.orders", LAGGING_KEY] = json.dumps([lag.to_json()])
    span = ("--start-ds", labels(1, 1)[0], "--end-ds", labels(2, 2)[0])
    answer = command("partitions", CONF, "--root", place.root, *span, "--format", "json")
    first, second = answer.json["partitions"]
    assert first["state"] == "landed"
    assert first["reason"] == "raw.orders was read up to ds=2026-06-01-01-30, 1 partition behind (max_lag)"
    assert "reason" not in second
    assert "1 partition behind (max_lag)" in command("partitions", CONF, "--root", place.root, *span).out


def test_what_a_run_went_without_makes_its_partition_stale_once_it_is_there(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    # C17: of a table that nobody here writes, only its listing tells
    let_lag(place)
    place.land(*labels(1, 1))
    airflow.run_records = [run(labels(1, 1)[0], "success")]
    source = "checkout_features.checkout_orders_every_15m_delay5__1"
    lag = Lagging(source, "ds", PartitionKey("2026-06-01-01-30"), (PartitionKey("2026-06-01-01-45"),))
    airflow.xcoms[DAG, f"scheduled__{labels(1, 1)[0]}", "wait.raw.orders", LAGGING_KEY] = json.dumps([lag.to_json()])
    asked = ("partitions", CONF, "--root", place.root, "--start-ds", labels(1, 1)[0], "--format", "json")
    folder = place.warehouse / source
    for label, state in (("2026-06-01-01-30", "landed"), ("2026-06-01-01-45", "stale")):
        (folder / f"ds={label}").mkdir(parents=True)
        (folder / f"ds={label}" / "part-0.parquet").touch()
        (row,) = command(*asked).json["partitions"]
        assert row["state"] == state
    assert row["reason"].startswith(f"{source} 2026-06-01-01-45 is there, and this was written without it (max_lag); ")
    assert row["stale"] == {"table": source, "label": "2026-06-01-01-45", "wrote": None, "written": None}
    again = replace(run(labels(1, 1)[0], "success", "backfill"), start=run(labels(1, 1)[0], "success").run_after + HOUR)
    airflow.run_records.append(again)
    (row,) = command(*asked).json["partitions"]
    assert row["state"] == "landed", "it was written again, with all that it reads"


def test_a_user_who_may_not_see_what_runs_went_without_is_told_the_rest(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    let_lag(place)
    place.land(*labels(1, 1))
    airflow.run_records = [run(labels(1, 1)[0], "success")]

    def refuse(name: str) -> None:
        if name == "handed_on":
            raise NoRights("reading", status=403, detail="no", remedy="ask", right="to read XComs", who="reader")

    airflow.before = refuse
    answer = command("partitions", CONF, "--root", place.root, "--start-ds", labels(1, 1)[0])
    assert answer.code == 0 and "landed" in answer.out
    assert "what the runs went without (max_lag) is not known" in answer.err


def test_a_table_that_was_begun_on_another_grid_is_the_reason(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    airflow.states[CONTRACTS_ASSET, contract_key(DAG)] = "3h"  # C22
    answer = command("partitions", CONF, "--root", place.root, "--start-ds", labels(1, 1)[0])
    assert "grid changed: the table is on 3h, the conf on 1h" in answer.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nope", "--start-ds", "2026-06-01"), "no conf is called"),
        ((CONF, "--start-ds", "2026-06-02", "--end-ds", "2026-06-01"), "is before start_ds"),
        ((CONF, "--start-ds", "20260601"), "is not a partition"),
        (("growth.exports.canary_only__1", "--start-ds", "2026-06-01"), "not deployed in this environment"),
        ((CONF, "--start-ds", "2026-06-01", "--airflow", "ftp://x"), "the type 'ftp'"),
    ],
)
def test_a_mistake_is_one_sentence(place: Place, command: Command, arguments: tuple[str, ...], said: str) -> None:
    answer = command("partitions", *arguments, "--root", place.root)
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.strip().count("\n") == 0
    assert answer.out == ""


@pytest.mark.parametrize("verb", ["partitions", "backfill"])
def test_two_days_in_the_wrong_order_are_refused_though_a_shifted_grid_has_a_partition_of_both(
    place: Place, airflow: FakeAirflow, command: Command, verb: str
) -> None:  # C27
    shifted = staging_query("t.shifted__1", schedule="0 5 * * *", interval="1d", offset="4h")
    path = place.root / "compiled" / "staging_queries" / "t" / "shifted__1"
    path.parent.mkdir()
    path.write_text(json.dumps(shifted))
    answer = command(verb, "t.shifted__1", "--root", place.root, "--start-ds", "2026-06-02", "--end-ds", "2026-06-01")
    assert answer.code == 2
    assert "'2026-06-01' is before start_ds '2026-06-02' (C27)" in answer.err


def test_a_partition_whose_run_was_passed_over_is_skipped_and_says_why(  # C30
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    (label,) = labels(3, 3)
    airflow.run_records = [run(label, "success")]
    airflow.task_records = [TaskRecord(DAG, f"scheduled__{label}", "landed", "skipped", 1)]
    answer = command(
        "partitions", CONF, "--root", place.root, "--start-ds", label, "--end-ds", label, "--format", "json"
    )
    (row,) = answer.json["partitions"]
    assert row["state"] == "skipped" and row["reason"].startswith("passed over")


def test_a_cleared_run_of_a_cancelled_backfill_is_stranded_and_named(
    place: Place, command: Command, airflow: FakeAirflow
) -> None:
    place.land(*labels(4, 4))
    stranded = [run(label, "queued", "backfill") for label in labels(2, 4)]
    again = replace(run(labels(3, 3)[0], "running", "manual"), start=5)
    airflow.run_records = [*stranded, again, run(labels(5, 5)[0], "queued", "backfill")]
    first, last = (SPEC.start_of(label) for label in labels(2, 4)[::2])
    airflow.backfill_records = [
        BackfillRecord(1, DAG, first, last, is_paused=True, completed=last),  # cancelled
        BackfillRecord(
            2, DAG, last + HOUR, last + HOUR, completed=last
        ),  # ended by itself: Airflow starts what is cleared
    ]
    span = ("--start-ds", labels(2, 2)[0], "--end-ds", labels(5, 5)[0])
    answer = command("partitions", CONF, "--root", place.root, *span, "--format", "json")
    rows = answer.json["partitions"]
    assert [row["state"] for row in rows] == ["stranded", "running", "stranded", "queued"]
    assert rows[0]["reason"] == (
        f"{stranded[0].run_id} never starts, since it was cleared after its backfill was cancelled: replay it"
    )


def test_a_queued_run_of_an_active_backfill_is_queued(place: Place, command: Command, airflow: FakeAirflow) -> None:
    (label,) = labels(2, 2)
    start = SPEC.start_of(label)
    airflow.run_records = [run(label, "queued", "backfill")]
    cancelled = BackfillRecord(1, DAG, start, start, is_paused=True, completed=start)
    airflow.backfill_records = [cancelled, BackfillRecord(2, DAG, start, start, is_paused=True)]
    answer = command("partitions", CONF, "--root", place.root, "--start-ds", label, "--format", "json")
    assert [row["state"] for row in answer.json["partitions"]] == ["queued"]


@pytest.mark.parametrize("name", ["partitions", "backfill"])
def test_the_last_good_settings_hold_on_while_the_file_has_a_mistake(
    place: Place, command: Command, airflow: FakeAirflow, name: str
) -> None:  # C23
    arguments = (name, CONF, "--root", place.root, "--start-ds", labels(2, 2)[0])
    (place.root / "chronon.yaml").write_text("cachup: true\n")
    assert command(*arguments).code == 2  # none were ever good
    state = open_state(str(place.root / "chronon_state"), deployment=Deployment("main", DEFAULT_BUNDLE))
    state.keep_settings("")
    answer = command(*arguments)
    assert answer.code == 0 and labels(2, 2)[0] in answer.out
    assert "chronon.yaml line 1, cachup" in answer.err and "the last good settings hold on" in answer.err
