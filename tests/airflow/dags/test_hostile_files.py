"""Hostile files beside a good conf: one message each, in ``check`` and in Airflow; the good one goes on (S1, S2)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.cli.main import main
from airflow_chronon.core.bounds import MAX_ID, MAX_INTEGER, MAX_OWNER, MAX_POOL, MAX_TAG
from airflow_chronon.dags import ImportErrors, build_dags, raise_import_errors
from tests.support.confs import staging_query
from tests.support.hostile_files import HostileFile, hostile_files

VICTIM, KEY = "staging_query.victim.s.good__1", "staging_query/victim.s.good__1"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conf root with the victim, and a secret beside it."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("tell-no-one: 1\n")
    victim = tmp_path / "root" / "compiled" / "staging_queries" / "victim" / "s.good__1"
    victim.parent.mkdir(parents=True)
    victim.write_text(json.dumps(staging_query("victim.s.good__1")))
    # so that what confs say of themselves is looked into, and not refused for being said (S6)
    (tmp_path / "root" / "chronon.yaml").write_text("confs_may_set: [runner, catalog, callbacks]\n")
    return tmp_path / "root"


def checked(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What ``check`` says, by file; its output is text of UTF-8."""
    main(["check", "--root", str(root), "--format", "json"])
    said = capsys.readouterr()
    said.out.encode()
    said.err.encode()
    assert "Traceback" not in said.err
    found: dict[str, Any] = {}
    for key, entry in json.loads(said.out).items():
        assert key.isprintable() and entry["file"] not in found, key
        found[entry["file"]] = entry | {"key": key}
    return found


def errors_of(root: Path) -> list[str]:
    """The import errors, a line each."""
    try:
        raise_import_errors(conf_root=root)
    except ImportErrors as error:
        text = str(error)
        assert "\0" not in text and text.encode()
        return text.splitlines()
    return []


def entry_of(file: HostileFile, found: dict[str, Any]) -> dict[str, Any]:
    """What is said of one hostile file: by its path, or by the folder that is refused as a whole."""
    shown = os.fsdecode(file.path)
    readable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    for each in (readable, f"{readable}/", *(f"{parent}/" for parent in Path(readable).parents)):
        if each in found:
            return found[each]
    raise AssertionError(f"nothing is said of {file.what} in {readable}")


def assert_fits(dag: DAG) -> None:
    """Everything that PostgreSQL has a column for is within it, and the DAG comes back from its serialised form."""
    stored = json.dumps(DagSerialization.to_dict(dag), allow_nan=False)
    assert "\\u0000" not in stored
    json.dumps(json.loads(stored), ensure_ascii=False).encode()  # no half of a surrogate pair
    DagSerialization.from_dict(json.loads(stored))
    assert len(dag.dag_id) <= MAX_ID and all(len(tag) <= MAX_TAG for tag in dag.tags)
    assert len(str(getattr(dag.timetable, "description", ""))) <= 1_000
    total = 0
    for task in dag.tasks:
        total += abs(task.priority_weight)
        assert len(task.task_id) <= MAX_ID and len(task.owner) <= MAX_OWNER
        assert len(task.pool) <= MAX_POOL and len(task.queue) <= MAX_POOL
        assert 0 <= task.retries <= MAX_INTEGER
        for outlet in task.outlets:
            assert len(outlet.uri) <= 1_500
    assert total <= MAX_INTEGER


def hold_to_the_rules(count: int, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = list(hostile_files(count, outside=root.parent / "outside"))
    for file in files:
        file.drop(root)
    found = checked(root, capsys)
    dags = build_dags(conf_root=root)
    lines = errors_of(root)
    assert VICTIM in dags
    assert not any("tell-no-one" in line for line in (*lines, json.dumps(found)))
    for file in files:
        entry = entry_of(file, found)
        of_it = [line for line in lines if line.startswith(f"{entry['key']} ({entry['file']}): ")]
        if entry["status"] == "ok":
            assert entry["dag_id"] in dags or of_it, file.what  # a callback is imported where it is called only
        elif entry["status"] == "rejected":
            assert len(of_it) == len(entry["errors"]) >= 1, file.what
        assert "cannot be judged" not in " ".join(of_it), (file.what, of_it)
    told = {entry["key"] for entry in found.values() if entry["status"] == "rejected"}
    assert len(told) > count / 3
    for dag in dags.values():
        assert_fits(dag)


def test_a_hundred_hostile_files_stop_nobody(root: Path, capsys: pytest.CaptureFixture[str]) -> None:  # S1 S2
    hold_to_the_rules(100, root, capsys)


@pytest.mark.soak
def test_two_thousand_hostile_files_stop_nobody(root: Path, capsys: pytest.CaptureFixture[str]) -> None:  # S1 S2
    hold_to_the_rules(2_000, root, capsys)
