"""``airflow-chronon backfill --downstream`` against a real Airflow: all that read an hour is rebuilt after it (C15, C27)."""

from __future__ import annotations

import pytest

from airflow_chronon.cli.main import main
from tests.support.confs import dependency
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.replay_lab import Lab, hour, unscheduled

pytestmark = pytest.mark.soak


@pytest.fixture(autouse=True)
def _airflow(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CHRONON_AIRFLOW", lab.airflow.server.environment["AIRFLOW_CONN_CHRONON_AIRFLOW"])


def backfill(lab: Lab, *arguments: str) -> int:
    return main(["backfill", *arguments, "--root", str(lab.airflow.conf_root)])


def test_one_hour_and_all_that_read_it_in_the_order_of_the_graph(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    raw = unscheduled("t.down.raw__1", "1h")
    clean = unscheduled("t.down.clean__1", "1h", dependencies=[dependency("ns.t_down_raw__1", "1h", start="1h")])
    top = unscheduled("t.down.top__1", "1h", dependencies=[dependency("ns.t_down_clean__1", "1h")])
    dags = [lab.deploy(each) for each in (raw, clean, top)]
    tables = [lab.table(f"t.down.{name}__1") for name in ("raw", "clean", "top")]
    lab.wait_for(*dags)
    labels = [hour(ago) for ago in range(5, -1, -1)]
    for table in tables:
        for label in labels:
            folder = lab.airflow.warehouse / table / f"ds={label}"
            folder.mkdir(parents=True)
            (folder / "_SUCCESS").touch()

    lab.fail(tables[1], labels[2])
    with lab.holding(tables[0]):
        assert backfill(lab, dags[0], "--start-ds", labels[2], "--all", "--downstream") == 0
        wait_until(lambda: lab.told(tables[0]), timeout=120, why="the hour is being rebuilt")
        runs = {run.partition_key: run for run in lab.airflow.api.runs(dags[1])}
        assert sorted(runs) == labels[2:4]  # its own hour, and the next one, which reads it too

        def holds() -> bool:
            logs = [lab.log_of(run, f"wait.{tables[0]}") for run in runs.values()]
            return all(f"holds for the replay of {labels[2]} of {dags[0]}" in log for log in logs)

        wait_until(holds, timeout=120, why="the runs behind it hold for it, though all has landed before")
        assert lab.told(tables[1]) == lab.told(tables[2]) == []
    wait_until(lambda: lab.ended(runs[labels[3]]).state == "success", timeout=180, why="the next hour is rebuilt")
    failed = lab.ended(runs[labels[2]])
    assert failed.state == "failed"
    capsys.readouterr()

    # at night: what failed is mended, and the replay goes on from there
    lab.fail(tables[1])
    order = failed.conf["replay"]
    assert backfill(lab, dags[0], "--start-ds", labels[2], "--resume", order["id"], "--wait") == 0
    for run in lab.airflow.api.runs(dags[2]):
        assert lab.ended(run).state == "success"
    assert sorted(run.partition_key for run in lab.airflow.api.runs(dags[2])) == labels[2:4]

    ends = {
        (told["table"], told["labels"][0]): told["at"] for t in tables for told in lab.told(t) if told["what"] == "ends"
    }
    begins = {
        (told["table"], told["labels"][0]): told["at"]
        for t in tables
        for told in lab.told(t)
        if told["what"] == "begins"
    }
    assert sorted(ends) == sorted(
        [(tables[0], labels[2]), *((table, label) for table in tables[1:] for label in labels[2:4])]
    )
    for label in labels[2:4]:
        assert ends[tables[0], labels[2]] < begins[tables[1], label]
        assert ends[tables[1], label] < begins[tables[2], label]
