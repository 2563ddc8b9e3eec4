"""``plan --base`` and ``check --base``: what differs from another revision (C22)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from airflow_chronon.cli.main import main
from tests.support.confs import staging_query


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A conf root two folders below the top of a git repository, with one commit."""
    root = tmp_path / "repo" / "dags" / "chronon"
    write(root, "kept__1")
    write(root, "bumped__1")
    write(root, "gridded__1", schedule="0 */3 * * *", interval="3h")
    git(root, "init", "--quiet", str(tmp_path / "repo"))
    commit(root)
    return root


def write(root: Path, name: str, **of: object) -> None:
    path = root / "compiled" / "staging_queries" / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(staging_query(f"t.{name}", **of)))  # type: ignore[arg-type]


def remove(root: Path, name: str) -> None:
    (root / "compiled" / "staging_queries" / "t" / name).unlink()


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "a revision")


def test_nothing_differs_from_the_commit_itself(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--root", str(root), "--base", "HEAD"]) == 0
    assert "nothing differs" in capsys.readouterr().out


def test_new_superseded_gone_and_broken_confs_are_distinguished(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remove(root, "bumped__1")
    write(root, "bumped__2")
    write(root, "fresh__1")
    write(root, "kept__1", schedule="0 5 * * *")
    (root / "compiled" / "staging_queries" / "t" / "gridded__1").write_text("{")
    assert main(["plan", "--root", str(root), "--base", "HEAD", "--format", "json"]) == 0
    printed = {
        each["dag_id"].partition(".")[2]: (each["change"], each.get("detail"))
        for each in json.loads(capsys.readouterr().out)
    }
    assert printed["t.bumped__2"] == ("new", "supersedes staging_query.t.bumped__1")
    assert printed["t.bumped__1"][0] == "gone"
    assert printed["t.fresh__1"] == ("new", None)
    assert printed["t.kept__1"] == ("changed", "its schedule")
    assert printed["t.gridded__1"][0] == "no longer good"


@pytest.mark.parametrize("command", ["plan", "check"])
def test_a_grid_changed_without_a_version_bump_is_a_finding(
    root: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:  # C22
    write(root, "gridded__1", schedule="0 * * * *", interval="1h")
    assert main([command, "--root", str(root), "--base", "HEAD"]) == 1
    printed = "".join(capsys.readouterr())
    assert "gridded__1" in printed and "3h" in printed and "(C22)" in printed
    remove(root, "gridded__1")
    write(root, "gridded__2", schedule="0 * * * *", interval="1h")
    assert main([command, "--root", str(root), "--base", "HEAD"]) == 0


@pytest.mark.parametrize(
    ("info", "named"),
    [({"partitionFormat": "yyyyMMddHH"}, "format yyyyMMddHH"), ({"partitionColumn": "hr"}, "column hr")],
)
def test_another_format_or_column_is_one_too_and_not_a_changed_schedule(
    root: Path, info: dict[str, str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:  # C22
    write(root, "gridded__1", schedule="0 */3 * * *", interval="3h", info=info)
    assert main(["plan", "--root", str(root), "--base", "HEAD"]) == 1
    told = capsys.readouterr().out
    assert "grid changed" in told and named in told and "its schedule" not in told


def test_the_checkout_is_left_alone(root: Path) -> None:
    write(root, "fresh__1")
    main(["plan", "--root", str(root), "--base", "HEAD"])
    done = subprocess.run(["git", "-C", str(root), "status", "--short"], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["??", "compiled/staging_queries/t/fresh__1"]


@pytest.mark.parametrize(
    ("revision", "says"),
    [("nosuch", "nosuch"), ("--output=x", "is not a revision")],
)
def test_a_revision_that_is_not_there_is_one_sentence(
    root: Path, revision: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--root", str(root), f"--base={revision}"]) == 2
    printed = capsys.readouterr().err
    assert says in printed and "Traceback" not in printed and len(printed.splitlines()) == 1


@pytest.mark.parametrize("command", ["plan", "check"])
def test_every_conf_is_new_where_the_revision_has_no_conf_root_yet(
    root: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:  # the first pull request of all
    top = root.parents[1]
    git(top, "checkout", "--quiet", "--orphan", "before")
    git(top, "rm", "-r", "--quiet", "--cached", ".")
    git(top, "commit", "--quiet", "--allow-empty", "-m", "nothing yet")
    assert main([command, "--root", str(root), "--base", "before"]) == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("new  ") == 3
    [note] = [line for line in printed.err.splitlines() if "before has no folder dags/chronon" in line]
    assert "every conf is new" in note


def test_a_root_outside_any_repository_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "a__1")
    assert main(["plan", "--root", str(tmp_path), "--base", "HEAD"]) == 2
    assert "not a git repository" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "check"])
@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_link_that_leads_out_of_the_root_is_named_and_the_rest_is_compared(
    root: Path, tmp_path: Path, command: str, is_absolute: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "far__1").write_text(json.dumps(staging_query("linked.far__1")))
    link = root / "compiled" / "staging_queries" / "linked"
    link.symlink_to(outside if is_absolute else Path("../../../../..") / outside.relative_to(tmp_path))
    assert link.is_dir()
    commit(root)
    write(root, "fresh__1")
    # as it lies there now the link is not followed either (S2)
    assert main([command, "--root", str(root), "--base", "HEAD"]) == (1 if command == "check" else 0)
    printed = capsys.readouterr()
    assert "fresh__1" in printed.out + printed.err
    [warning] = [line for line in printed.err.splitlines() if "leads out of the conf root" in line]
    assert "compiled/staging_queries/linked" in warning


def test_reconcile_without_an_airflow_is_one_sentence(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_CHRONON_AIRFLOW", raising=False)
    assert main(["reconcile", "--root", str(root)]) == 2
    assert "nobody said where Airflow is" in capsys.readouterr().err
    assert main(["reconcile", "--root", str(root), "--branch", "x"]) == 2


def test_a_grid_that_changed_on_a_branch_with_a_base_root_is_found(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # C22, C24
    (root / "chronon.yaml").write_text("branch: try\nbase_root: ../base\n")
    write(root.parent / "base", "kept__1")
    commit(root)
    write(root, "gridded__1", schedule="0 * * * *", interval="1h")
    assert main(["check", "--root", str(root), "--base", "HEAD"]) == 1
    assert "grid changed" in capsys.readouterr().err


def test_a_revision_whose_settings_cannot_be_read_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "chronon.yaml").write_text("branch: [\n")
    commit(root)
    (root / "chronon.yaml").write_text("branch: main\n")
    assert main(["plan", "--root", str(root), "--base", "HEAD"]) == 2
    assert "HEAD cannot be compared with" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["plan"], ["reconcile", "--confirm-mass-retire"]])
def test_a_missing_root_plans_nothing_where_several_branches_are_deployed(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:  # C24
    state = tmp_path / "state"
    for branch in ("main", "trial"):
        (state / "dags-folder" / branch / "records").mkdir(parents=True)
    code = main([*arguments, "--root", str(tmp_path / "gone"), "--state-root", str(state)])
    assert code != 0
    assert f"it is not known which branch {tmp_path / 'gone'} belongs to: main, trial" in capsys.readouterr().err
