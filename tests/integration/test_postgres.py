"""The deployment of docker-compose.yaml without Docker: the environment of each service, natively, on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from local_airflow import HOST, USER, Component, LocalAirflow, free_port

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import AirflowClient, wait_until
from tests.support.integration.compose_file import environment
from tests.support.integration.postgres_server import PostgresServer, postgres_server

pytestmark = pytest.mark.soak

DAG_FILE = """
from datetime import datetime, timedelta
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor
from airflow.sdk import DAG, task

with DAG("every_minute", schedule="* * * * *", start_date=datetime(2026, 1, 1), catchup=False):
    @task
    def work(**context):
        print("worked on", context["data_interval_start"])

    TimeDeltaSensor(task_id="wait", delta=timedelta(seconds=10), deferrable=True) >> work()
"""
#: Where the compose file's paths and hosts lie here, and what cannot hold on a machine shared with other tests.
MADE_FOR_CONTAINERS = {
    "AIRFLOW__API__BASE_URL",
    "AIRFLOW__API__HOST",
    "AIRFLOW__API__PORT",
    "AIRFLOW__CHRONON__STATE_ROOT",
    "AIRFLOW__CHRONON__CONF_ROOT",
    "AIRFLOW__CORE__DAGS_FOLDER",
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "CHRONON_WAREHOUSE",
}


#: What only some services get; the connections are made anew, since host and passwords are others here.
SECRETS = ("AIRFLOW__API__SECRET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__CORE__FERNET_KEY")
CONNECTIONS = ("AIRFLOW_CONN_CHRONON_AIRFLOW", "AIRFLOW_CONN_CHRONON_RECONCILER")


@pytest.fixture(scope="module")
def compose_on_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    base = tmp_path_factory.mktemp("compose")
    dags = base / "dags"
    (dags / "chronon").mkdir(parents=True)
    (dags / "every_minute.py").write_text(DAG_FILE)
    with postgres_server() as postgres:
        of_all = compose_settings("migrate", postgres=postgres)
        url = of_all["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
        native = {name: value for name, value in of_all.items() if name not in MADE_FOR_CONTAINERS}
        native |= {
            "AIRFLOW__CHRONON__CONF_ROOT": str(dags / "chronon"),
            "AIRFLOW__CHRONON__STATE_ROOT": str(base / "state"),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(free_port()),
            "CHRONON_WAREHOUSE": str(base / "warehouse"),
            "PYTHONPATH": str(ROOT),
        }
        components = {each: own_variables(each, postgres=postgres) for each in Component}
        home = base / "home"
        with LocalAirflow(home=home, dags=dags, settings=native, database=url, components=components) as server:
            yield server


def own_variables(component: Component, *, postgres: PostgresServer) -> dict[str, str | None]:
    """The secrets that the compose file gives the service of a component, and None for those that it does not."""
    given = compose_settings(component.value, postgres=postgres)
    kept = {name: None for name in CONNECTIONS if name not in given}
    return {**{name: given.get(name) for name in SECRETS}, **kept}


def compose_settings(service: str, *, postgres: PostgresServer) -> Mapping[str, str]:
    """The environment that docker-compose.yaml gives a service, with the database's host replaced."""
    variables = {
        "POSTGRES_PASSWORD": postgres.password,
        "AIRFLOW_FERNET_KEY": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",  # 32 digits, of no use elsewhere
        "AIRFLOW_API_SECRET_KEY": "for a test " * 4,
        "AIRFLOW_JWT_SECRET": "of a test, of no use elsewhere " * 3,
        "AIRFLOW_ADMIN_PASSWORD": "unused here",
        "AIRFLOW_EDITOR_PASSWORD": "unused here",
        "AIRFLOW_READER_PASSWORD": "unused here",
    }
    settings = environment(service, variables=variables)
    url = settings["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert "@postgres:5432/" in url
    settings["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = url.replace("@postgres:5432/", f"@{HOST}:{postgres.port}/")
    return settings


def test_a_scheduled_run_succeeds_with_the_compose_environment_on_postgresql(compose_on_postgres: LocalAirflow) -> None:
    with AirflowClient(url=compose_on_postgres.url, user=USER, password=compose_on_postgres.password) as api:
        wait_until(lambda: api.dag("every_minute"), timeout=90, why="the dropped DAG is known")
        api.unpause("every_minute")  # paused at creation is Airflow's default, and the compose file leaves it so
        done = wait_until(
            lambda: [run for run in api.runs("every_minute", state="success") if run.run_type == "scheduled"],
            timeout=180,
            why="a scheduled run succeeds",
        )
        [work] = [task for task in api.tasks("every_minute", done[0].run_id) if task.task_id == "work"]
        assert "worked on" in api.log_text(work)


def test_the_database_is_the_postgresql_server(compose_on_postgres: LocalAirflow) -> None:
    shown = compose_on_postgres.run("config", "get-value", "database", "sql_alchemy_conn")
    assert shown.stdout.strip().splitlines()[-1].startswith("postgresql+psycopg2://airflow:")
    assert not Path(compose_on_postgres.home, "airflow.db").exists()


@pytest.mark.parametrize("job", ["DagProcessorJob", "TriggererJob"])
def test_the_health_checks_of_the_compose_file_pass(compose_on_postgres: LocalAirflow, job: str) -> None:
    service = {"DagProcessorJob": Component.DAG_PROCESSOR, "TriggererJob": Component.TRIGGERER}[job]
    from tests.support.integration.compose_file import services

    check = services()[service.value]["healthcheck"]["test"]
    assert check[1] == "airflow" and job in check
    done = compose_on_postgres.run(*check[2:])
    assert done.returncode == 0, done.stdout + done.stderr
