"""``backfill --downstream``, ``--in-order`` and ``--resume`` (C27)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from airflow_chronon.airflow_api.errors import AirflowRefused
from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from airflow_chronon.core.runs.replay_order import read_order
from tests.support.command_line import Answer
from tests.support.conf_chain import CHAIN, LABEL, NOW, SOURCE, Chain, chain, dag, key, table
from tests.support.confs import dependency, staging_query

__all__ = ["chain"]  # a fixture

SPEC = PartitionSpec(PartitionGrid(HOUR), partition_format("yyyy-MM-dd-HH-mm"))
HOURS = [f"2026-06-01-0{hour}-00" for hour in range(5)]


@pytest.fixture(autouse=True)
def _airflow(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    chain.airflow.specs.update({dag(step): SPEC for step in CHAIN})
    for name in ("find_server", "need_server"):
        monkeypatch.setattr(f"airflow_chronon.cli.commands.backfill.{name}", lambda address: chain.airflow)
    monkeypatch.setattr("airflow_chronon.cli.commands.backfill.time.time", lambda: float(NOW))
    for name in (SOURCE, *map(table, CHAIN)):
        chain.land(name, *HOURS)


def backfill(chain: Chain, step: str, *arguments: str, label: str = LABEL) -> Answer:
    answer: Answer = chain.command("backfill", key(step), "--start-ds", label, "--root", chain.root, *arguments)
    return answer


def made(chain: Chain) -> list[tuple[str, str, str]]:
    """Step, label and kind of each run, in the order in which they were made."""
    steps = {dag(step): step for step in CHAIN}
    return [(steps[run.dag_id], str(run.partition_key), run.run_type) for run in chain.airflow.run_records]


def test_everything_behind_a_partition_is_replayed_after_it_and_carries_what_it_holds_for(chain: Chain) -> None:
    answer = backfill(chain, "clean", "--all", "--downstream", "--format", "json")
    assert answer.code == 0, answer.err
    assert made(chain) == [("clean", LABEL, "manual"), ("joined", LABEL, "manual"), ("top", LABEL, "manual")]
    assert [each["conf"] for each in answer.json["replays"]] == [key(step) for step in CHAIN[1:]]
    replay_id = answer.json["id"]
    assert [run.run_id for run in chain.airflow.run_records] == [f"manual__{LABEL}__{replay_id}"] * 3
    for run in chain.airflow.run_records:
        order = read_order(run.conf)
        assert order is not None and order.held_for == {dag("clean"), dag("joined")}
        assert sorted(order.rebuilds) == sorted(map(dag, CHAIN[1:]))


def test_what_nobody_holds_for_runs_as_a_range_of_airflows_backfill(chain: Chain) -> None:
    answer = backfill(chain, "joined", "--all", "--downstream", "--end-ds", HOURS[3], label=HOURS[0])
    assert answer.code == 0, answer.err
    kinds = {(step, kind) for step, _, kind in made(chain)}
    assert kinds == {("joined", "manual"), ("top", "backfill")}
    assert all(read_order(run.conf) is not None for run in chain.airflow.run_records)
    assert f"{key('top')}: 4 partitions, 4 as one range" in answer.out


def test_only_what_is_stale_at_the_head_and_all_behind_it(chain: Chain) -> None:
    answer = backfill(chain, "clean", "--stale", "--downstream", "--dry-run")
    assert answer.code == 0 and "nothing to replay" in answer.out


def test_runs_under_way_are_left_alone_and_counted(chain: Chain) -> None:
    chain.run("joined", "running")
    answer = backfill(chain, "clean", "--all", "--downstream")
    assert [step for step, *_ in made(chain)] == ["joined", "clean", "top"]
    assert "left to the runs that are under way: 1" in answer.out


def test_a_replay_that_was_cut_off_goes_on_with_exactly_the_rest(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = chain.airflow.trigger

    def cut_off(dag_id: str, **more: Any) -> Any:
        if dag_id == dag("top"):
            raise AirflowRefused("triggering", status=500, detail="cut off")
        return trigger(dag_id, **more)

    monkeypatch.setattr(chain.airflow, "trigger", cut_off)
    answer = backfill(chain, "raw", "--all", "--downstream")
    assert answer.code == 1
    assert [step for step, *_ in made(chain)] == ["raw", "clean", "joined"]
    assert f"airflow-chronon backfill {key('raw')} --start-ds {LABEL} --resume " in answer.err
    replay_id = answer.err.rpartition("--resume ")[2].split()[0]
    runs = chain.airflow.run_records
    runs[:] = [replace(runs[0], state="success"), replace(runs[1], state="failed"), runs[2]]

    monkeypatch.setattr(chain.airflow, "trigger", trigger)
    shown = backfill(chain, "raw", "--resume", replay_id, "--dry-run")
    assert "1 ended well, 1 under way" in shown.out and len(runs) == 3
    answer = backfill(chain, "raw", "--resume", replay_id)
    assert answer.code == 0, answer.err
    assert [step for step, *_ in made(chain)] == list(CHAIN)
    assert ("clear_failed", dag("clean"), f"manual__{LABEL}__{replay_id}") in chain.airflow.calls
    assert {order.id for run in runs if (order := read_order(run.conf)) is not None} == {replay_id}
    again = backfill(chain, "raw", "--resume", replay_id)
    assert again.code == 0 and "nothing to go on with" in again.out and len(runs) == 4


def test_a_replay_that_nobody_knows_is_said_to_be_unknown(chain: Chain) -> None:
    answer = backfill(chain, "raw", "--resume", "ab12")
    assert answer.code == 2
    assert "no run of" in answer.err and "is of the replay ab12" in answer.err
    assert backfill(chain, "raw", "--resume", "a b").code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--in-order", "--backwards"), "one runs the oldest first and the other the newest"),
        (("--resume", "ab12", "--all"), "a replay that goes on runs what it was begun with"),
        (("--in-order", "--all"), "no partition of it reads an earlier one of its own"),
    ],
)
def test_options_that_contradict_each_other_are_refused(chain: Chain, arguments: tuple[str, ...], says: str) -> None:
    answer = backfill(chain, "raw", *arguments)
    assert answer.code == 2 and says in answer.err and made(chain) == []


def test_in_order_makes_every_partition_hold_for_the_one_before(chain: Chain) -> None:
    reads = [dependency(SOURCE, "1h"), dependency(table("raw"), "1h", start="1h", end="1h")]
    document = staging_query("t.raw__1", schedule="5 * * * *", interval="1h", dependencies=reads)
    (chain.root / "compiled" / "staging_queries" / "t" / "raw__1").write_text(json.dumps(document))
    answer = backfill(chain, "raw", "--all", "--in-order", "--end-ds", HOURS[3], label=HOURS[1])
    assert answer.code == 0, answer.err
    assert made(chain) == [("raw", label, "manual") for label in HOURS[1:4]]
    assert {tuple(order.held_for) for run in chain.airflow.run_records if (order := read_order(run.conf))} == {
        (dag("raw"),)
    }
