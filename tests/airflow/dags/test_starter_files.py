"""The loader files that ``init`` writes, as Airflow loads them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

from airflow_chronon.cli.main import main
from tests.support.checkout import ROOT

OLDER = ROOT / "tests/data/older"


@pytest.fixture(params=["in the repository", "through a link to its dags", "beside a conf root"])
def dags_folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Airflow's dags folder after ``init`` in a repository with one bad conf."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT", "0")  # the first file imports every provider
    is_beside = request.param == "beside a conf root"
    repository = tmp_path / ("repository/dags/chronon" if is_beside else "repository")
    shutil.copytree(OLDER / "production", repository / "production", ignore=shutil.ignore_patterns("checkout"))
    assert main(["init", str(tmp_path / "repository")]) == 1  # the bad conf
    folder = tmp_path / "repository/dags"
    if request.param == "through a link to its dags":
        (tmp_path / "linked").symlink_to(folder)
        return tmp_path / "linked"
    return folder


def test_airflow_has_every_good_conf_and_one_import_error(dags_folder: Path) -> None:
    bag = DagBag(dag_folder=dags_folder)
    assert len(bag.dags) == 9 and {"join.search.ranking.v1", "chronon_reconciler"} <= bag.dags.keys()
    ((file, error),) = bag.import_errors.items()
    assert os.path.basename(file) == "chronon_import_errors.py"
    assert "search.clicks.unnamed_schedule" in error
