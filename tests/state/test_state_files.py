"""Small files that are whole or absent, on a disk and in an object store alike."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_chronon.state.files import StateError, open_state_files
from airflow_chronon.storage.files import RemoteStorage, Storage


def test_what_is_written_is_read_by_another_process(files: Storage, reopen: Callable[[], Storage]) -> None:
    files.write("a/b.json", b"one")
    files.write("a/b.json", b"two")
    assert reopen().read("a/b.json") == b"two"
    assert reopen().names("a") == ("b.json",)


def test_what_is_not_there_is_none_and_removing_it_does_nothing(files: Storage) -> None:
    assert files.read("a/b.json") is None and files.names("a") == ()
    files.remove("a/b.json")


def test_many_are_read_at_once_and_what_is_not_there_is_left_out(files: Storage) -> None:
    files.write("a/b.json", b"one")
    files.write("a/c.json", b"two")
    assert files.read_many(["a/b.json", "a/nobody.json", "a/c.json"]) == {"a/b.json": b"one", "a/c.json": b"two"}
    assert files.read_many([]) == {}


def test_what_is_removed_is_gone(files: Storage) -> None:
    files.write("a/b.json", b"one")
    files.write("a/c.json", b"two")
    files.remove("a/b.json")
    assert files.names("a") == ("c.json",)


def test_a_writer_that_dies_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = open_state_files(str(tmp_path))
    files.write("a.json", b"old")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        files.write("a.json", b"new")
    assert files.read("a.json") == b"old" and os.listdir(tmp_path) == ["a.json"]


def test_a_power_cut_takes_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # S9
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    files = open_state_files(str(tmp_path / "state"))
    files.write("records/a.json", b"one")
    folders = [str(tmp_path), str(tmp_path / "state"), str(tmp_path / "state" / "records")]
    assert [each for each in synced if each in folders] == folders and len(synced) == 4  # and the file itself
    synced.clear()
    files.remove("records/a.json")
    assert synced == folders[2:]


def test_a_root_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the way")
    with pytest.raises(StateError, match=r"cannot write .*state_root"):
        open_state_files(str(tmp_path / "state")).write("a.json", b"")


def test_a_store_that_nothing_serves_is_one_sentence() -> None:
    with pytest.raises(StateError, match="nosuch"):
        open_state_files("nosuch://bucket/state")


def test_many_files_are_read_by_their_paths_and_those_that_are_not_there_left_out(files: Storage) -> None:
    files.write("a/b.json", b"one")
    files.write("c.json", b"two")
    assert files.read_many(["a/b.json", "a/none.json", "c.json"]) == {"a/b.json": b"one", "c.json": b"two"}
    assert files.read_many([]) == {}


def test_what_is_moved_is_there_and_here_no_more(files: Storage) -> None:
    files.write("a/b.json", b"new")
    files.write("c/b.json", b"old")
    files.move("a/b.json", "c/b.json")
    assert (files.read("a/b.json"), files.read("c/b.json")) == (None, b"new")
    files.move("a/nobody.json", "c/b.json")
    assert files.read("c/b.json") == b"new"


def test_a_read_that_hangs_does_not_hold_who_is_told_to_end() -> None:  # S8
    over = threading.Event()

    class Hanging:
        def cat_file(self, path: str) -> bytes:
            if path.endswith("b"):
                raise KeyboardInterrupt  # as the end of a task's time comes: from outside
            over.wait()
            return b""

    with pytest.raises(KeyboardInterrupt):
        RemoteStorage(Hanging(), "root").read_many(["b", "a"])
    over.set()


@pytest.mark.parametrize("missing", ["fsspec", "adlfs"])
def test_an_extra_that_is_not_installed_is_said_of_the_state_folder(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(StateError) as raised:
        open_state_files("abfs://lake/chronon_state")
    fault = raised.value.fault
    assert (fault.rule, fault.field) == ("state", "[chronon] state_root")
    assert "abfs://lake/chronon_state" in fault.message and fault.remedy == "run: pip install 'airflow-chronon[azure]'"
