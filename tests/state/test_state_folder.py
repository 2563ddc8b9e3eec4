"""What the state folder of a deployment remembers (C23, H13, H20)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import OFF_TAG, manifest_of, plan_of_manifest
from airflow_chronon.core.records.record import DeploymentRecord, PendingBackfill, Retirement
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.state.files import StateError
from airflow_chronon.state.folder import StateFolder, open_branches, open_state
from airflow_chronon.state.locking import only_reconcile
from airflow_chronon.storage.files import LocalStorage, Storage
from tests.support.confs import at, events, group_by, plan_of, staging_query

NOW = at("2026-06-10")
SHIFTED = group_by(
    "t.g.x__1",
    sources=[events("data.e", "3h", offset="1h")],
    windows=["7d"],
    schedule="15 1-22/3 * * *",
    offset="1h",
)
PLANS = [
    pytest.param(
        group_by(
            "t.g.x__1",
            sources=[events("data.e", "3h", offset="1h")],
            windows=["7d"],
            schedule="15 1-22/3 * * *",
            offset="1h",
        ),
        id="group by",
    ),
    pytest.param(staging_query("t.s.x__1", schedule="0 6 * * MON"), id="staging query"),
]
SETTINGS = Settings.model_validate(
    {
        "catchup": True,
        "start_date": "2026-01-01",
        "sensor": {"timeout": "6h"},
        "runner": {"kind": "command", "argv": ["true"], "env": {"A": "1"}},
        "task_defaults": {"email": ["a@b.example", "c@d.example"]},
    }
)


@pytest.mark.parametrize("document", PLANS)
def test_a_manifest_gives_the_same_runs_waits_and_settings_as_the_conf(document: dict[str, object]) -> None:
    plan = plan_of(document, settings=SETTINGS)
    again = plan_of_manifest(manifest_of(plan))
    assert isinstance(again, ConfPlan)
    assert (again.schedule, again.spec) == (plan.schedule, plan.spec)
    window = TimeWindow(at("2026-06-01 01:00"), at("2026-06-02 01:00"))
    for mode in plan.schedule.all_modes:
        assert again.mode_waits(mode, window) == plan.mode_waits(mode, window)
    assert again.settings.model_dump() == plan.settings.model_dump(include=set(type(again.settings).model_fields))
    assert again.conf.document == plan.conf.document and again.producers == plan.producers
    assert set(again.tags) == {*plan.tags, OFF_TAG}


def record_of(name: str = "t.s.x__1") -> DeploymentRecord:
    plan = plan_of(staging_query(name), settings=SETTINGS)
    return record_after(plan, manifest_of(plan), None, now=NOW)


@pytest.mark.parametrize("document", PLANS)
def test_a_record_comes_back_from_the_folder_as_it_was(files: Storage, document: dict[str, object]) -> None:
    state, plan = StateFolder(files, "b/main/"), plan_of(document, settings=SETTINGS)
    record = replace(
        record_after(plan, manifest_of(plan), None, now=NOW),
        pending=PendingBackfill(NOW, 5),
        retirement=Retirement(NOW, "gone", "someone", confirmed=True, archive="x"),
    )
    state.write_record(record)
    assert state.dag_ids() == {plan.dag_id} and state.read_record(plan.dag_id) == record
    manifest = state.read_records().found[plan.dag_id].manifest
    assert manifest is not None and manifest.digest == manifest_of(plan).digest
    state.remove_record(plan.dag_id)
    assert state.dag_ids() == frozenset() and state.read_record(plan.dag_id) is None


def test_the_records_that_are_asked_for_are_read(files: Storage) -> None:
    state, records = StateFolder(files), [record_of(f"t.s.{name}__1") for name in "abc"]
    for record in records:
        state.write_record(record)
    asked = (records[0].dag_id, records[2].dag_id, "nobody")
    assert state.read_records(asked).found == {each.dag_id: each for each in records if each.dag_id in asked}


@pytest.mark.parametrize(
    "name", ["first_seen", "revisions", "pending", "active_since", "begins", "retirement", "dag_id"]
)
def test_a_record_without_a_key_and_with_an_unknown_one_is_read(files: Storage, name: str) -> None:
    state, record = StateFolder(files, "b/main/"), record_of()
    of_another_version = {**record.to_json(), "added_later": {"x": 1}}
    of_another_version.pop(name)
    of_another_version["manifest"]["added_later"] = 1
    files.write(f"b/main/records/{record.dag_id}.json", json.dumps(of_another_version).encode())
    found = state.read_record(record.dag_id)
    assert found is not None and found.manifest == record.manifest
    assert name == "first_seen" or found.first_seen == NOW
    assert name == "revisions" or found.revisions == record.revisions


def test_an_archive_is_checked_before_anyone_relies_on_it(files: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateFolder(files)
    state.write_archive("archive/a/1.jsonl", [{"kind": "run", "note": "grün"}])
    assert state.read_archive("archive/a/1.jsonl") == ({"kind": "run", "note": "grün"},)
    monkeypatch.setattr(type(files), "write", lambda *_: None)  # a disk that swallows writes
    with pytest.raises(StateError, match="nothing is deleted"):
        state.write_archive("archive/a/1.jsonl", [{"kind": "other"}])


@pytest.mark.parametrize(
    "damage",
    [
        {"dag_id": 5},
        {"dag_id": "staging_query.t.s.other__1"},
        {"first_seen": "x"},
        {"first_seen": 1e400},
        {"first_seen": 999999999999999},
        {"active_since": True},
        {"pending": {"until": "x"}},
        {"pending": []},
        {"revisions": [{"since": "x"}]},
        {"revisions": [5]},
        {"revisions": 5},
        {"revisions": [{"since": 0, "schedule": {"cron": "0 0 0 L-3,5 * ?"}}]},
        {"manifest": {"key": "staging_query/t.s.x__1", "grid": "7m"}},
        {"retirement": {"why": "", "by": ""}},
        {"retirement": {"since": None}},
        {"retirement": {"since": 5, "why": 5}},
        {"manifest": {"key": "x"}},
        {"manifest": {"key": 5, "content": {"document": {}}}},
        {"manifest": []},
    ],
    ids=str,
)
def test_a_record_with_values_of_other_types_is_damaged_and_no_other(
    files: Storage, damage: dict[str, object]
) -> None:  # S9
    state, record, other = StateFolder(files, "b/main/"), record_of(), record_of("t.s.y__1")
    state.write_record(other)
    files.write(f"b/main/records/{record.dag_id}.json", json.dumps({**record.to_json(), **damage}).encode())
    records = state.read_records()
    assert records.found == {other.dag_id: other}
    assert "x__1.json is damaged" in records.damaged[record.dag_id].message
    with pytest.raises(StateError, match=r"x__1\.json is damaged"):
        state.read_record(record.dag_id)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100000])
def test_a_record_that_is_no_object_is_damaged_and_can_be_set_aside(files: Storage, data: bytes) -> None:  # S9
    state = StateFolder(files, "b/main/")
    files.write("b/main/records/x.json", data)
    assert set(state.read_records().damaged) == {"x"}
    state.set_aside("x")
    assert state.read_records().damaged == {} and state.dag_ids() == frozenset()
    assert files.read("b/main/damaged/x.json") == data


@pytest.mark.parametrize("lines", [b"1\n2", b"{}", b"null", b"[" * 100000])
def test_an_archive_of_other_lines_is_damaged(files: Storage, lines: bytes) -> None:
    files.write("b/main/archive/x/1.jsonl", lines)
    with pytest.raises(StateError, match=r"1\.jsonl is damaged"):
        StateFolder(files, "b/main/").read_archive("archive/x/1.jsonl")


def test_the_deployments_of_one_root_are_kept_apart(root: str) -> None:  # C24
    states = {branch: open_state(root, deployment=Deployment(branch, "git.main")) for branch in ("main", "a/b", "..")}
    for number, state in enumerate(states.values()):
        state.write_record(DeploymentRecord("x", None, number))
    assert [state.read_records().found["x"].first_seen for state in states.values()] == [0, 1, 2]
    assert set(open_branches(root)) == {("git.main", branch) for branch in states}
    assert set(open_branches(root, branch="a/b")) == {("git.main", "a/b")}


def test_two_reconciles_of_one_machine_do_not_overlap(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = str(tmp_path_factory.mktemp("state"))
    state = open_state(root, deployment=Deployment("main", "dags-folder"))
    with only_reconcile(state), pytest.raises(StateError, match="another reconcile holds"), only_reconcile(state):
        pytest.fail("both hold it")
    with only_reconcile(state):  # let go again
        pass


class TimeIsUp(BaseException):
    """As Airflow ends a task whose time is up: no ``except Exception`` sees it."""


HOLDER = """
import subprocess, sys, time
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.state.folder import open_state
from airflow_chronon.state.locking import only_reconcile

