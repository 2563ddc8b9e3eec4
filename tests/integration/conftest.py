"""Fixtures that start real servers on 127.0.0.1: one Airflow for the whole session, PostgreSQL where a test asks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))  # the demo's supervisor and client are the tests' own

from airflow_api import AirflowApi  # noqa: E402
from local_airflow import USER, LocalAirflow  # noqa: E402


@dataclass(frozen=True)
class RealAirflow:
    """A running Airflow with the folders it reads and a client that is logged in."""

    server: LocalAirflow
    api: AirflowApi
    dags: Path  #: the dags folder; tests drop files here
    conf_root: Path  #: ``compiled/``, ``chronon.yaml``… below it
    warehouse: Path  #: Hive-style Parquet folders, ``CHRONON_WAREHOUSE``


@pytest.fixture(scope="session")
def real_airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """One Airflow (SQLite, LocalExecutor) for every test that asks: give DAGs and tables names of your own."""
    base = tmp_path_factory.mktemp("airflow")
    dags, warehouse = base / "dags", base / "warehouse"
    conf_root = dags / "chronon"
    for folder in (conf_root, warehouse):
        folder.mkdir(parents=True)
    settings = {
        "AIRFLOW__CHRONON__CONF_ROOT": str(conf_root),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3",
        "CHRONON_WAREHOUSE": str(warehouse),
        "PYTHONPATH": str(ROOT),  # the package of this checkout, whatever is installed
    }
    with (
        LocalAirflow(home=base / "home", dags=dags, settings=settings) as server,
        AirflowApi(url=server.url, user=USER, password=server.password) as api,
    ):
        yield RealAirflow(server=server, api=api, dags=dags, conf_root=conf_root, warehouse=warehouse)
