"""The tutorial that begins with the sample repository of `zipline-ai` and ends with landed partitions, as its page has it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.deployment import day_label
from tests.support.integration.real_airflow import RealAirflow, run_real_airflow

PAGE = (ROOT / "docs/from-nothing.md").read_text()
KEPT = ROOT / "tests/data/scaffold"  #: what step 1 of the page makes; tests/examples makes it again
JOIN = "join.test.data.v1__0"


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.S | re.M)
    return [text for of, text in found if of == language]


def command(line: str, *, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """One ``airflow-chronon …`` of the page, run where its reader is."""
    program, *arguments = line.split()
    assert program == "airflow-chronon"
    whole = [sys.executable, "-m", "airflow_chronon", *arguments]
    return subprocess.run(whole, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[RealAirflow]:
    """An Airflow whose dags folder is that of the repository ``shop/features``."""
    with run_real_airflow(base=tmp_path / "shop/features") as running:
        yield running


def test_a_compiled_sample_repository_ends_as_landed_partitions(airflow: RealAirflow, tmp_path: Path) -> None:
    shop, features = tmp_path / "shop", tmp_path / "shop/features"
    environment = {
        name: value for name, value in airflow.server.environment.items() if name != "AIRFLOW__CHRONON__CONF_ROOT"
    }
    init, partitions, backfill = (line for block in blocks("sh") for line in block.splitlines())
    (land,) = blocks("python")

    shutil.copytree(KEPT / "compiled", features / "compiled")
    (features / "teams.py").touch()
    begun = command(init, folder=shop, environment=environment)
    assert begun.returncode == 0, begun.stderr
    (shown,) = (block for block in blocks("") if block.startswith("ok "))
    assert shown in begun.stdout
    assert "data.checkouts: no conf here writes it" in begun.stdout

    (shop / "land.py").write_text(land)
    subprocess.run([sys.executable, "land.py"], cwd=shop, env=environment, check=True)
    begun = command(init, folder=shop, environment=environment)
    assert begun.returncode == 0 and "no conf here writes it" not in begun.stdout

    airflow.parse_soon()
    yesterday = day_label(days_ago=1)
    wait_until(lambda: airflow.api.dag(JOIN), timeout=120, why="the Join is a DAG")
    assert not airflow.api.import_errors()

    def has_landed() -> bool:
        line = re.sub(r"--start-ds \S+", f"--start-ds {yesterday}", partitions)
        done = command(f"{line} --root {features} --format json", folder=shop, environment=environment)
        assert done.returncode in (0, 1), done.stderr
        return [each["state"] for each in json.loads(done.stdout)["partitions"]] == ["landed"]

    wait_until(has_landed, timeout=300, why="yesterday's partition of the Join has landed")
    files = features / "home/warehouse/data.test_data_v1__0/**/*.parquet"
    sql = f"SELECT * FROM read_parquet('{files}') WHERE user_id = 'user3'"
    names = [name for name, *_ in duckdb.sql(f"DESCRIBE {sql}").fetchall()]
    row = dict(zip(names, duckdb.sql(sql).fetchall()[0], strict=True))
    sums = [value for name, value in sorted(row.items()) if "purchase_price_sum" in name]
    assert sorted(sums) == [90, 420, 900]
    assert "90 in three days, 420 in 14, 900 in 30" in PAGE

    tried = command(f"{backfill} --root {features}", folder=shop, environment=environment)
    assert tried.returncode == 0 and "2026-05-25" in tried.stdout
