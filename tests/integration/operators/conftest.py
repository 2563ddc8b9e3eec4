"""One Airflow with Spark on its path, ended when the last of these tests is done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.support.integration.deployment import Deployment
from tests.support.integration.real_airflow import run_real_airflow
from tests.support.integration.spark import SparkLab, spark_submit


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkLab:
    return SparkLab.in_folder(tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="package")
def deployment(tmp_path_factory: pytest.TempPathFactory, spark: SparkLab) -> Iterator[Deployment]:
    settings = {
        "PATH": f"{spark_submit().parent}:{os.environ['PATH']}",  # the provider starts no other spark-submit
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        "AIRFLOW__CORE__PARALLELISM": "4",
        **spark.env,
    }
    with run_real_airflow(base=tmp_path_factory.mktemp("airflow"), settings=settings) as real:
        found = Deployment(real)
        found.set_up()
        yield found
