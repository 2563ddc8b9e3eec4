"""A team's folder costs its own team: links, names and budgets (S1, S2)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from airflow_chronon.conf_root import budget, files
from airflow_chronon.conf_root.budget import Budget, OverBudget
from airflow_chronon.conf_root.root import ConfRoot, read_conf_root
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.plan.facts import TreeState
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from tests.support.confs import at, dependency, staging_query
from tests.support.jobs import HEAD

GOOD = "staging_query/good.s.x__1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A conf root with one good conf of the team ``good``."""
    put(tmp_path / "root", "good")
    return tmp_path / "root"


def put(root: Path, team: str, name: str = "s.x__1", **of: object) -> Path:
    path = root / "compiled" / "staging_queries" / team / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(staging_query(f"{team}.{name}", **of)))  # type: ignore[arg-type]
    return path


def rejected(found: ConfRoot) -> dict[str, RejectedConf]:
    """The one-message verdicts; the good conf must be good."""
    verdicts = found.judge()
    assert verdicts[GOOD].plan is not None
    bad = {key: verdict for key, verdict in verdicts.items() if isinstance(verdict, RejectedConf)}
    for key, verdict in bad.items():
        assert len(verdict.faults) == 1 and f"{key} {verdict.file} {verdict.faults[0]}".isprintable()
    return bad


def read(root: Path) -> ConfRoot:
    return read_conf_root(root, environ={})


