"""``airflow-chronon backfill`` and ``partitions`` against a real Airflow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from airflow_chronon.cli.main import main
from tests.support.command_line import Answer
from tests.support.confs import dependency
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.replay_lab import Lab, unscheduled

pytestmark = pytest.mark.soak

Cli = Callable[..., Answer]

CLOSED = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def hours(first: int, last: int) -> list[str]:
    """Labels of closed hours, ``first`` to ``last`` hours ago, oldest first."""
    return [f"{CLOSED - timedelta(hours=ago):%Y-%m-%d-%H-%M}" for ago in range(first, last - 1, -1)]


@pytest.fixture
def cli(lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line, pointed at the running Airflow by a connection in the environment."""
    monkeypatch.setenv("AIRFLOW_CONN_CHRONON_AIRFLOW", lab.airflow.server.environment["AIRFLOW_CONN_CHRONON_AIRFLOW"])

    def call(command: str, *arguments: str) -> Answer:
        capsys.readouterr()
        code = main([command, *arguments, "--root", str(lab.airflow.conf_root)])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


def keys_of(lab: Lab, dag_id: str, run_type: str | None = None) -> list[str]:
    return sorted(str(run.partition_key) for run in lab.airflow.api.runs(dag_id, run_type=run_type))


def states(answer: Answer) -> dict[str, str]:
    return {row["label"]: row["state"] for row in answer.json["partitions"]}


def test_missing_partitions_run_as_one_range_and_by_key_and_the_same_range_any_number_of_times(
    lab: Lab, cli: Cli
) -> None:
    dag_id = lab.deploy(unscheduled("t.replay.missing__1", "1h"))
    lab.wait_for(dag_id)
    labels = hours(8, 3)
    (lab.airflow.warehouse / lab.table("t.replay.missing__1") / f"ds={labels[2]}").mkdir(parents=True)
    (lab.airflow.warehouse / lab.table("t.replay.missing__1") / f"ds={labels[2]}" / "_SUCCESS").touch()
    span = (
        dag_id,
        "--start-ds",
        labels[0].replace("-", "/", 2)[:10] + " " + labels[0][11:13],
        "--end-ds",
        labels[-1],
    )  # C27

    planned = cli("backfill", *span, "--dry-run")
    assert planned.code == 0
    assert [line.strip() for line in planned.out.splitlines()[1:]] == [label for label in labels if label != labels[2]]
    assert keys_of(lab, dag_id) == []

    answer = cli("backfill", *span, "--wait")
    assert answer.code == 0, answer
    assert "3 as one range and 2 by key" in answer.out
    assert keys_of(lab, dag_id, "backfill") == labels[3:]
    assert keys_of(lab, dag_id, "manual") == labels[:2]
    assert set(states(cli("partitions", *span, "--format", "json")).values()) == {"landed"}

    again = cli("backfill", *span, "--wait")
    assert again.code == 0
    assert "nothing to replay" in again.out
    for count in (2, 3):  # case 13: a range that has run is run again
        answer = cli("backfill", *span, "--all", "--backwards", "--wait", "--format", "json")
        assert answer.code == 0, answer
        assert sorted(run["label"] for run in answer.json["runs"]) == labels
        assert keys_of(lab, dag_id, "backfill").count(labels[-1]) == count


def test_failed_partitions_are_named_and_failed_runs_exactly_those(lab: Lab, cli: Cli) -> None:
    dag_id, table = lab.deploy(unscheduled("t.replay.failing__1", "1h")), lab.table("t.replay.failing__1")
    lab.wait_for(dag_id)
    labels = hours(6, 4)
    span = (dag_id, "--start-ds", labels[0], "--end-ds", labels[-1])
    lab.fail(table, labels[1])
    answer = cli("backfill", *span, "--wait")
    assert answer.code == 1
    assert f"{dag_id} {labels[1]}: failed" in answer.err
    assert list(states(cli("partitions", *span, "--format", "json")).values()) == ["landed", "failed", "landed"]
    lab.fail(table)
    answer = cli("backfill", *span, "--failed", "--wait", "--format", "json")
    assert answer.code == 0, answer
    assert [run["label"] for run in answer.json["runs"]] == [labels[1]]
    assert set(states(cli("partitions", *span, "--format", "json")).values()) == {"landed"}


