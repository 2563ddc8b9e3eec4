"""The product and the oracle agree on real trees and on random ones."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.json import verdict_json
from tests.support.oracle import oracle
from tests.support.oracle.compare import differences
from tests.support.oracle.mutations import Tree, random_tree, read_tree, write_tree

DATA = Path(__file__).parent.parent / "data"
START, END = "2026-06-01", "2026-06-04"


def product(root: Path, start: str, end: str) -> dict[str, dict[str, Any]]:
    """What ``explain --format json`` prints."""
    shown = {}
    for key, verdict in read_conf_root(root, environ={}).judge().items():
        runs = None
        if isinstance(verdict, ConfPlan):
            runs = verdict.schedule.runs_between(oracle.minutes(start) * 60, oracle.minutes(end) * 60)
        shown[key] = verdict_json(verdict, runs)
    return shown


@pytest.fixture(scope="module")
def source() -> Tree:
    return read_tree(DATA / "main")


@pytest.mark.parametrize("tree", ["main", "previous"])
def test_a_real_tree_is_judged_alike(tree: str) -> None:
    want = oracle.judge(DATA / tree, oracle.minutes(START), oracle.minutes(END))
    assert len(want) > 50
    assert differences(want, product(DATA / tree, START, END)) == []


def disagreement(tree: Tree, root: Path, *, start: str, end: str) -> list[str]:
    write_tree(tree, root)
    want = oracle.judge(root, oracle.minutes(start), oracle.minutes(end))
    return differences(want, product(root, start, end))


@pytest.mark.parametrize("seed", range(25))
def test_a_random_tree_is_judged_alike(seed: int, source: Tree, tmp_path: Path) -> None:
    tree = random_tree(source, Random(seed), changes=20)
    assert disagreement(tree, tmp_path, start="2026-06-01", end="2026-06-03") == []


@pytest.mark.soak
def test_thousands_of_random_trees_are_judged_alike(source: Tree, tmp_path: Path) -> None:
    for seed in range(1000, 4000):
        tree = random_tree(source, Random(seed), size=7, changes=35)
        assert disagreement(tree, tmp_path / str(seed), start="2026-05-31", end="2026-06-02") == [], seed