with only_reconcile(open_state(sys.argv[1], deployment=Deployment("main", "dags-folder"))):
    child = subprocess.Popen(["sleep", "600"], close_fds=False)  # a driver that outlives it
    print(child.pid, flush=True)
    time.sleep(600)
"""


def test_the_lock_is_given_back_however_a_reconcile_ends(tmp_path_factory: pytest.TempPathFactory) -> None:  # S8
    root = str(tmp_path_factory.mktemp("state"))
    state = open_state(root, deployment=Deployment("main", "dags-folder"))
    with pytest.raises(TimeIsUp), only_reconcile(state):
        raise TimeIsUp
    with only_reconcile(state):
        pass
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, root], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        with pytest.raises(StateError, match="another reconcile holds"), only_reconcile(state):
            pytest.fail("both hold it")
    finally:
        holder.kill()
        holder.wait()
    try:
        with only_reconcile(state):  # though what it started still runs
            pass
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_file_of_a_gone_conf_ends_like_its_path_in_the_tree(tmp_path_factory: pytest.TempPathFactory) -> None:
    from airflow_chronon.state.orphaned_files import conf_file

    plan, folder = plan_of(staging_query("t.s.x__1")), tmp_path_factory.mktemp("orphaned")
    path = conf_file(manifest_of(plan), folder=folder, writes=True)
    assert path.endswith(plan.conf.file)
    with open(path, encoding="utf-8") as file:
        assert json.load(file) == plan.conf.raw


def test_a_folder_in_the_place_of_a_record_is_damage_of_that_record_alone(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # S9
    root = tmp_path_factory.mktemp("state")
    state = open_state(str(root), deployment=Deployment("main", "b"))
    other = record_of()
    state.write_record(other)
    folder = root / "b" / "main" / "records" / "x.json"
    (folder / "kept").mkdir(parents=True)
    records = state.read_records()
    assert records.found == {other.dag_id: other}
    assert records.damaged["x"].message.endswith("records/x.json is damaged: it is not a file")
    state.set_aside("x")
    assert state.read_records().damaged == {}
    assert (root / "b" / "main" / "damaged" / "x.json" / "kept").is_dir()


def test_a_state_root_that_no_file_system_takes_is_one_sentence() -> None:
    state = open_state("/tmp/a\0b", deployment=Deployment("main", "b"))
    with pytest.raises(StateError, match=r"state_root: cannot write '/tmp/a\\x00b/b/main'"), only_reconcile(state):
        pytest.fail("it is held")


def test_what_is_set_aside_again_lies_beside_what_was_set_aside_before(root: str) -> None:  # S9
    state = open_state(root, deployment=Deployment("main", "b"))
    for data in (b"one", b"two"):
        state.files.write("b/main/records/x.json", data)
        state.set_aside("x")
    if isinstance(state.files, LocalStorage):
        state.files.write("b/main/records/x.json/in a folder", b"three")
        state.set_aside("x")
        assert state.files.read("b/main/damaged/x.3.json/in a folder") == b"three"
    assert [state.files.read(f"b/main/damaged/{name}.json") for name in ("x", "x.2")] == [b"one", b"two"]
    assert state.dag_ids() == frozenset()
