"""``init``: what it writes, what it leaves alone, and what it says of a repository (issue's words: changes nothing else)."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from airflow_chronon.conf_root.settings import parse_settings
from tests.support.checkout import ROOT
from tests.support.command_line import DATA, GOOD, Command, conf_text

WRITTEN = ("chronon.yaml", "dags/chronon.py", "dags/chronon_import_errors.py", "dags/chronon_reconciler.py")


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, with the bytes of each file."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A repository of the older dialect, all of whose confs are good."""
    repository = tmp_path / "older"
    shutil.copytree(DATA / "older", repository, ignore=shutil.ignore_patterns("checkout"))
    (repository / "production/group_bys/search/clicks.unnamed_schedule").unlink()
    return repository


@pytest.fixture
def zipline(tmp_path: Path) -> Path:
    """A repository of the zipline dialect."""
    repository = tmp_path / "features"
    for name in GOOD:
        file = repository / "compiled" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(conf_text(name))
    (repository / "teams.py").write_text("raise SystemExit\n")
    (repository / "group_bys").mkdir()
    return repository


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AIRFLOW_CONN_CHRONON_AIRFLOW", raising=False)


class TestWhatItWrites:
    @pytest.mark.parametrize("dialect", ["older", "zipline"])
    def test_four_files_and_nothing_else(
        self, dialect: str, command: Command, request: pytest.FixtureRequest, tmp_path: Path
    ) -> None:
        repository = request.getfixturevalue(dialect)
        before = tree(repository)
        answer = command("init", repository)
        assert answer.code == 0, answer.err
        after = tree(repository)
        assert set(after) - set(before) == {*WRITTEN, "dags"}
        assert {path: after[path] for path in before} == before
        assert not (tmp_path / "home").exists()
        checked = command("check", "--root", repository)
        assert checked.code == 0
        assert checked.out in answer.out  # it says what check says

    @pytest.mark.parametrize("dialect", ["older", "zipline"])
    def test_the_settings_say_the_defaults(
        self, dialect: str, command: Command, request: pytest.FixtureRequest
    ) -> None:
        repository = request.getfixturevalue(dialect)
        command("init", repository)
        text = (repository / "chronon.yaml").read_text()
        assert parse_settings(text, environ={}).model_dump() == parse_settings("", environ={}).model_dump()

    def test_what_stands_in_comments_is_good_too(self, command: Command, older: Path) -> None:
        command("init", older)
        text = (older / "chronon.yaml").read_text().replace("  kind: local\n", "")
        shown = re.sub(r"^( *)# (?=( *- )?[a-z_ ]+:(\s|$))", r"\1", text, flags=re.M)
        settings = parse_settings(shown, environ={})
        assert settings.runner.model_dump() == {"kind": "command"}
        assert settings.catalog.default["root"] == "/srv/warehouse"
        assert [each.match for each in settings.overrides] == ["group_by/*"] and settings.overrides[
            0
        ].max_active_runs == 2

    def test_the_driver_that_it_names_is_the_dialects(self, command: Command, older: Path, zipline: Path) -> None:
        for repository, driver, other in ((older, "run.py", "zipline run"), (zipline, "zipline run", "run.py")):
            command("init", repository)
            text = (repository / "chronon.yaml").read_text()
            assert driver in text and other not in text

    def test_again_it_writes_nothing_and_is_content(self, command: Command, older: Path) -> None:
        command("init", older)
        before = tree(older)
        answer = command("init", older)
        assert answer.code == 0 and tree(older) == before
        assert answer.out.count("there already") == len(WRITTEN)

    def test_beside_a_conf_root_as_the_tutorial_lays_it_out_they_are_the_files_that_are_shipped(
        self, command: Command, zipline: Path
    ) -> None:
        (zipline / "dags").mkdir()
        (zipline / "dags/chronon").mkdir()
        (zipline / "compiled").rename(zipline / "dags/chronon/compiled")
        before = set(tree(zipline))
        assert command("init", zipline).code == 0
        shipped = {name.name: name.read_text() for name in (ROOT / "dags").iterdir() if name.is_file()}
        assert len(shipped) == 4
        new = {path: (zipline / path).read_text() for path in set(tree(zipline)) - before}
        new.pop("dags/chronon/chronon.yaml")
        assert new == {f"dags/{name}": text for name, text in shipped.items()}

    @pytest.mark.parametrize("named", ["production", ".", "production/"])
    def test_a_tree_that_is_named_itself_stands_for_its_folder(
        self, named: str, command: Command, older: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(older)
        assert command("init", named).code == 0
        assert all((older / name).is_file() for name in WRITTEN)

    def test_it_finds_the_repository_below(self, command: Command, older: Path) -> None:
        assert command("init", older.parent).code == 0
        assert all((older / name).is_file() for name in WRITTEN)

    def test_one_tree_alone(self, command: Command, zipline: Path, tmp_path: Path) -> None:
        (zipline / "compiled").rename(tmp_path / "confs")
        assert command("init", tmp_path / "confs").code == 0
        assert (tmp_path / "confs/dags/chronon.py").is_file()

    def test_two_trees_in_one_repository_are_one_conf_root(self, command: Command, older: Path, zipline: Path) -> None:
        (zipline / "compiled").rename(older / "compiled")
        answer = command("init", older, "--json")
        assert answer.code == 0
        assert answer.json["trees"] == ["compiled", "production"]
        assert {"join/search.ranking.v1", "join/checkout.training.daily_join__1"} <= answer.json["confs"].keys()


class TestWhatItLeavesAlone:
    def test_a_dry_run_changes_nothing_and_says_the_same(self, command: Command, older: Path) -> None:
        before = tree(older)
        tried = command("init", older, "--dry-run", "--json")
        assert tried.code == 0 and tree(older) == before
        done = command("init", older, "--json")
        assert set(tried.json["files"].values()) == {"new"} and tried.json["files"] == done.json["files"]
        assert tried.json["confs"] == done.json["confs"]

    @pytest.mark.parametrize("name", WRITTEN)
    def test_a_file_that_is_there_is_not_written_over(self, name: str, command: Command, older: Path) -> None:
        (older / name).parent.mkdir(exist_ok=True)
        (older / name).write_text("# mine\n")
        answer = command("init", older)
        assert answer.code == 1
        assert answer.err == f"{older / name} is there already, holds something else, and stays as it is\n"
        assert (older / name).read_text() == "# mine\n"
        assert all((older / each).is_file() for each in WRITTEN)  # the others are new

    def test_nor_is_a_link_followed_to_be_written_to(self, command: Command, older: Path, tmp_path: Path) -> None:
        (older / "dags").mkdir()
        (older / "dags/chronon.py").symlink_to(tmp_path / "elsewhere")
        assert command("init", older).code == 1
        assert not (tmp_path / "elsewhere").exists()

    def test_loader_files_do_not_go_where_they_would_find_nothing(
        self, command: Command, older: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "shared").mkdir()
        (older / "dags").symlink_to(tmp_path / "shared")
        answer = command("init", older)
        assert answer.code == 2 and "is a link that leads out of" in answer.err
        assert not (older / "chronon.yaml").exists() and not list((tmp_path / "shared").iterdir())

    def test_where_one_cannot_be_made_none_is(self, command: Command, older: Path) -> None:
        (older / "dags").write_text("a file")
        before = tree(older)
        answer = command("init", older)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.count("\n") == 1 and "cannot be made" in answer.err
        assert tree(older) == before

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_may_not_be_written_to(self, command: Command, older: Path) -> None:
        older.chmod(0o555)
        try:
            answer = command("init", older)
        finally:
            older.chmod(0o755)
        assert answer.code == 2 and "cannot be made: Permission denied" in answer.err

    def test_bad_confs_are_told_and_the_files_are_written(self, command: Command, older: Path) -> None:
        (older / "production/joins/search/broken").write_text("{")
        (older / "production/joins/search/deep").write_text("[" * 100_000)
        answer = command("init", older, "--json")
        assert answer.code == 1
        assert {key for key, each in answer.json["confs"].items() if each["status"] == "rejected"} == {
            "join/search.broken",
            "join/search.deep",
        }
        assert all((older / name).is_file() for name in WRITTEN)

    def test_settings_with_a_mistake_are_told(self, command: Command, older: Path) -> None:
        (older / "chronon.yaml").write_text("catchpu: true\n")
        answer = command("init", older)
        assert answer.code == 1 and "catchup" in answer.err
        assert "what runs" not in answer.out


class TestWhatItSays:
    def test_what_would_run(self, command: Command, zipline: Path) -> None:
        found = command("init", zipline, "--json").json["first_day"]
        daily = found["staging_query/checkout.orders.daily_0200__1"]
        assert daily["at_once"]["count"] == daily["later"]["count"] == 1  # H8: the newest one, then the next
        assert daily["later"]["first"]["fire"].endswith("T02:00:00Z")
        assert found["staging_query/checkout.orders.hourly_rollup__1"]["later"]["count"] == 24
        explained = command("explain", "--root", zipline, "--format", "json").json
        for key, each in found.items():
            assert each["later"]["first"] == explained[key]["runs"][0]

    def test_catch_up_is_counted(self, command: Command, zipline: Path) -> None:
        (zipline / "chronon.yaml").write_text("start_date: 2020-01-01\ncatchup: true\nmax_catchup_runs: 7\n")
        found = command("init", zipline, "--json").json["first_day"]
        assert found["staging_query/checkout.orders.daily_0200__1"]["at_once"]["count"] == 7  # H10

    def test_the_tables_that_nobody_lands(self, command: Command, zipline: Path, tmp_path: Path) -> None:
        def lacking() -> set[str]:
            missing = command("init", zipline, "--json").json["missing"]
            return {each["field"] for each in missing if each["rule"] == "catalog"}

        before = lacking()
        assert before
        landed = sorted(before)[0]
        (tmp_path / "home/warehouse" / landed / "ds=2026-06-01").mkdir(parents=True)
        assert lacking() == before - {landed}

    def test_a_store_is_not_asked_and_its_package_is_named(
        self, command: Command, zipline: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STORE", "gs://bucket/warehouse")
        (zipline / "chronon.yaml").write_text(
            "catalog: {kind: filesystem, root: '${STORE}'}\nrunner: {kind: command}\n"
        )
        missing = command("init", zipline, "--json").json["missing"]
        assert [each["field"] for each in missing if each["rule"] == "extra"] == ["gcs"]
        assert all("was not asked" in each["message"] for each in missing if each["rule"] == "catalog")

    def test_a_catalog_of_another_kind(self, command: Command, zipline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AIRFLOW_CONN_LAKE", raising=False)
        (zipline / "chronon.yaml").write_text("catalog: {kind: iceberg, connection: lake}\nrunner: {kind: command}\n")
        missing = command("init", zipline, "--json").json["missing"]
        (named,) = (each for each in missing if each["field"] == "lake")
        assert named["rule"] == "connection" and "AIRFLOW_CONN_LAKE is not set" in named["message"]
        assert all("was not asked" in each["message"] for each in missing if each["rule"] == "catalog")
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", "http://host")
        assert "lake" not in {each["field"] for each in command("init", zipline, "--json").json["missing"]}

    def test_the_connection(self, command: Command, zipline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "airflow connections add chronon_airflow" in command("init", zipline).out
        monkeypatch.setenv("AIRFLOW_CONN_CHRONON_AIRFLOW", "chronon-airflow://user:password@host:8080")
        answer = command("init", zipline)
        assert "connections add" not in answer.out and "password" not in answer.out


class TestWhereThereIsNothingToBeginWith:
    """One sentence, exit code 2, and nothing is written."""

    @pytest.fixture
    def refused(self, command: Command, tmp_path: Path):
        def call(folder: object) -> str:
            before = tree(tmp_path)
            answer = command("init", folder)
            assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
            assert tree(tmp_path) == before
            return answer.err

        return call

    def test_sources_that_were_never_compiled(self, refused, older: Path, zipline: Path) -> None:
        shutil.rmtree(older / "production")
        shutil.rmtree(zipline / "compiled")
        assert "compile.py --conf" in refused(older) and "zipline" not in refused(older)
        assert "zipline compile" in refused(zipline) and "compile.py" not in refused(zipline)

    def test_an_empty_tree(self, refused, zipline: Path) -> None:
        shutil.rmtree(zipline / "compiled")
        (zipline / "compiled/group_bys").mkdir(parents=True)
        assert "has no compiled tree" in refused(zipline)

    def test_no_repository_at_all(self, refused, tmp_path: Path) -> None:
        (tmp_path / "src/production/lib").mkdir(parents=True)
        (tmp_path / "src/production/lib/code.py").write_text("pass\n")
        assert "there is no Chronon repository" in refused(tmp_path / "src")

    def test_several(self, refused, older: Path, zipline: Path, tmp_path: Path) -> None:
        said = refused(tmp_path)
        assert str(older) in said and str(zipline) in said

    def test_no_folder(self, refused, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "loop").symlink_to("loop")
        (tmp_path / "dangling").symlink_to("nowhere")
        for name in ("nothing", "file", "loop", "dangling", "a\0b", "a\nb", "x" * 10_000, "file/below"):
            refused(tmp_path / name)

    @pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="not on this system")
    def test_folders_that_nobody_may_look_into_are_passed_over(self, refused) -> None:
        assert "there is no Chronon repository" in refused(
            "/proc/1"
        )  # nothing can be looked up in its fdinfo, by root either

    def test_links_in_a_circle_end(self, refused, tmp_path: Path) -> None:
        (tmp_path / "a/b").mkdir(parents=True)
        (tmp_path / "a/b/back").symlink_to(tmp_path / "a")
        (tmp_path / "a/compiled").symlink_to("compiled")
        assert "there is no Chronon repository" in refused(tmp_path / "a")

    def test_names_that_cannot_be_printed(self, refused, zipline: Path, tmp_path: Path) -> None:
        for name in ("one\n\x1b[31m", "two"):
            shutil.copytree(zipline, tmp_path / "all" / name)
        assert "\x1b" not in refused(tmp_path / "all")


def test_the_answer_is_json_alone(command: Command, older: Path) -> None:
    answer = command("init", older, "--format", "json")
    assert json.loads(answer.out).keys() == {
        "conf_root", "trees", "dry_run", "files", "problems", "confs", "now", "first_day", "missing",
    }  # fmt: skip