def test_what_cannot_be_is_refused_in_one_sentence_and_nothing_is_created(lab: Lab, cli: Cli) -> None:
    dag_id, table = lab.deploy(unscheduled("t.replay.refused__1", "1h")), lab.table("t.replay.refused__1")
    lab.wait_for(dag_id)
    labels = hours(6, 3)
    refusals = {
        ("--start-ds", labels[1], "--end-ds", labels[0]): "is before start_ds",  # case 12
        ("--start-ds", labels[0], "--end-ds", "2199-01-01-00-00"): "newest closed one is",
        (
            "--start-ds",
            labels[0],
            "--airflow",
            "http://admin:wrong@" + lab.airflow.server.url.split("//")[1],
        ): "password",
        ("--start-ds", labels[0], "--airflow", "http://a:b@127.0.0.1:9"): "does not answer",
    }
    for arguments, said in refusals.items():
        answer = _fails(cli, "backfill", dag_id, *arguments)
        assert said in answer.err
    inside = cli("backfill", dag_id, "--start-ds", labels[0][:-2] + "30", "--dry-run")
    assert inside.code == 0 and f"lies in {labels[0]}" in inside.err  # C27: a range is read in time
    lab.airflow.api.pause(dag_id)
    answer = _fails(cli, "backfill", dag_id, "--start-ds", labels[0])  # case 15
    assert "is paused" in answer.err and "--unpause" in answer.err
    assert keys_of(lab, dag_id) == []

    with lab.holding(table):
        answer = cli("backfill", dag_id, "--start-ds", labels[0], "--end-ds", labels[1], "--unpause")
        assert answer.code == 0, answer
        answer = _fails(cli, "backfill", dag_id, "--start-ds", labels[2], "--end-ds", labels[3])
        assert "is active, and Airflow runs one at a time" in answer.err
        assert f"{labels[0]} to {labels[1]}" in answer.err
    assert keys_of(lab, dag_id) == labels[:2]
    wait_until(lambda: all(b["completed_at"] for b in lab.airflow.api.backfills(dag_id)), timeout=120, why="it ends")


def test_with_upstream_the_producers_run_first_and_everything_lands(lab: Lab, cli: Cli) -> None:
    raw = lab.deploy(unscheduled("t.replay.raw__1", "1h"))
    reads = [dependency("ns.t_replay_raw__1", "1h")]
    total = lab.deploy(unscheduled("t.replay.total__1", "3h", dependencies=reads))
    lab.wait_for(raw, total)
    labels = ["2026-06-01-03-00", "2026-06-01-06-00"]
    span = (total, "--start-ds", labels[0], "--end-ds", labels[1])
    answer = cli("backfill", *span, "--with-upstream", "--wait", "--format", "json")
    assert answer.code == 0, answer
    assert [replay["dag_id"] for replay in answer.json["replays"]] == [raw, total]
    assert answer.json["replays"][0]["labels"] == [f"2026-06-01-{hour:02}-00" for hour in range(3, 9)]
    assert set(states(cli("partitions", *span, "--format", "json")).values()) == {"landed"}
    ends = [entry["at"] for entry in lab.told(lab.table("t.replay.raw__1")) if entry["what"] == "ends"]
    begins = [entry["at"] for entry in lab.told(lab.table("t.replay.total__1")) if entry["what"] == "begins"]
    assert sorted(ends)[2] <= min(begins)  # three hours feed the first total


def test_airflow_plans_a_year_of_hours_as_the_command_prints_it(lab: Lab, cli: Cli) -> None:
    dag_id = lab.deploy(unscheduled("t.replay.year__1", "1h"))
    lab.wait_for(dag_id)
    answer = cli(
        "backfill", dag_id, "--start-ds", "2025-03-01", "--end-ds", "2026-02-28", "--dry-run", "--format", "json"
    )
    assert answer.code == 0, answer
    [replay] = answer.json["replays"]
    assert len(replay["labels"]) == 8760  # and Airflow's own plan was compared with them
    assert replay["range"] == ["2025-03-01-00-00", "2026-02-28-23-00"]
    assert keys_of(lab, dag_id) == []


def _fails(cli: Cli, *arguments: str) -> Answer:
    answer = cli(*arguments)
    assert answer.code != 0, answer
    assert "Traceback" not in answer.err
    assert answer.err.strip().count("\n") == 0, answer.err
    return answer


