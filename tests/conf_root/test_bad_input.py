"""Whatever lies in the conf root: one message each, the rest goes on, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

from airflow_chronon.conf_root import settings
from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.bounds import MAX_CONF_BYTES
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.plan.facts import TreeState
from airflow_chronon.storage.files import read_regular_file
from tests.support.command_line import Command, conf_text
from tests.support.confs import group_by

JUNE = ("--from", "2026-06-01", "--to", "2026-06-02")
STAGING = "staging_queries/checkout/orders.daily_0200__1"
BAD = "compiled/staging_queries/checkout/bad.conf__1"
BAD_KEY = "staging_query/checkout.bad.conf__1"


def faults(command: Command, root: Path) -> dict[str, list[dict[str, str]]]:
    """The errors of every rejected conf; the four good ones must still be good."""
    answer = command("check", "--root", root, "--format", "json")
    assert "Traceback" not in answer.err
    assert sum(entry["status"] == "ok" for entry in answer.json.values()) == 4
    found = {key: entry["errors"] for key, entry in answer.json.items() if entry["status"] == "rejected"}
    assert answer.code == (1 if found else 0)
    return found


def only_fault(command: Command, root: Path, key: str = BAD_KEY) -> dict[str, str]:
    found = faults(command, root)
    assert list(found) == [key]
    (fault,) = found[key]
    return fault


class TestFiles:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            pytest.param(b"", "not JSON: expecting value at line 1 column 1", id="empty"),
            pytest.param(b"{", "not JSON: ", id="cut off"),
            pytest.param(b"select 1", "not JSON: ", id="no JSON at all"),
            pytest.param(b'{"a": 1}\n{"a": 2}', "not JSON: extra data at line 2", id="two documents"),
            pytest.param(b"\xff\xfe\x00", "not UTF-8 text", id="bytes"),
            pytest.param(b'{"metaData": "\xff"}', "not UTF-8 text: byte 14 is 0xff", id="another encoding"),
            pytest.param(b"[" * 100_000, "not JSON: it is nested too deeply", id="nested without end"),
            pytest.param(b'{"a": ' + b"9" * 5000 + b"}", "not JSON: ", id="a number of 5000 digits"),
            pytest.param(b"[]", "a JSON object belongs here, not []", id="a list"),
            pytest.param(b"null", "a JSON object belongs here, not null", id="null"),
            pytest.param(b'"x"', "a JSON object belongs here, not 'x'", id="a text"),
        ],
    )
    def test_what_is_no_conf_is_one_message(self, command: Command, root: Path, content: bytes, message: str) -> None:
        (root / BAD).write_bytes(content)
        fault = only_fault(command, root)
        assert fault["rule"] == "input" and message in fault["message"] and fault["remedy"]

    def test_a_huge_file_is_refused_unread(self, command: Command, root: Path) -> None:
        with (root / BAD).open("wb") as file:
            file.truncate(50 * 1024**2)
        fault = only_fault(command, root)
        assert "50 MB" in fault["message"] and f"{MAX_CONF_BYTES // 1024**2} MB" in fault["message"]

    def test_a_file_that_cannot_be_opened(self, command: Command, root: Path) -> None:
        (root / BAD).symlink_to(root / BAD)
        assert "cannot be read" in only_fault(command, root)["message"]

    def test_a_link_to_nothing(self, command: Command, root: Path) -> None:
        (root / BAD).symlink_to(root / "nowhere")
        assert "No such file" in only_fault(command, root)["message"]

    @pytest.mark.parametrize(
        "name", ["compiled", "compiled/staging_queries", "compiled/joins/team", "jobs", "jobs/etl"]
    )
    @pytest.mark.parametrize("is_loop", [False, True], ids=["to nothing", "to itself"])
    def test_a_link_where_a_folder_was_makes_the_tree_one_that_nothing_is_retired_by(
        self, command: Command, root: Path, name: str, is_loop: bool
    ) -> None:  # C23
        path = root / name
        if path.exists():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(path if is_loop else root / "nowhere")
        assert read_conf_root(root, environ={}).state is TreeState.UNREADABLE
        answer = command("check", "--root", root)
        assert answer.code == 1 and f"{path} is a link that leads nowhere" in answer.err

    def test_a_file_where_the_compiled_tree_was_is_reported_too(self, command: Command, root: Path) -> None:  # C23
        shutil.rmtree(root / "compiled")
        (root / "compiled").write_text("")
        assert "is not a folder" in command("check", "--root", root).err
        assert read_conf_root(root, environ={}).state is TreeState.UNREADABLE

    def test_what_is_no_regular_file_does_not_hang(self, command: Command, root: Path) -> None:
        os.mkfifo(root / BAD)
        assert "not a regular file" in only_fault(command, root)["message"]

    def test_a_file_that_grows_while_it_is_read_is_not_read_to_its_end(self, root: Path) -> None:
        (root / BAD).write_bytes(b"x" * 1000)
        assert len(read_regular_file(root / BAD, most=10)) == 10

    def test_files_without_rights(self, command: Command, root: Path, mocker: MockerFixture) -> None:
        (root / BAD).write_text("{}")
        read = read_regular_file

        def denied(path: Path, *, most: int) -> bytes:
            if path.name == "bad.conf__1":
                raise PermissionError(13, "Permission denied", str(path))
            return read(path, most=most)

        mocker.patch.object(settings, "read_regular_file", denied)  # the tests may run as root, who may read everything
        assert only_fault(command, root)["message"] == "the file cannot be read: Permission denied"

    def test_a_folder_without_rights_does_not_just_vanish(
        self, command: Command, root: Path, mocker: MockerFixture
    ) -> None:
        scan = os.scandir

        def denied(path: Any = ".") -> Any:
            if str(path).endswith("joins"):
                raise PermissionError(13, "Permission denied", str(path))
            return scan(path)

        mocker.patch("os.scandir", denied)
        answer = command("check", "--root", root, "--format", "json")
        assert answer.code == 1 and "joins cannot be read: Permission denied" in answer.err
        assert "group_by/checkout.purchases.three_hour__1" in answer.json

    def test_hidden_files_and_caches_are_passed_over(self, command: Command, root: Path) -> None:
        for name in (".DS_Store", ".git/x", "__pycache__/x.pyc"):
            path = root / "compiled/staging_queries" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
        assert faults(command, root) == {}

    def test_two_bad_files_of_one_name_are_two_messages(self, command: Command, root: Path) -> None:
        for team in ("a", "b"):
            (root / "compiled/joins" / team).mkdir()
            (root / "compiled/joins" / team / "x").write_text("{")
        assert sorted(faults(command, root)) == ["join/a.x", "join/b.x"]

    def test_a_bad_file_never_hides_a_good_conf(self, command: Command, root: Path) -> None:
        (root / "compiled/joins/checkout.training.daily_join__1").write_text("{")
        assert list(faults(command, root)) == ["compiled/joins/checkout.training.daily_join__1"]


class TestShapes:
    @pytest.mark.parametrize(
        ("name", "changes", "field", "message"),
        [
            (STAGING, {"metaData": None}, "metaData", "lacks this field"),
            (STAGING, {"query": None}, "query", "lacks this field"),
            (STAGING, {"query": 3}, "query", "text belongs here, not 3"),
            (STAGING, {"tableDependencies": {}}, "tableDependencies", "a list belongs here, not {}"),
            (STAGING, {"tableDependencies": [{}]}, "tableDependencies[0].tableInfo", "lacks this field"),
            (STAGING, {"metaData": {"outputNamespace": "ns"}}, "metaData.name", "lacks this field"),
            (STAGING, {"metaData": {"name": "a.b"}}, "metaData.outputNamespace", "lacks this field"),
            (STAGING, {"metaData": {"name": 3, "outputNamespace": "ns"}}, "metaData.name", "text belongs here, not 3"),
            ("joins/checkout/training.daily_join__1", {"left": {}}, "left", "exactly one of events, entities"),
            (
                "group_bys/checkout/purchases.three_hour__1",
                {"sources": []},
                "sources",
                "a list of at least 1 belongs here, not []",
            ),
            (
                "group_bys/checkout/purchases.three_hour__1",
                {"accuracy": 7},
                "accuracy",
                "one of 0 or 1 belongs here, not 7",
            ),
            (
                "group_bys/checkout/purchases.three_hour__1",
                {"aggregations": [{"windows": [{"length": "x", "timeUnit": 0}]}]},
                "aggregations[0].windows[0].length",
                "a whole number belongs here, not 'x'",
            ),
            (
                "group_bys/checkout/purchases.three_hour__1",
                {"aggregations": [{"windows": [{"length": 10**9, "timeUnit": 1}]}]},
                "aggregations[0].windows[0]",
                "longer than 500 years",
            ),
        ],
    )
    def test_a_field_that_is_missing_or_of_another_shape(
        self, command: Command, root: Path, name: str, changes: dict[str, Any], field: str, message: str
    ) -> None:
        path = root / "compiled" / name
        bad = path.with_name("bad.conf__1")
        bad.write_text(conf_text(name, **changes))
        kind = {"staging_queries": "staging_query", "joins": "join", "group_bys": "group_by"}[name.partition("/")[0]]
        fault = only_fault(command, root, f"{kind}/checkout.bad.conf__1")
        assert (fault["rule"], fault["field"]) == ("input", field) and message in fault["message"] and fault["remedy"]

    @pytest.mark.parametrize(
        "name", ["../../etc/passwd", "a/b", "a..b", ".a", "", "a\\b", "a\nb", "a\0b", "\ud800", "..", "a\u202eb"]
    )
    def test_a_name_that_is_no_name(self, command: Command, root: Path, name: str) -> None:
        meta = json.loads(conf_text(STAGING))["metaData"]
        (root / BAD).write_text(conf_text(STAGING, metaData=meta | {"name": name}))
        fault = only_fault(command, root)
        assert fault["field"] == "metaData.name" and "cannot be a conf's name" in fault["message"]

    def test_two_files_of_one_name_are_both_refused_and_named(self, command: Command, root: Path) -> None:
        other = "compiled/staging_queries/checkout/orders/daily_0200__1"
        (root / other).parent.mkdir()
        (root / other).write_text(conf_text(STAGING))
        answer = command("check", "--root", root, "--format", "json")
        (fault,) = answer.json["staging_query/checkout.orders.daily_0200__1"]["errors"]
        assert fault["rule"] == "C26" and other in fault["message"] and f"compiled/{STAGING}" in fault["message"]
        assert sum(entry["status"] == "ok" for entry in answer.json.values()) == 3

    def test_models_and_team_metadata_are_passed_over(self, command: Command, root: Path) -> None:
        for folder in ("models", "model_transforms", "teams_metadata"):
            (root / "compiled" / folder).mkdir()
            (root / "compiled" / folder / "x").write_text("{}")
        assert faults(command, root) == {}


class TestRoots:
    @pytest.mark.parametrize("kind", ["missing", "a file", "empty", "without confs", "of the older dialect"])
    def test_a_root_without_confs_is_one_clear_message(self, command: Command, tmp_path: Path, kind: str) -> None:
        root = tmp_path / "root"
        if kind == "a file":
            root.write_text("x")
        elif kind != "missing":
            root.mkdir()
        if kind == "without confs":
            (root / "compiled/joins").mkdir(parents=True)
        if kind == "of the older dialect":
            (root / "production").mkdir()
        for arguments in (["check"], ["explain", *JUNE], ["explain", "join/a.b", *JUNE]):
            answer = command(*arguments, "--root", root)
            assert answer.code == 1 and len(answer.err.splitlines()) == 1 and str(root) in answer.err
            assert "Traceback" not in answer.err

    def test_the_name_alone_does_not_make_it_one(self, command: Command, root: Path) -> None:  # D1
        before = command("check", "--root", root, "--format", "json").json
        (root / "compiled").rename(root / "production")
        after = command("check", "--root", root, "--format", "json").json
        assert {key: (each["status"], each.get("grid")) for key, each in after.items()} == {
            key: (each["status"], each.get("grid")) for key, each in before.items()
        }

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"catchpu: true", "chronon.yaml line 1, catchpu: unknown key 'catchpu'"),
            (b"a: b: c", "chronon.yaml line 1: it is not YAML"),
            (b"\xff", "not UTF-8 text"),
            (b"a: &a [*a]", "alias holds itself"),
        ],
    )
    def test_bad_settings_are_one_message_and_nothing_is_deployed(
        self, command: Command, root: Path, content: bytes, message: str
    ) -> None:
        (root / "chronon.yaml").write_bytes(content)
        answer = command("check", "--root", root, "--format", "json")
        assert (answer.code, answer.json) == (1, {})
        assert message in answer.err and len(answer.err.splitlines()) == 1

    @pytest.mark.parametrize("kind", ["a link to nothing", "a folder"])
    def test_settings_that_cannot_be_read_are_not_taken_for_absent(
        self, command: Command, root: Path, kind: str
    ) -> None:
        if kind == "a folder":
            (root / "chronon.yaml").mkdir()
        else:
            (root / "chronon.yaml").symlink_to(root / "nowhere")
        answer = command("check", "--root", root, "--format", "json")
        reason = "it is not a regular file" if kind == "a folder" else "cannot be read"
        assert (answer.code, answer.json) == (1, {}) and reason in answer.err


class TestOddPlaces:
    def test_a_settings_file_that_never_ends_is_refused(self, command: Command, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "chronon.yaml")
        answer = command("check", "--root", tmp_path)
        assert answer.code == 1 and "it is not a regular file" in answer.err

    @pytest.mark.parametrize("root", ["a" * 5000, "a\0b"], ids=["too long", "a NUL"])
    def test_a_root_that_is_no_path_is_one_sentence(self, command: Command, root: str) -> None:
        answer = command("check", "--root", root)
        assert answer.code == 1 and "cannot be read" in answer.err and "Traceback" not in answer.err

    def test_settings_of_a_conf_that_nobody_can_read_reject_it(self, tmp_path: Path) -> None:
        path = tmp_path / "compiled" / "group_bys" / "t" / "g.x__1"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(group_by("t.g.x__1", customJson='{"airflow": {"enabled": false}')))
        (verdict,) = read_conf_root(tmp_path, environ={}).judge().values()
        assert isinstance(verdict, RejectedConf)
        assert verdict.faults[0].field == "metaData.customJson"

    def test_a_base_root_that_is_the_root_itself_is_reported(self, tmp_path: Path) -> None:  # C24
        (tmp_path / "chronon.yaml").write_text("branch: try\nbase_root: .\n")
        found = read_conf_root(tmp_path, environ={})
        assert any("it is the conf root itself" in fault.message for fault in found.problems)