class TestLinks:  # S2
    @pytest.mark.parametrize("place", ["compiled/staging_queries/all", "compiled/staging_queries/bad/all", "jobs/all"])
    def test_a_folder_outside_is_one_message_and_nothing_of_it_is_read(
        self, root: Path, tmp_path: Path, place: str
    ) -> None:
        put(tmp_path / "elsewhere", "bad")
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).symlink_to(tmp_path / "elsewhere" / "compiled" / "staging_queries" / "bad")
        found = read(root)
        (bad,) = rejected(found).values()
        assert bad.file == f"{place}/" and "leads out of the conf root" in bad.faults[0].message
        assert len(found.confs) == 1 and found.state is TreeState.WHOLE

    @pytest.mark.parametrize("place", ["compiled/staging_queries/bad/s.y__1", "jobs/bad/y.yaml"])
    def test_a_file_outside_is_one_message_that_shows_nothing_of_it(
        self, root: Path, tmp_path: Path, place: str
    ) -> None:
        (tmp_path / "secret").write_text("tell-no-one: 1\n")
        (root / place).parent.mkdir(parents=True)
        (root / place).symlink_to(tmp_path / "secret")
        (bad,) = rejected(read(root)).values()
        assert bad.file == place and bad.faults[0].rule == "S2" and "tell-no-one" not in str(bad)

    def test_settings_outside_are_not_read(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("tell-no-one: 1\n")
        (root / "chronon.yaml").symlink_to(tmp_path / "secret")
        (problem,) = read(root).problems
        assert problem.rule == "S2" and "tell-no-one" not in str(problem)

    def test_a_root_and_a_compiled_tree_may_be_links_as_git_sync_and_mounts_make_them(
        self, root: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "link").symlink_to(root)
        assert not rejected(read(tmp_path / "link"))
        (tmp_path / "mounted").mkdir()
        (tmp_path / "mounted" / "compiled").symlink_to(root / "compiled")
        assert not rejected(read(tmp_path / "mounted"))

    def test_links_within_the_root_are_followed_and_take_nothing_from_another_team(self, root: Path) -> None:
        real = root / "compiled" / "staging_queries" / ".data" / "s.y__1"
        real.parent.mkdir()
        put(root, "linked", "s.y__1").rename(real)
        (root / "compiled" / "staging_queries" / "linked" / "s.y__1").symlink_to(real)
        (root / "compiled" / "staging_queries" / "a").mkdir()
        (root / "compiled" / "staging_queries" / "a" / "theirs").symlink_to(root / "compiled/staging_queries/good")
        verdicts = read(root).judge()
        assert {key: verdict.file for key, verdict in verdicts.items()} == {
            GOOD: "compiled/staging_queries/good/s.x__1",
            "staging_query/linked.s.y__1": "compiled/staging_queries/linked/s.y__1",
        }


class TestNames:  # S1
    @pytest.mark.parametrize("odd", [b"\xff", b"a\nb", b"a\x1b[2J", "a\u202eb".encode()])
    def test_of_a_file_or_of_a_folder_that_are_no_text_are_one_message(self, root: Path, odd: bytes) -> None:
        base = os.fsencode(root)
        for folder in (b"/compiled/staging_queries/bad/", b"/compiled/joins/" + odd, b"/jobs/bad/", b"/jobs/" + odd):
            os.makedirs(base + folder, exist_ok=True)
        for path in (
            b"/compiled/staging_queries/bad/" + odd,
            b"/jobs/bad/" + odd + b".yaml",
            b"/jobs/" + odd + b"/x.yaml",
        ):
            Path(os.fsdecode(base + path)).write_text(HEAD)
        bad = rejected(read(root))
        assert len(bad) == 4
        for verdict in bad.values():
            assert verdict.faults[0].rule == "S1" and "cannot be printed" in verdict.faults[0].message


class TestBudgets:  # S2
    def test_more_files_than_a_team_has(self, root: Path, mocker: MockerFixture) -> None:
        mocker.patch.object(files, "MAX_TEAM_FILES", 10)
        for number in range(11):
            put(root, "many", f"s.n{number}__1")
        (bad,) = rejected(read(root)).values()
        assert bad.key == "staging_query/many/" and bad.file == "compiled/staging_queries/many/"
        assert "more than 10 files" in bad.faults[0].message

    def test_more_bytes_than_a_team_has(self, root: Path, mocker: MockerFixture) -> None:
        mocker.patch.object(budget, "MAX_TEAM_BYTES", 2 * 1024**2)
        for number in range(3):
            put(root, "large", f"s.n{number}__1", more="x" * 1024**2)
        (bad,) = rejected(read(root)).values()
        assert bad.key == "staging_query/large/" and "2 MB" in bad.faults[0].message

    def test_more_tables_than_a_team_has(self, root: Path, mocker: MockerFixture) -> None:
        mocker.patch.object(budget, "MAX_TEAM_TABLES", 25)
        for number in range(3):
            put(root, "greedy", f"s.n{number}__1", dependencies=[dependency(f"a.b{n}") for n in range(10)])
        (bad,) = rejected(read(root)).values()
        assert bad.key == "staging_query/greedy/" and "25 tables" in bad.faults[0].message

    def test_more_seconds_than_a_team_has(self, tmp_path: Path) -> None:
        present = iter((0.0, 3.0, 60.0))
        spent = Budget(clock=lambda: next(present))
        spent.spend_file(tmp_path, limit=1)
        with pytest.raises(OverBudget, match="take 60 s to read"):
            spent.spend_file(tmp_path, limit=1)

    def test_jobs_have_budgets_too(self, root: Path, mocker: MockerFixture) -> None:
        mocker.patch.object(budget, "MAX_TEAM_BYTES", 100)
        for name in ("a", "b", "c"):
            (root / "jobs" / "many").mkdir(parents=True, exist_ok=True)
            (root / "jobs" / "many" / f"{name}.yaml").write_text(HEAD)
        bad = rejected_jobs(root)
        assert list(bad) == ["job/many/"]

    @pytest.mark.parametrize("odd", ["n{}", ".n{}", "__n{}/", "n{}/"])
    def test_what_lies_beside_the_folders_of_the_teams_hides_none_of_them(
        self, root: Path, mocker: MockerFixture, odd: str
    ) -> None:
        mocker.patch.object(files, "MAX_TEAM_FILES", 10)
        (root / "jobs" / "good").mkdir(parents=True)
        (root / "jobs" / "good" / "x.yaml").write_text(HEAD)
        for folder in (root / "jobs", root / "compiled" / "staging_queries"):
            for number in range(30):
                place = folder / odd.format(number)
                place.mkdir() if odd.endswith("/") else place.touch()
        found = read(root)
        assert found.state is TreeState.WHOLE and found.judge()["job/good.x"].plan is not None
        assert found.judge()[GOOD].plan is not None

    def test_hidden_files_are_files_that_are_listed(self, root: Path, mocker: MockerFixture) -> None:
        mocker.patch.object(files, "MAX_TEAM_FILES", 10)
        put(root, "many")
        for number in range(11):
            (root / "compiled" / "staging_queries" / "many" / f".n{number}").touch()
        (bad,) = rejected(read(root)).values()
        assert bad.key == "staging_query/many/" and "more than 10 files" in bad.faults[0].message

    def test_what_the_team_had_counts_as_present(self, root: Path, mocker: MockerFixture) -> None:  # C23
        path = put(root, "many")
        plan = read(root).judge()["staging_query/many.s.x__1"].plan
        assert plan is not None
        record = record_after(plan, manifest_of(plan), None, now=at("2026-06-01"))
        mocker.patch.object(files, "MAX_TEAM_FILES", 1)
        put(root, "many", "s.y__1")
        path.unlink()
        put(root, "many", "s.z__1")
        facts = read(root).facts()
        assert facts.holds(plan.dag_id, record) and facts.holds(plan.dag_id, None)
        assert not facts.holds("staging_query.other.s.x__1", None)


def rejected_jobs(root: Path) -> dict[str, RejectedConf]:
    verdicts = read(root).judge()
    return {key: each for key, each in verdicts.items() if isinstance(each, RejectedConf) and key.startswith("job/")}
