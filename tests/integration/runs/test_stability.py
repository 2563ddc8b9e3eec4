"""What does not change stays as it is: DAG versions and hashes over parses and restarts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_airflow import Component
from sqlalchemy import create_engine, text

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, group_by, staging_query
from tests.support.integration.deployment import Deployment

pytestmark = pytest.mark.soak

QUERY = staging_query("stable.query", reads="stable.raw")
FEATURES = group_by(
    "stable.features", offline="0 0 * * 1", online="0 0 * * *", reads="stable.raw", airflow={"enabled": False}
)
CONFS = (QUERY, FEATURES)


@pytest.fixture(scope="module")
def stable(deployment: Deployment) -> Iterator[Deployment]:
    """Both have run once: Airflow replaces a version without runs in silence."""
    deployment.land("stable.raw", "2026-06-01")
    deployment.deploy(*CONFS)
    for conf in CONFS:
        deployment.end_of(deployment.real.api.trigger(conf.dag_id, partition_key="2026-06-01"))
    yield deployment
    deployment.withdraw(*CONFS)


def _parsed(deployment: Deployment, conf: CompiledConf) -> str:
    return str((deployment.real.api.dag(conf.dag_id) or {})["last_parsed_time"])


def _wait_for_parses(deployment: Deployment, *, count: int) -> None:
    for _ in range(count):
        before = _parsed(deployment, QUERY)
        deployment.real.parse_soon()
        wait_until(
            lambda before=before: _parsed(deployment, QUERY) != before, timeout=60, why="the next parse", every=0.2
        )


def _versions(deployment: Deployment, conf: CompiledConf) -> list[int]:
    return [version["version_number"] for version in deployment.real.api.dag_versions(conf.dag_id)]


def _hashes(deployment: Deployment) -> dict[str, str]:
    """The newest hash of each DAG, from where the API does not tell."""
    engine = create_engine(deployment.real.server.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    try:
        with engine.connect() as database:
            rows = database.execute(text("SELECT dag_id, dag_hash FROM serialized_dag ORDER BY created_at")).all()
    finally:
        engine.dispose()
    return {dag_id: found for dag_id, found in rows if dag_id in {conf.dag_id for conf in CONFS}}


def test_parses_and_another_hash_seed_make_no_new_version(stable: Deployment) -> None:
    before = _hashes(stable)
    assert set(before) == {conf.dag_id for conf in CONFS}
    _wait_for_parses(stable, count=5)
    server = stable.real.server
    server.environment["PYTHONHASHSEED"] = "4242"  # the first one was chance
    server.restart_component(Component.DAG_PROCESSOR, timeout=120)
    del server.environment["PYTHONHASHSEED"]
    _wait_for_parses(stable, count=1)
    assert _hashes(stable) == before
    assert [_versions(stable, conf) for conf in CONFS] == [[1], [1]]


def test_a_changed_query_makes_one_new_version_of_its_own_dag(stable: Deployment) -> None:
    stable.drop(staging_query("stable.query", reads="stable.raw", query="SELECT 2 AS n, {{ start_date }} AS ds"))
    wait_until(lambda: len(_versions(stable, QUERY)) > 1, timeout=60, why="the changed query shows as a version")
    _wait_for_parses(stable, count=2)
    assert sorted(_versions(stable, QUERY)) == [1, 2]
    assert _versions(stable, FEATURES) == [1]
