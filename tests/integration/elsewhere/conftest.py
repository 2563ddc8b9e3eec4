"""One Airflow that notices lost workers soon, and a cluster for its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment
from tests.support.integration.job_cluster import JobCluster, run_job_cluster
from tests.support.integration.real_airflow import run_real_airflow

SETTINGS = {
    "AIRFLOW__CORE__PARALLELISM": "4",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "2",
}


@pytest.fixture(scope="package")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with run_real_airflow(base=tmp_path_factory.mktemp("airflow"), settings=SETTINGS) as real:
        found = Deployment(real)
        found.set_up()
        yield found


@dataclass(frozen=True)
class Elsewhere:
    """The cluster, and a conf whose jobs run there."""

    cluster: JobCluster
    conf: CompiledConf


@pytest.fixture(scope="package")
def elsewhere(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """A conf that may be tried three times."""
    name = "elsewhere.daily"
    table = staging_query(name).table
    with run_job_cluster(
        tmp_path_factory.mktemp("cluster"), land=lambda label: deployment.land(table, label)
    ) as cluster:
        conf = staging_query(name, airflow={"runner": cluster.runner(), "retries": 2})
        deployment.deploy(conf)
        yield Elsewhere(cluster, conf)
