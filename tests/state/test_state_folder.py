"""What the state folder of a deployment remembers (C23, H13, H20)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.plan.facts import Deployment, Tombstone
from airflow_chronon.core.plan.history import PendingBackfill, Seen, journal_entry
from airflow_chronon.core.plan.manifest import OFF_TAG, manifest_of, plan_of_manifest
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.state.files import StateError, StateFiles
from airflow_chronon.state.folder import StateFolder, open_branches, open_state
from airflow_chronon.state.locking import only_reconcile
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
def test_a_copy_gives_the_same_runs_waits_and_settings_as_the_conf(document: dict[str, object]) -> None:
    plan = plan_of(document, settings=SETTINGS)
    again = plan_of_manifest(manifest_of(plan))
    assert (again.schedule, again.spec) == (plan.schedule, plan.spec)
    window = TimeWindow(at("2026-06-01 01:00"), at("2026-06-02 01:00"))
    for mode in plan.schedule.all_modes:
        assert again.mode_waits(mode, window) == plan.mode_waits(mode, window)
    assert again.settings.model_dump() == plan.settings.model_dump(include=set(type(again.settings).model_fields))
    assert again.conf.document == plan.conf.document and again.producers == plan.producers
    assert set(again.tags) == {*plan.tags, OFF_TAG}


@pytest.mark.parametrize("document", PLANS)
def test_a_copy_comes_back_from_the_folder_as_it_was(files: StateFiles, document: dict[str, object]) -> None:
    state, manifest = StateFolder(files, "b/main/"), manifest_of(plan_of(document, settings=SETTINGS))
    state.write_manifest(manifest)
    assert state.manifests() == {manifest.dag_id}
    assert (
        state.read_manifest(manifest.dag_id) == manifest
        and manifest.digest == manifest_of(plan_of(document, settings=SETTINGS)).digest
    )
    state.remove_manifest(manifest.dag_id)
    assert state.manifests() == frozenset() and state.read_manifest(manifest.dag_id) is None


def test_the_journal_keeps_entries_that_are_not_updated(files: StateFiles) -> None:
    state = StateFolder(files)
    plans = [plan_of(staging_query(f"t.s.{name}__1"), settings=SETTINGS) for name in "ab"]
    first, second = (journal_entry(plan, manifest_of(plan), None, Seen(NOW)) for plan in plans)
    state.update_journal([first])
    state.update_journal([replace(second, pending=PendingBackfill(NOW, 5), gone=7)])
    assert state.journal() == {
        first.dag_id: first,
        second.dag_id: replace(second, pending=PendingBackfill(NOW, 5), gone=7),
    }


def test_tombstones_come_back_as_they_were(files: StateFiles) -> None:
    state, tombstone = StateFolder(files), Tombstone(NOW, "gone", "someone", confirmed=True, archive="x")
    state.write_tombstone("a.b__1", tombstone)
    assert state.tombstones() == {"a.b__1": tombstone}
    state.remove_tombstone("a.b__1")
    assert state.tombstones() == {}


def test_an_archive_is_checked_before_anyone_relies_on_it(files: StateFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateFolder(files)
    state.write_archive("archive/a/1.jsonl", [{"kind": "run", "note": "grün"}])
    assert state.read_archive("archive/a/1.jsonl") == ({"kind": "run", "note": "grün"},)
    monkeypatch.setattr(type(files), "write", lambda *_: None)  # a disk that swallows writes
    with pytest.raises(StateError, match="nothing is deleted"):
        state.write_archive("archive/a/1.jsonl", [{"kind": "other"}])


def test_a_damaged_file_is_named(files: StateFiles) -> None:
    state = StateFolder(files, "b/main/")
    files.write("b/main/journal.json", b'[{"dag_id": ')
    with pytest.raises(StateError, match=r"journal\.json is damaged"):
        state.journal()


@pytest.mark.parametrize(
    "damage",
    [
        {"revisions": []},
        {"dag_id": 5},
        {"first_seen": "x"},
        {"gone": "x"},
        {"pending": ["x", None]},
        {"revisions": [["x", True, None]]},
    ],
)
def test_a_journal_with_values_of_other_types_is_damaged(files: StateFiles, damage: dict[str, object]) -> None:
    plan, state = plan_of(staging_query("t.s.x__1")), StateFolder(files, "b/main/")
    state.update_journal([journal_entry(plan, manifest_of(plan), None, Seen(NOW))])
    entry = json.loads(files.read("b/main/journal.json") or b"")[0]
    files.write("b/main/journal.json", json.dumps([{**entry, **damage}]).encode())
    with pytest.raises(StateError, match=r"journal\.json is damaged"):
        state.journal()


@pytest.mark.parametrize("since", ['"x"', "1e400", "999999999999999", "null"])
def test_a_tombstone_of_no_time_is_damaged(files: StateFiles, since: str) -> None:
    state = StateFolder(files, "b/main/")
    files.write("b/main/tombstones/x.json", f'{{"since": {since}, "why": "", "by": ""}}'.encode())
    with pytest.raises(StateError, match=r"x\.json is damaged"):
        state.tombstones()


@pytest.mark.parametrize("lines", [b"1\n2", b"{}", b"null", b"[" * 100000])
def test_an_archive_of_other_lines_is_damaged(files: StateFiles, lines: bytes) -> None:
    files.write("b/main/archive/x/1.jsonl", lines)
    with pytest.raises(StateError, match=r"1\.jsonl is damaged"):
        StateFolder(files, "b/main/").read_archive("archive/x/1.jsonl")


def test_the_deployments_of_one_root_are_kept_apart(root: str) -> None:  # C24
    states = {branch: open_state(root, deployment=Deployment(branch, "git.main")) for branch in ("main", "a/b", "..")}
    for number, state in enumerate(states.values()):
        state.write_tombstone("x", Tombstone(number, "", ""))
    assert [state.tombstones()["x"].since for state in states.values()] == [0, 1, 2]
    assert set(open_branches(root)) == {("git.main", branch) for branch in states}
    assert set(open_branches(root, branch="a/b")) == {("git.main", "a/b")}


def test_two_reconciles_of_one_machine_do_not_overlap(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = str(tmp_path_factory.mktemp("state"))
    state = open_state(root, deployment=Deployment("main", "dags-folder"))
    with only_reconcile(state), pytest.raises(StateError, match="another reconcile holds"), only_reconcile(state):
        pytest.fail("both hold it")
    with only_reconcile(state):  # let go again
        pass


def test_the_file_of_a_gone_conf_ends_like_its_path_in_the_tree(tmp_path_factory: pytest.TempPathFactory) -> None:
    from airflow_chronon.state.orphaned_files import conf_file

    plan, folder = plan_of(staging_query("t.s.x__1")), tmp_path_factory.mktemp("vanished")
    path = conf_file(manifest_of(plan), folder=folder, writes=True)
    assert path.endswith(plan.conf.file)
    with open(path, encoding="utf-8") as file:
        assert json.load(file) == plan.conf.raw
