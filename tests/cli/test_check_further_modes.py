"""``airflow-chronon check`` names what confs ask for and no DAG runs: further modes of the driver, and models (D5)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import DATA, Command

STREAMED = "group_bys/checkout/purchases.streamed"
SERVED = "joins/checkout/training.served"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A repository of the older dialect with one GroupBy that is streamed and one Join that is checked."""
    for file in (STREAMED, SERVED):
        path = tmp_path / "production" / file
        path.parent.mkdir(parents=True)
        shutil.copy(DATA / "older/production" / file, path)
    return tmp_path


def change(root: Path, file: str, edit: Callable[[dict[str, Any]], None]) -> None:
    path = root / "production" / file
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def of_meta(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["metaData"].update(fields)


def asked(command: Command, root: Path) -> dict[str, str]:
    """Who asks for each mode."""
    lines = command("check", "--root", root).err.replace("\n", " ").split("warning: ")
    found = (line.split(" for the mode ") for line in lines if " for the mode " in line)
    return {mode.split(" ")[0]: who.rpartition(" ")[0] for who, mode in found}


class TestWhoAsks:
    def test_each_mode_names_its_confs_and_the_remedy(self, command: Command, older: Path) -> None:
        assert asked(command, older) == {
            "streaming": "group_by/checkout.purchases.streamed",
            "consistency-metrics-compute": "join/checkout.training.served",
            "log-flattener": "join/checkout.training.served",
        }
        assert "Run the driver in that mode from a job file." in command("check", "--root", older).err

    def test_a_group_by_that_is_not_online_is_not_streamed(self, command: Command, older: Path) -> None:
        change(older, STREAMED, of_meta(online=0))
        assert "streaming" not in asked(command, older)

    def test_the_older_dialect_streams_what_is_point_in_time_without_a_topic(
        self, command: Command, older: Path
    ) -> None:
        def without_topic(document: dict[str, Any]) -> None:
            for source in document["sources"]:
                source["events"].pop("topic", None)

        change(older, STREAMED, without_topic)
        change(older, STREAMED, lambda document: document.update(accuracy=0))
        assert "streaming" in asked(command, older)
        change(older, STREAMED, lambda document: document.update(accuracy=1))
        assert "streaming" not in asked(command, older)

    def test_label_parts_ask_for_a_label_join(self, command: Command, older: Path) -> None:
        change(older, SERVED, lambda document: document.update(labelParts={"labels": [], "leftStartOffset": 30}))
        assert asked(command, older)["label-join"] == "join/checkout.training.served"

    def test_a_consistency_percentage_alone_asks_for_no_check(self, command: Command, older: Path) -> None:
        change(older, SERVED, of_meta(customJson="{}", consistencySamplePercent=5.0))
        assert "consistency-metrics-compute" not in asked(command, older)
        change(older, SERVED, of_meta(consistencyCheck=1))
        assert "consistency-metrics-compute" in asked(command, older)

    @pytest.mark.parametrize("odd", ["10", None, True, [], 0, -1])
    def test_what_is_no_percentage_asks_for_nothing(self, command: Command, older: Path, odd: object) -> None:  # S1
        change(
            older, SERVED, of_meta(samplePercent=odd, customJson='["check_consistency"]', consistencySamplePercent=odd)
        )
        assert asked(command, older).keys() == {"streaming"}

    def test_of_many_confs_three_are_named_and_the_others_counted(self, command: Command, older: Path) -> None:
        text = (older / "production" / STREAMED).read_text()
        for number in range(4):
            other = older / "production/group_bys/checkout" / f"purchases.streamed{number}"
            other.write_text(text.replace("checkout.purchases.streamed", f"checkout.purchases.streamed{number}"))
        names = asked(command, older)["streaming"]
        assert names.count("group_by/") == 3 and names.endswith(" and 2 more")


class TestCompiledTree:
    def test_streaming_and_models_of_the_newer_dialect(self, command: Command) -> None:
        answer = command("check", "--root", DATA / "main")
        assert asked(command, DATA / "main") == {
            "streaming": "group_by/checkout.purchases.hourly_online__1 and group_by/growth.sessions.accounts_mutable__1"
        }
        assert "main/models has 1 model, which no DAG runs" in answer.err
        assert "main/model_transforms has 1 model transform, which no DAG runs" in answer.err

    def test_nothing_of_it_changes_the_verdicts(self, command: Command, older: Path) -> None:
        answer = command("check", "--root", older, "--format", "json")
        assert answer.code == 0
        assert {key: entry["warnings"] for key, entry in answer.json.items() if entry["warnings"]} == {}