def test_a_cleared_run_of_a_cancelled_backfill_is_named_and_replaced(lab: Lab, cli: Cli) -> None:
    dag_id, table = lab.deploy(unscheduled("t.replay.stranded__1", "1h")), lab.table("t.replay.stranded__1")
    lab.wait_for(dag_id)
    api, labels = lab.airflow.api, hours(4, 2)
    start, end = CLOSED - timedelta(hours=4), CLOSED - timedelta(hours=2)
    with lab.holding(table):
        made = api.backfill(dag_id, start=start, end=end, max_active_runs=1)
        wait_until(lambda: lab.told(table), timeout=120, why="the first of them works")
        api.request("PUT", f"/backfills/{made['id']}/cancel")
    wait_until(
        lambda: not [run for run in api.runs(dag_id) if run.state in ("queued", "running")],
        timeout=120,
        why="the first one has ended, and the others with the backfill",
    )
    failed = [run for run in api.runs(dag_id) if run.state == "failed"]
    assert [run.partition_key for run in failed] == labels[1:]
    for run in failed:
        api.request("POST", f"/dags/{dag_id}/dagRuns/{run.run_id}/clear", json={"dry_run": False})
    span = (dag_id, "--start-ds", labels[0], "--end-ds", labels[-1])
    assert list(states(cli("partitions", *span, "--format", "json")).values()) == ["landed", "stranded", "stranded"]
    assert [line.strip() for line in cli("backfill", *span, "--dry-run").out.splitlines()[1:]] == labels[1:]
    answer = cli("backfill", *span, "--wait")
    assert answer.code == 0, answer
    assert set(states(cli("partitions", *span, "--format", "json")).values()) == {"landed"}
    assert [api.run(dag_id, run.run_id).state for run in failed] == ["failed", "failed"]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_airflows_own_command_makes_each_day_of_a_range_whatever_its_zone(lab: Lab, zone: str) -> None:
    name = f"t.replay.{zone.rpartition('/')[2].lower()}__1"
    dag_id = lab.deploy(unscheduled(name, "1d"))
    lab.wait_for(dag_id)
    days = [f"{CLOSED - timedelta(days=ago):%Y-%m-%d}" for ago in (4, 3, 2)]
    environment = lab.airflow.server.environment | {"AIRFLOW__CORE__DEFAULT_TIMEZONE": zone}
    for first, last in ((days[0], days[-1]), (days[1], days[1])):
        wait_until(
            lambda: all(each["completed_at"] for each in lab.airflow.api.backfills(dag_id)),
            timeout=120,
            why="no backfill is active",
        )
        command = ["backfill", "create", "--dag-id", dag_id, "--from-date", first, "--to-date", last]
        command += ["--reprocess-behavior", "completed"]
        subprocess.run([sys.executable, "-m", "airflow", *command], env=environment, check=True, timeout=120)
    assert keys_of(lab, dag_id, "backfill") == sorted([*days, days[1]])


def test_a_run_goes_on_without_the_newest_partition_and_that_is_told(lab: Lab, cli: Cli) -> None:  # C17: max_lag
    """From the wait in the triggerer to what Airflow's API says of the run."""
    document = unscheduled(
        "t.replay.lags__1", "1h", dependencies=[dependency("raw.lagging", "1h", start="6h", partitionColumn="ds")]
    )
    own = {"max_lag": {"partitions": 1, "after": "3s"}, "sensor": {"poll_seconds": 1}}
    document["metaData"]["customJson"] = json.dumps({"airflow": own})
    dag_id = lab.deploy(document)
    lab.wait_for(dag_id)
    before, label = hours(4, 3)
    for each in (*hours(9, 5), before):
        folder = lab.airflow.warehouse / "raw.lagging" / f"ds={each}"
        folder.mkdir(parents=True)
        (folder / "_SUCCESS").touch()
    run = lab.ended(lab.airflow.api.trigger(dag_id, partition_key=label))
    assert run.state == "success"
    said = f"raw.lagging was read up to ds={before}, 1 partition behind (max_lag)"
    assert f"the run goes on after 3s of waiting: {said}" in lab.log_of(run, "wait.raw.lagging")
    (row,) = cli("partitions", dag_id, "--start-ds", label, "--format", "json").json["partitions"]
    assert (row["state"], row["reason"]) == ("landed", said)
