"""``airflow-chronon land``, and what ``partitions`` says of what was said."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.core.waits.said import SAID_ASSET, Said, words_of
from tests.support.command_line import Answer, Command
from tests.support.hourly_conf import CONF, TABLE, Place, airflow, labels, place

__all__ = ["airflow", "place"]  # fixtures


@pytest.fixture
def land(command: Command, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("airflow_chronon.cli.commands.land.need_server", lambda options: airflow)

    def call(*arguments: str) -> Answer:
        answer: Answer = command("land", *arguments)
        return answer

    return call


def said(airflow: FakeAirflow, table: str) -> dict[str, Said]:
    kept = {key: value for (asset, key), value in airflow.states.items() if asset == SAID_ASSET}
    return {label: word.said for label, word in words_of(kept, table).items()}


def test_partitions_are_said_to_be_there_each_with_an_event_of_its_asset(land: Any, airflow: FakeAirflow) -> None:
    airflow.assets.add("chronon://vendor/prices")
    answer = land("vendor.prices", "2026-06-01", "2026-06-02", "--by", "ada")
    assert answer.code == 0
    assert "there, by your word: 2 partitions, with an event of its asset for each" in answer.out
    assert said(airflow, "vendor.prices") == {"2026-06-01": Said.LANDED, "2026-06-02": Said.LANDED}
    events = [call for call in airflow.calls if call[0] == "add_asset_event"]
    assert events == [("add_asset_event", "chronon://vendor/prices", f"2026-06-0{day}") for day in (1, 2)]


def test_a_hole_on_purpose_has_no_event_and_can_be_taken_back(land: Any, airflow: FakeAirflow) -> None:
    assert land("vendor.prices", "2026-06-01", "--never", "--format", "json").json == {
        "table": "vendor.prices",
        "labels": ["2026-06-01"],
        "said": "never",
        "events": False,
    }
    assert said(airflow, "vendor.prices") == {"2026-06-01": Said.NEVER}
    before = airflow.states[SAID_ASSET, "of vendor.prices"]
    assert land("vendor.prices", "2026-06-01", "--undo").code == 0
    assert said(airflow, "vendor.prices") == {}
    assert airflow.states[SAID_ASSET, "of vendor.prices"] != before  # waits look again


def test_tables_whose_names_begin_alike_are_told_apart(land: Any, airflow: FakeAirflow) -> None:
    land("vendor.prices", "2026-06-01")
    land("vendor.prices_eu", "2026-06-02", "--never")
    assert said(airflow, "vendor.prices") == {"2026-06-01": Said.LANDED}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("vendor.prices", "2026-06-01", "--never", "--undo"), "give one of them"),
        (("vendor prices", "2026-06-01"), "is not the name of a table"),
        (("vendor.prices", " "), "is not a label"),
        (("vendor.prices", "2026\n06"), "is not a label"),
    ],
)
def test_what_is_no_partition_is_refused(
    land: Any, airflow: FakeAirflow, arguments: tuple[str, ...], says: str
) -> None:
    answer = land(*arguments)
    assert answer.code == 2 and says in answer.err.lower()
    assert said(airflow, "vendor.prices") == {}


def test_an_airflow_without_a_dag_of_ours_and_a_user_without_rights_are_one_sentence(
    land: Any, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow.assets.clear()
    answer = land("vendor.prices", "2026-06-01")
    assert answer.code == 2 and "is a loader file with a good conf in its dags folder" in answer.err.lower()


def test_partitions_show_a_hole_on_purpose_with_who_said_so(
    land: Any, command: Command, place: Place, airflow: FakeAirflow
) -> None:
    place.land(*labels(1, 1))
    land(TABLE, labels(2, 2)[0], "--never", "--by", "ada")
    answer: Answer = command(
        "partitions",
        CONF,
        "--root",
        place.root,
        "--start-ds",
        labels(1, 1)[0],
        "--end-ds",
        labels(3, 3)[0],
        "--format",
        "json",
    )
    rows = answer.json["partitions"]
    assert [row["state"] for row in rows] == ["landed", "absent", rows[2]["state"]] and rows[2]["state"] != "absent"
    assert rows[1]["reason"].startswith("absent on purpose, as ada said at ")
