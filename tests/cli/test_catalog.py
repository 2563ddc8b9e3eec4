"""``airflow-chronon catalog``: what is seen of a table (C7, C16)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.command_line import Answer, Command
from tests.support.confs import dependency, events, group_by, staging_query
from tests.support.iceberg import IcebergLake


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A staging query that reads hours of ``data.orders``, and a GroupBy that reads ``data.late`` by time."""
    documents = {
        "staging_queries/t/hourly__1": staging_query(
            "t.hourly__1", schedule="5 * * * *", interval="1h", dependencies=[dependency("data.orders", "1h")]
        ),
        "group_bys/t/g__1": group_by("t.g__1", sources=[events("data.events")], schedule="@daily"),
    }
    for name, document in documents.items():
        path = tmp_path / "compiled" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    settings(tmp_path, {"kind": "filesystem", "root": str(tmp_path / "warehouse")})
    return tmp_path


def settings(root: Path, catalog: dict[str, Any]) -> None:
    (root / "chronon.yaml").write_text(
        json.dumps({"catalog": catalog, "runner": {"kind": "command", "argv": ["true"]}})
    )


def land(root: Path, table: str, *folders: str) -> None:
    for folder in folders:
        path = root / "warehouse" / table / folder
        path.mkdir(parents=True)
        (path / "part-0.parquet").touch()


def ask(command: Command, root: Path, table: str, *more: str) -> Answer:
    answer: Answer = command("catalog", table, "--root", root, *more)
    return answer


def test_a_table_shows_its_columns_its_labels_and_what_its_reader_sees(root: Path, command: Command) -> None:
    land(root, "data.orders", *(f"ds=2026-06-01-0{hour}-00" for hour in range(3)))
    answer = ask(command, root, "data.orders")
    assert answer.code == 0, answer
    assert "data.orders has 3 partitions; kind filesystem" in answer.out
    assert "ds: 3 labels, 2026-06-01-00-00 to 2026-06-01-02-00, written as yyyy-MM-dd-HH-mm" in answer.out
    assert "staging_query/t.hourly__1 reads ds, yyyy-MM-dd-HH-mm on 1h: newest 2026-06-01-02-00" in answer.out
    found = ask(command, root, "data.orders", "--format", "json").json
    assert found["columns"] == [
        {
            "column": "ds",
            "labels": 3,
            "oldest": "2026-06-01-00-00",
            "newest": "2026-06-01-02-00",
            "format": "yyyy-MM-dd-HH-mm",
        }
    ]
    assert found["change_token"] is None and found["used_by"][0]["newest"] == "2026-06-01-02-00"


@pytest.mark.parametrize(
    ("folders", "says"),
    [
        (("ds=20260601",), "none of its 1 labels is a partition of 1h: they are such as '20260601'"),
        (("dt=2026-06-01-00-00",), "is partitioned by dt, not by ds (C17)"),
        ((), "is not there"),
        (("",), "no partitions"),
    ],
)
def test_what_a_reader_can_never_see_is_one_sentence(
    root: Path, command: Command, folders: tuple[str, ...], says: str
) -> None:
    land(root, "data.orders", *folders)
    answer = ask(command, root, "data.orders")
    assert answer.code == 1
    assert says in answer.out + answer.err, answer


def test_a_table_that_nobody_uses_is_shown_all_the_same(root: Path, command: Command) -> None:
    land(root, "data.other", "day=20260601", "day=20260602")
    answer = ask(command, root, "data.other")
    assert answer.code == 0
    assert "day: 2 labels, 20260601 to 20260602, written as yyyyMMdd" in answer.out
    assert "no conf of this tree reads or writes data.other" in answer.err


def test_an_iceberg_table_tells_whether_it_has_changed(root: Path, command: Command) -> None:
    lake = IcebergLake(root)
    settings(root, {"kind": "iceberg", "properties": lake.properties})
    lake.create("data.orders", pa.schema({"ds": pa.string()}), {"ds": "identity"})
    lake.append("data.orders", [{"ds": "2026-06-01-00-00"}])
    answer = ask(command, root, "data.orders")
    assert answer.code == 0, answer
    assert "kind iceberg" in answer.out and "tells whether it has changed" in answer.out
    assert "newest 2026-06-01-00-00" in answer.out


def test_a_catalog_that_does_not_answer_is_one_sentence(root: Path, command: Command) -> None:
    settings(root, {"kind": "iceberg", "properties": {"type": "sql", "uri": "sqlite:////nowhere/x.db"}})
    answer = ask(command, root, "data.orders")
    assert answer.code == 2
    assert "data.orders: the Iceberg catalog does not tell what it holds" in answer.err
    settings(root, {"kind": "iceberg", "connection": "lake"})
    assert "AIRFLOW_CONN_LAKE" in ask(command, root, "data.orders").err
