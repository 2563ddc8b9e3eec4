"""One Airflow with the folders that tests drop things into."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from local_airflow import HOST, USER

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import AirflowClient
from tests.support.integration.failing_airflow import FailingAirflow
from tests.support.integration.postgres_server import postgres_server


@dataclass(frozen=True)
class RealAirflow:
    """A running Airflow with the folders it reads and a client that is logged in."""

    server: FailingAirflow
    api: AirflowClient
    dags: Path  #: the dags folder; tests drop files here
    conf_root: Path  #: ``compiled/``, ``chronon.yaml``… below it
    warehouse: Path  #: Hive-style Parquet folders, ``CHRONON_WAREHOUSE``

    def parse_soon(self) -> None:
        """Have Airflow parse the loader files now: it does so when they change, and else every 15 seconds."""
        for loader in self.dags.glob("*.py"):
            loader.touch()


@contextlib.contextmanager
def run_real_airflow(*, base: Path, settings: Mapping[str, str] | None = None) -> Iterator[RealAirflow]:
    """Run an Airflow below ``base``, whose DAGs start unpaused and whose files are parsed every 15 seconds.

    Its database is a SQLite file, or a PostgreSQL server of its own when ``CHRONON_TEST_DATABASE`` says ``postgresql``.
    """
    dags, warehouse = base / "dags", base / "warehouse"
    conf_root = dags / "chronon"
    for folder in (conf_root, warehouse):
        folder.mkdir(parents=True)
    chosen = {
        "AIRFLOW__CHRONON__CONF_ROOT": str(conf_root),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "5",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "15",
        "CHRONON_WAREHOUSE": str(warehouse),
        "PYTHONPATH": str(ROOT),  # the package of this checkout, whatever is installed
        **(settings or {}),
    }
    with (
        _database() as database,
        FailingAirflow(home=base / "home", dags=dags, settings=chosen, database=database) as server,
        AirflowClient(url=server.url, user=USER, password=server.password) as api,
    ):
        yield RealAirflow(server=server, api=api, dags=dags, conf_root=conf_root, warehouse=warehouse)


@contextlib.contextmanager
def _database() -> Iterator[str | None]:
    if os.environ.get("CHRONON_TEST_DATABASE") != "postgresql":
        yield None
        return
    with postgres_server() as server:
        yield f"postgresql+psycopg2://{server.user}:{server.password}@{HOST}:{server.port}/{server.database}"
