"""``airflow-chronon size``: for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import DATA, Command


def settings(answer: dict[str, object]) -> dict[str, object]:
    found = answer["settings"]
    assert isinstance(found, list)
    return {each["name"]: each["value"] for each in found}


def test_each_setting_has_its_reason(command: Command) -> None:
    answer = command("size", "--root", DATA / "main")
    assert (answer.code, answer.err) == (0, "")
    head, *lines = answer.out.splitlines()
    assert head.startswith("59 DAGs, ")
    (triggerers,) = [line for line in lines if line.strip().startswith("triggerers")]
    assert triggerers.split()[1] == "2" and "when one run of each conf waits" in triggerers
    assert lines[-2].startswith("scheduler so: 0.")


def test_json_holds_the_same(command: Command) -> None:
    found = command("size", "--root", DATA / "main", "--format", "json").json
    assert found["load"]["dags"] == 59 and settings(found)["triggerers"] == 2
    assert found.keys() == {"load", "settings", "scheduler", "without", "parse_seconds"}


def test_ten_thousand_confs_of_the_same_kinds(command: Command) -> None:
    found = command("size", "--root", DATA / "main", "--confs", "10000", "--format", "json").json
    assert found["load"]["dags"] == 10_000 and settings(found)["loader files"] == 10
    assert found["without"]["cores"] > found["scheduler"]["cores"]


def test_what_one_knows_better_counts(command: Command) -> None:
    few = command("size", "--root", DATA / "main", "--confs", "1000", "--waiting", "10", "--format", "json").json
    assert few["load"]["waiting"] == 10 and settings(few)["[chronon] pass_over_waiting_runs"] == "False"
    slow = command(
        "size", "--root", DATA / "main", "--confs", "1000", "--work-seconds", "3000", "--format", "json"
    ).json
    assert settings(slow)["[core] parallelism"] > settings(few)["[core] parallelism"]  # type: ignore[operator]


def test_a_root_that_is_not_there_is_a_finding(command: Command, tmp_path: Path) -> None:
    answer = command("size", "--root", tmp_path / "nowhere")
    assert answer.code == 1 and "there is no conf root" in answer.err


@pytest.mark.parametrize("count", ["0", "-1", "many", "1000001"])
def test_a_count_that_is_none_is_refused(command: Command, count: str) -> None:
    answer = command("size", "--confs", count)
    assert answer.code == 2 and "is not a number from 1 to 1000000" in answer.err
