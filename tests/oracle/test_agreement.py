"""The product and the oracle agree on real trees and on random ones."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from tests.oracle import oracle
import pytest
from tests.oracle.compare import differences
from tests.oracle.mutations import Tree, random_tree, read_tree, write_tree

from airflow_chronon.conf_root import read_conf_root
from airflow_chronon.core.report import verdict_json
from airflow_chronon.core.resolve import ConfPlan

DATA = Path(__file__).parent.parent / "data"
START, END = "2026-06-01", "2026-06-04"


def product(root: Path, start: str, end: str) -> dict[str, dict[str, Any]]:
    """What ``explain --format json`` prints."""
    shown = {}
    for key, verdict in read_conf_root(root, environ={}).judge().items():
        runs = None
        if isinstance(verdict, ConfPlan):
            runs = verdict.runs.runs_between(oracle.minutes(start) * 60, oracle.minutes(end) * 60)
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


@pytest.mark.parametrize("seed", range(60))
def test_a_random_tree_is_judged_alike(seed: int, source: Tree, tmp_path: Path) -> None:
    write_tree(random_tree(source, Random(seed)), tmp_path)
    want = oracle.judge(tmp_path, oracle.minutes(START), oracle.minutes(END))
    assert differences(want, product(tmp_path, START, END)) == []
