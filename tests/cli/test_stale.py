"""What ``partitions`` and ``why`` say of partitions that are stale, and ``backfill --stale`` replays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_chronon.airflow_api.errors import AirflowRefused
from airflow_chronon.airflow_api.records import TaskRecord
from tests.support.conf_chain import CHAIN, LABEL, NOW, SOURCE, Chain, chain, dag, key, table
from tests.support.confs import at

__all__ = ["chain"]  # a fixture


def write(chain: Chain, step: str, ended: str, label: str = LABEL) -> None:
    """A run that wrote a partition, with the moment at which its work ended; a later one of the label is a replay."""
    chain.run(step, "success", label)
    run = chain.airflow.run_records[-1]
    run_id = f"{run.run_id}__{len(chain.airflow.run_records)}"
    chain.airflow.run_records[-1] = replace(run, run_id=run_id, run_type="backfill")
    end = float(at(ended))
    chain.airflow.task_records.append(TaskRecord(dag(step), run_id, "backfill", "success", 1, end - 60, end))


def written_in_order(chain: Chain) -> None:
    chain.land(SOURCE, LABEL)
    for place, step in enumerate(CHAIN):
        chain.land(table(step), LABEL)
        write(chain, step, f"2026-06-01 04:{10 + place}")


def states(chain: Chain) -> list[str]:
    return [chain.ask(step).json["state"] for step in CHAIN]


def test_a_replay_makes_stale_what_read_it_and_no_more_until_that_is_written(chain: Chain) -> None:  # C15
    written_in_order(chain)
    assert states(chain) == ["landed"] * 4
    write(chain, "raw", "2026-06-01 05:00")
    assert states(chain) == ["landed", "stale", "landed", "landed"]
    write(chain, "clean", "2026-06-01 05:10")
    assert states(chain) == ["landed", "landed", "stale", "landed"]
    write(chain, "joined", "2026-06-01 05:20")
    write(chain, "top", "2026-06-01 05:25")
    assert states(chain) == ["landed"] * 4


def test_a_stale_partition_says_what_was_written_after_it_and_what_to_press(chain: Chain) -> None:
    written_in_order(chain)
    write(chain, "raw", "2026-06-01 05:00")
    answer = chain.ask("clean").json
    assert answer["text"] == (
        f"{table('raw')} {LABEL} was written at 2026-06-01T05:00:00Z, after this was written at 2026-06-01T04:11:00Z"
    )
    assert answer["remedy"] == f"airflow-chronon backfill {dag('clean')} --start-ds {LABEL} --stale"
    assert chain.text("clean").startswith(f"{key('clean')} {LABEL} is stale: {table('raw')} {LABEL} was written at")


def test_what_was_made_of_a_stale_partition_says_so(chain: Chain) -> None:
    written_in_order(chain)
    write(chain, "raw", "2026-06-01 05:00")
    assert chain.text("top").splitlines()[0] == (
        f"{key('top')} {LABEL} is there, and was made of what is stale: {key('clean')} {LABEL}"
    )
    root = chain.root_of("top")
    assert (root["of"], root["state"]) == (key("clean"), "stale")


def test_partitions_tell_which_are_stale(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_chronon.cli.commands.partitions.find_server", lambda address: chain.airflow)
    monkeypatch.setattr("airflow_chronon.cli.commands.partitions.time.time", lambda: float(NOW))
    written_in_order(chain)
    write(chain, "raw", "2026-06-01 05:00")
    asked = ("partitions", key("clean"), "--root", chain.root, "--start-ds", LABEL)
    (row,) = chain.command(*asked, "--format", "json").json["partitions"]
    assert (row["state"], row["landed"]) == ("stale", True)
    assert row["stale"] == {
        "table": table("raw"),
        "label": LABEL,
        "wrote": "2026-06-01T05:00:00Z",
        "written": "2026-06-01T04:11:00Z",
    }
    assert chain.command(*asked).out.splitlines()[-1] == "1 stale"


def test_an_airflow_that_does_not_tell_when_tables_were_written_leaves_them_landed(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_chronon.cli.commands.partitions.find_server", lambda address: chain.airflow)

    def refuse(*args: object, **more: object) -> None:
        raise AirflowRefused("listing", status=500, detail="no")

    monkeypatch.setattr("airflow_chronon.cli.partition_facts.find_staleness", refuse)
    written_in_order(chain)
    answer = chain.command("partitions", key("clean"), "--root", chain.root, "--start-ds", LABEL)
    assert answer.code == 0 and "1 landed" in answer.out
    assert f"what of {key('clean')} is stale is not known: " in answer.err


def test_partitions_of_one_state_are_shown_alone(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_chronon.cli.commands.partitions.find_server", lambda address: chain.airflow)
    written_in_order(chain)
    chain.land(table("clean"), "2026-06-01-02-00")
    write(chain, "raw", "2026-06-01 05:00")
    asked = ("partitions", key("clean"), "--root", chain.root, "--start-ds", "2026-06-01", "--format", "json")
    found = chain.command(*asked, "--state", "stale").json["partitions"]
    assert [(row["label"], row["state"]) for row in found] == [(LABEL, "stale")]
    both = chain.command(*asked, "--state", "stale", "--state", "landed").json["partitions"]
    assert [row["state"] for row in both] == ["landed", "stale"]


@pytest.fixture
def replaying(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> Chain:
    """The chain in an Airflow that ``backfill`` asks."""
    for name in ("find_server", "need_server"):
        monkeypatch.setattr(f"airflow_chronon.cli.commands.backfill.{name}", lambda options: chain.airflow)
    monkeypatch.setattr("airflow_chronon.cli.commands.backfill.time.time", lambda: float(NOW))
    return chain


def stale_replay(chain: Chain, *more: str) -> tuple[str, ...]:
    return "backfill", key("clean"), "--root", chain.root, "--start-ds", "2026-06-01", "--stale", *more


def test_a_replay_of_what_is_stale_takes_exactly_that(replaying: Chain) -> None:  # C15
    written_in_order(replaying)
    replaying.land(table("clean"), "2026-06-01-02-00")
    write(replaying, "raw", "2026-06-01 05:00")
    (replay,) = replaying.command(*stale_replay(replaying, "--dry-run", "--format", "json")).json["replays"]
    assert (replay["dag_id"], replay["labels"]) == (dag("clean"), [LABEL])
    write(replaying, "clean", "2026-06-01 05:10")
    answer = replaying.command(*stale_replay(replaying, "--dry-run"))
    assert answer.code == 0 and "nothing to replay: no partition of" in answer.out and "is stale" in answer.out


def test_an_airflow_that_does_not_tell_what_is_stale_ends_the_replay(
    replaying: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AirflowRefused("listing", status=500, detail="no")

    monkeypatch.setattr("airflow_chronon.cli.partition_facts.find_staleness", refuse)
    written_in_order(replaying)
    before = list(replaying.airflow.run_records)
    answer = replaying.command(*stale_replay(replaying))
    assert answer.code != 0 and "nothing to replay" not in answer.out
    assert replaying.airflow.run_records == before
