"""``airflow-chronon why``: what a partition hangs on, followed to the root."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_chronon.airflow_api.errors import AirflowRefused
from airflow_chronon.airflow_api.records import DagRecord, RunRecord, TaskRecord
from airflow_chronon.core.calendar.instants import HOUR, MINUTE
from tests.support.conf_chain import CHAIN, LABEL, NOW, SOURCE, Chain, chain, dag, key, table
from tests.support.confs import at, dependency, staging_query

__all__ = ["chain"]  # a fixture


def test_the_source_that_has_not_landed_is_the_root_of_four_that_wait(chain: Chain) -> None:
    chain.land(SOURCE, "2026-06-01-01-00", "2026-06-01-02-00")
    for step, before in zip(CHAIN, (SOURCE, *map(table, CHAIN)), strict=False):
        chain.wait(step, before)
    answer = chain.ask()
    assert answer.code == 0
    states, found = [], answer.json
    while "because" in found:
        states.append((found["of"], found["state"]))
        (found,) = found["because"]
    assert states == [(key(step), "waiting") for step in reversed(CHAIN)]
    assert (found["of"], found["label"], found["state"]) == (SOURCE, LABEL, "not landed")
    assert "the newest that has is 2026-06-01-02-00" in found["text"]
    assert found["expected"] is None


def test_the_first_line_names_the_root_and_the_tree_follows(chain: Chain) -> None:
    for step, before in zip(CHAIN, (SOURCE, *map(table, CHAIN)), strict=False):
        chain.wait(step, before)
    lines = chain.text().splitlines()
    assert lines[0] == f"{key('top')} {LABEL} is not there: {SOURCE} {LABEL} is not landed"
    assert [line.lstrip("|+- ").split(" ")[0] for line in lines[2:] if ": " in line] == [
        *(key(step) for step in reversed(CHAIN)),
        SOURCE,
    ]


def test_a_landed_partition_is_there(chain: Chain) -> None:
    chain.land(table("top"), LABEL)
    chain.run("top", "success")
    answer = chain.ask()
    assert (answer.code, answer.json["state"]) == (0, "landed")
    assert chain.text().startswith(f"{key('top')} {LABEL} is there\n")


def test_a_failed_run_is_told_with_its_task_its_last_lines_and_what_to_press(chain: Chain) -> None:
    chain.wait("top", table("joined"))
    chain.run("joined", "failed", backfill="failed", landed="upstream_failed")
    at_task = (dag("joined"), f"scheduled__{LABEL}", "backfill")
    chain.airflow.logs[at_task] = ("one", "", *(f"line {number}" for number in range(9)), "No such column: x")
    root = chain.root_of()
    assert (root["of"], root["state"], root["text"]) == (key("joined"), "failed", "backfill failed in try 1")
    assert root["log"][-1] == "No such column: x" and len(root["log"]) == 5
    assert root["remedy"] == f"airflow-chronon backfill {dag('joined')} --start-ds {LABEL} --failed"
    assert root["run_id"] == f"scheduled__{LABEL}"


def test_a_log_that_cannot_be_read_hides_nothing_else(chain: Chain) -> None:
    chain.run("top", "failed", backfill="failed")

    def refuse(name: str) -> None:
        if name == "log_lines":
            raise AirflowRefused("reading the log", status=400, detail="not for you")

    chain.airflow.before = refuse
    found = chain.ask().json
    assert found["text"] == "backfill failed in try 1"
    assert found["log"][0].startswith("its log cannot be read")


def test_a_wait_that_failed_goes_on_to_what_it_waited_for(chain: Chain) -> None:
    chain.run("top", "failed", backfill="upstream_failed")
    chain.airflow.task_records.append(
        TaskRecord(dag("top"), f"scheduled__{LABEL}", f"wait.{table('joined')}", "failed", 1, 0, 1)
    )
    chain.run("joined", "failed", backfill="failed")
    found = chain.ask().json
    assert found["text"] == f"wait.{table('joined')} failed in try 1"
    assert [(each["of"], each["state"]) for each in found["because"]] == [(key("joined"), "failed")]


def test_work_says_since_when_and_how_long_it_usually_takes_and_when_the_chain_should_land(chain: Chain) -> None:
    chain.wait("top", table("joined"))
    chain.history("top", 10)
    chain.history("joined", 40)
    start = NOW - 15 * MINUTE
    chain.run("joined", "running")
    chain.airflow.task_records.append(
        TaskRecord(dag("joined"), f"scheduled__{LABEL}", "backfill", "running", 1, float(start))
    )
    found = chain.ask().json
    (below,) = found["because"]
    assert below["text"] == "backfill works since 2026-06-01T05:15:00Z, and usually takes 40 min"
    assert below["expected"] == "2026-06-01T05:55:00Z"
    assert found["expected"] == "2026-06-01T06:05:00Z"


def test_work_that_takes_longer_than_usual_is_expected_now(chain: Chain) -> None:
    chain.history("top", 1)
    chain.run("top", "running")
    chain.airflow.task_records.append(
        TaskRecord(dag("top"), f"scheduled__{LABEL}", "backfill", "running", 1, float(NOW - HOUR))
    )
    assert chain.ask().json["expected"] == "2026-06-01T05:30:00Z"


def test_a_partition_to_come_is_expected_after_the_slowest_path_to_it(chain: Chain) -> None:
    label = "2026-06-01-05-00"  # closes at six, fires at five past
    chain.land(SOURCE, label)
    for step, minutes in zip(CHAIN, (20, 10, 5, 1), strict=True):
        chain.history(step, minutes)
        chain.run(step, "success", "2026-06-01-04-00")
        chain.land(table(step), "2026-06-01-04-00")
    found = chain.ask("top", label).json
    assert found["state"] == "open"
    assert "closes at 2026-06-01T06:00:00Z, and its run fires at 2026-06-01T06:05:00Z" in found["text"]
    assert found["expected"] == "2026-06-01T06:41:00Z"


def test_without_a_history_nobody_promises_a_time(chain: Chain) -> None:
    chain.run("top", "success", "2026-06-01-04-00")
    assert chain.ask("top", "2026-06-01-05-00").json["expected"] is None


def test_a_paused_dag_is_the_root(chain: Chain) -> None:
    chain.wait("top", table("joined"))
    chain.airflow.dag_records[dag("joined")] = DagRecord(dag("joined"), is_paused=True)
    root = chain.root_of()
    assert root["of"] == key("joined")
    assert "paused" in root["text"]


def test_a_run_of_a_paused_dag_that_has_begun_says_so(chain: Chain) -> None:
    chain.run("top", "queued")
    chain.airflow.dag_records[dag("top")] = DagRecord(dag("top"), is_paused=True)
    assert chain.ask().json["text"].startswith("paused")


def test_a_dag_that_no_loader_file_produces_is_the_root(chain: Chain) -> None:
    chain.wait("top", table("joined"))
    del chain.airflow.dag_records[dag("joined")]
    assert "no loader file produces it" in chain.root_of()["text"]


def test_a_bad_conf_is_the_root_with_its_message(chain: Chain) -> None:
    chain.wait("top", table("joined"))
    path = chain.root / "compiled" / "staging_queries" / "t" / "joined__1"
    document = json.loads(path.read_text())
    document["metaData"]["executionInfo"]["offlineSchedule"] = "61 * * * *"
    path.write_text(json.dumps(document))
    root = chain.root_of()
    assert (root["of"], root["state"]) == (key("joined"), "bad conf")
    assert "61 * * * *" in root["text"]


def test_a_conf_without_a_schedule_is_run_by_hand(chain: Chain) -> None:
    chain.wait("top", table("joined"))
    path = chain.root / "compiled" / "staging_queries" / "t" / "joined__1"
    document = json.loads(path.read_text())
    del document["metaData"]["executionInfo"]["offlineSchedule"]
    path.write_text(json.dumps(document))
    root = chain.root_of()
    assert (root["of"], root["state"]) == (key("joined"), "unscheduled")
    assert root["remedy"].startswith(f"airflow-chronon backfill {dag('joined')} --start-ds {LABEL}")


def test_a_run_that_never_was_says_why_and_how_to_fill_it(chain: Chain) -> None:
    chain.wait("top", table("joined"))
    chain.run("joined", "success", "2026-06-01-04-00")
    root = chain.root_of()
    assert (root["of"], root["state"], root["text"]) == (key("joined"), "skipped", "catch-up off")
    expected = f"airflow-chronon backfill {dag('joined')} --start-ds {LABEL} --missing --with-upstream"
    assert root["remedy"] == expected  # its own producer lacks the hour too


def test_a_slot_that_is_taken_says_by_whom(chain: Chain) -> None:
    (chain.root / "chronon.yaml").write_text("max_active_runs: 1\n")
    chain.run("top", "running", backfill="scheduled")
    chain.airflow.task_records.append(
        TaskRecord(dag("top"), "backfill__2026-05-01-00-00", "backfill", "running", 1, float(NOW - 60))
    )
    found = chain.ask().json
    assert found["state"] == "waits for its turn"
    assert found["text"] == "max_active_runs is 1, and its slots are taken by backfill__2026-05-01-00-00"


def test_a_queued_run_says_what_is_under_way_in_its_place(chain: Chain) -> None:
    (chain.root / "chronon.yaml").write_text("max_pending_runs: 1\n")
    chain.run("top", "queued")
    chain.run("top", "running", "2026-06-01-04-00")
    text = chain.ask().json["text"]
    assert text == "1 runs of its DAG are under way, and max_pending_runs is 1: scheduled__2026-06-01-04-00"


def test_labels_with_one_fate_stand_together_and_the_oldest_is_followed(chain: Chain) -> None:
    daily = staging_query("t.day__1", schedule="@daily", interval="1d", dependencies=[dependency(table("top"), "1h")])
    (chain.root / "compiled" / "staging_queries" / "t" / "day__1").write_text(json.dumps(daily))
    chain.airflow.dag_records[dag("day")] = DagRecord(dag("day"))
    chain.land(table("top"), *(f"2026-05-31-{hour:02}-00" for hour in range(20)))
    chain.run("top", "success", "2026-05-31-19-00")
    chain.run("top", "success", "2026-06-01-04-00")
    run = RunRecord(dag("day"), "scheduled__2026-05-31", "scheduled", "running", "2026-05-31", at("2026-05-31"))
    chain.airflow.run_records.append(run)
    chain.airflow.task_records.append(TaskRecord(dag("day"), run.run_id, f"wait.{table('top')}", "deferred", 1, 0.0))
    (below,) = chain.ask("day", "2026-05-31").json["because"]
    assert (below["label"], below["more_labels"]) == ("2026-05-31-20-00", 3)


def test_without_airflow_the_catalogs_alone_tell(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_chronon.cli.commands.why.find_server", lambda address: None)
    answer = chain.command("why", key("top"), LABEL, "--root", chain.root)
    assert answer.code == 0
    assert answer.out.startswith(f"{key('top')} {LABEL} is not there")
    assert "no connection names an Airflow" in answer.err


def test_a_catalog_that_does_not_answer_is_said_so(chain: Chain) -> None:
    chain.wait("raw", SOURCE)
    folder = chain.root / "warehouse" / SOURCE
    folder.mkdir(parents=True)
    (folder / "data.parquet").touch()  # data without partitions can never hold the label
    root = chain.root_of("raw")
    assert (root["of"], root["state"]) == (SOURCE, "cannot be told")
    assert "without partitions" in root["text"]


def test_an_interval_of_a_job_is_told_too(chain: Chain) -> None:  # H20
    folder = chain.root / "jobs" / "etl"
    folder.mkdir(parents=True)
    runner = "runner: {kind: command, argv: [echo]}"
    (folder / "hourly.yaml").write_text(
        f"version: 1\n{runner}\nschedule: {{cron_expression: '0 0 * * * ?', start_time: 2026-05-01T00:00:00Z}}\n"
    )
    chain.airflow.dag_records["job.etl.hourly"] = DagRecord("job.etl.hourly")
    start = at("2026-06-01 03:00")
    label, run_id = "2026-06-01T03:00:00Z", "scheduled__2026-06-01T03:00:00Z"
    chain.airflow.run_records.append(
        RunRecord("job.etl.hourly", run_id, "scheduled", "failed", label, start, run_after=start + HOUR)
    )
    chain.airflow.task_records.append(TaskRecord("job.etl.hourly", run_id, "run", "failed", 3, 0, 1))
    found = chain.command("why", "job/etl.hourly", label, "--root", chain.root, "--format", "json").json
    assert (found["of"], found["state"], found["text"]) == ("job/etl.hourly", "failed", "run failed in try 3")


@pytest.mark.parametrize(
    ("conf", "label", "said"),
    [("nope", LABEL, "no conf is called"), (key("top"), "20260601", "is not a partition")],
)
def test_a_mistake_is_one_sentence(chain: Chain, conf: str, label: str, said: str) -> None:
    answer = chain.command("why", conf, label, "--root", chain.root)
    assert answer.code == 2 and answer.out == ""
    assert said in answer.err and answer.err.strip().count("\n") == 0


@pytest.mark.parametrize(("state", "root"), [("running", "running"), ("failed", "failed")])
def test_a_run_that_holds_for_its_own_replay_names_what_it_holds_for(chain: Chain, state: str, root: str) -> None:
    # C27: all that it reads has landed before
    chain.land(SOURCE, LABEL)
    chain.land(table("raw"), LABEL)
    order = {"id": "ab12", "rebuilds": {dag("raw"): [3600, [[at("2026-06-01 03:00"), 1]]]}, "held_for": [dag("raw")]}
    for step in ("raw", "clean"):
        run = chain.run(step, state if step == "raw" else "running", LABEL, backfill=None)
        made = replace(run, run_id=f"manual__{LABEL}__ab12", run_type="manual", conf={"replay": order})
        chain.airflow.run_records[-1] = made
    tasks = [("raw", "backfill", state), ("clean", f"wait.{table('raw')}", "deferred")]
    chain.airflow.task_records = [
        TaskRecord(dag(step), f"manual__{LABEL}__ab12", task, of, 1, at("2026-06-01 04:00"), at("2026-06-01 04:10"))
        for step, task, of in tasks
    ]
    answer = chain.ask("clean").json
    assert (answer["state"], answer["text"]) == ("waiting", "its run holds for what its replay rebuilds before it")
    (below,) = answer["because"]
    assert (below["of"], below["label"], below["state"]) == (key("raw"), LABEL, root)
