"""A branch that deploys only what differs from the default branch (C24)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from airflow_chronon.conf_root.root import ConfRoot, read_conf_root
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.plan.facts import TreeState
from tests.support.confs import dependency, staging_query


def write(root: Path, name: str, **of: object) -> None:
    path = root / "compiled" / "staging_queries" / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(staging_query(f"t.{name}", **of)))  # type: ignore[arg-type]


def read(root: Path) -> ConfRoot:
    return read_conf_root(root, environ={})


def branch_of(tmp_path: Path, *, branch: str = "try") -> Path:
    """A branch that changes one conf, adds one, and reads one that it leaves alone."""
    base, root = tmp_path / "base", tmp_path / "branch"
    for place in (base, root):
        write(place, "same__1", schedule="0 * * * *", interval="1h")
        write(place, "changed__1", schedule="0 2 * * *")
    write(root, "changed__1", schedule="0 3 * * *")
    write(root, "reader__1", dependencies=[dependency("ns.t_same__1")], schedule="0 * * * *", interval="1h")
    (root / "chronon.yaml").write_text(f"branch: {branch}\nbase_root: ../base\n")
    return root


def test_only_confs_that_differ_are_deployed(tmp_path: Path) -> None:
    verdicts = read(branch_of(tmp_path)).judge()
    assert set(verdicts) == {"staging_query/t.changed__1", "staging_query/t.reader__1"}


def test_a_conf_that_is_left_alone_still_lends_its_grid_to_those_that_read_it(tmp_path: Path) -> None:  # C15
    reader = read(branch_of(tmp_path)).judge()["staging_query/t.reader__1"]
    assert isinstance(reader, ConfPlan) and [key.name for key in reader.producers] == ["t.same__1"]


def test_a_conf_that_is_the_same_again_is_no_longer_present(tmp_path: Path) -> None:
    facts = read(branch_of(tmp_path)).facts()
    assert not facts.holds("try--staging_query.t.same__1", None)
    assert facts.holds("try--staging_query.t.changed__1", None)


def test_the_default_branch_deploys_everything(tmp_path: Path) -> None:
    assert len(read(branch_of(tmp_path, branch="main")).judge()) == 3


def test_a_conf_that_stands_twice_in_the_base_is_left_to_it(tmp_path: Path) -> None:  # C24, C26
    root = branch_of(tmp_path)
    write(tmp_path / "base", "orders.twice__1", schedule="0 2 * * *")
    write(root, "orders.twice__1", schedule="0 3 * * *")
    before = set(read(root).judge())
    first = tmp_path / "base/compiled/staging_queries/t/orders.twice__1"
    (first.parent / "orders").mkdir()
    (first.parent / "orders" / "twice__1").write_text(first.read_text())
    assert before - set(read(root).judge()) == {"staging_query/t.orders.twice__1"}


def test_a_missing_base_is_a_problem_and_the_tree_no_whole_truth(tmp_path: Path) -> None:  # C23
    root = branch_of(tmp_path)
    (tmp_path / "base").rename(tmp_path / "elsewhere")
    found = read(root)
    assert found.state is TreeState.UNREADABLE and "C24" in str(found.problems[0])
    assert found.judge() == {}


def test_a_merged_branch_is_no_damaged_checkout(tmp_path: Path) -> None:  # C24
    root = branch_of(tmp_path)
    before = read(root).facts()
    shutil.copytree(root / "compiled", tmp_path / "base" / "compiled", dirs_exist_ok=True)
    after = read(root).facts()
    assert after.plans == {} and before.families <= after.families


def test_a_conf_whose_base_cannot_be_read_is_left_to_the_base(tmp_path: Path) -> None:  # C24
    root = branch_of(tmp_path)
    (tmp_path / "base" / "compiled" / "staging_queries" / "t" / "changed__1").write_text("{")
    assert set(read(root).judge()) == {"staging_query/t.reader__1"}


def test_an_empty_base_is_a_problem_and_nothing_is_deployed(tmp_path: Path) -> None:  # C24
    root = branch_of(tmp_path)
    for file in (tmp_path / "base" / "compiled" / "staging_queries" / "t").iterdir():
        file.unlink()
    found = read(root)
    assert found.state is TreeState.UNREADABLE and found.judge() == {}


JOB = "version: 1\nrunner: {kind: command, argv: [run]}\n"


def write_job(root: Path, name: str, text: str = JOB) -> None:
    path = root / "jobs" / "etl" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_root_of_jobs_alone_deploys_those_that_differ(tmp_path: Path) -> None:  # C24
    base, root = tmp_path / "base", tmp_path / "branch"
    for place in (base, root):
        write_job(place, "same")
        write_job(place, "changed")
    write_job(root, "changed", JOB + "retries: 5\n")
    write_job(root, "new")
    (root / "chronon.yaml").write_text("branch: try\nbase_root: ../base\n")
    found = read(root)
    assert found.problems == () and set(found.judge()) == {"job/etl.changed", "job/etl.new"}
    assert not found.facts().holds("try--job.etl.same", None)


def test_a_job_whose_base_cannot_be_read_is_left_to_the_base(tmp_path: Path) -> None:  # C24
    base, root = tmp_path / "base", tmp_path / "branch"
    for place in (base, root):
        write_job(place, "same")
        write_job(place, "doubtful")
    write_job(base, "doubtful", "version: [\n")
    (root / "chronon.yaml").write_text("branch: try\nbase_root: ../base\n")
    assert read(root).judge() == {}
