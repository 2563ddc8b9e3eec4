"""Jobs that Chronon's driver submits to EMR Serverless (moto's), and workers that are lost: one job writes a partition (C28)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from airflow_api import DagRun

from tests.integration.elsewhere.test_jobs_elsewhere import clear
from tests.support.clouds import KEYS, StandInAws, stand_in_aws
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment
from tests.support.zipline_driver import StandInJvm

pytestmark = pytest.mark.soak


@dataclass(frozen=True)
class Lab:
    """The service, the program that submits to it, and a conf whose jobs run there."""

    deployment: Deployment
    cloud: StandInAws
    jvm: StandInJvm
    conf: CompiledConf

    def started(self, label: str) -> DagRun:
        self.cloud.runs.clear()
        return self.deployment.real.api.trigger(self.conf.dag_id, partition_key=label)

    def submitter(self) -> psutil.Process:
        """The driver while it is held up."""
        wait_until(lambda: self.jvm.is_held, timeout=180, why="the driver submits")
        program = str(self.jvm.folder / "java")
        return next(each for each in psutil.process_iter(["cmdline"]) if program in (each.info["cmdline"] or ()))

    def ends_well(self, run: DagRun, label: str) -> None:
        """The jobs that run end, the partition is there, and the run ends well with it."""
        self.deployment.land(self.conf.table, label)
        self.cloud.end_running("SUCCESS")
        assert self.deployment.end_of(run, timeout=180).state == "success"


@pytest.fixture(scope="module")
def lab(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with stand_in_aws() as cloud:
        jvm = StandInJvm.in_folder(tmp_path_factory.mktemp("jvm") / "bin", compiler=Path(sys.prefix))
        connection = {
            "connection_id": "aws_of_the_test",
            "conn_type": "aws",
            "login": KEYS["AWS_ACCESS_KEY_ID"],
            "password": KEYS["AWS_SECRET_ACCESS_KEY"],
            "extra": json.dumps({"endpoint_url": cloud.url}),
        }
        deployment.real.api.request("POST", "/connections", json=connection)
        env = {"PATH": jvm.path, "SUBMITTER": "EmrServerlessSubmitter", "CLOUD_PROVIDER": "aws", **cloud.variables}
        runner = {"kind": "zipline", "program": jvm.quick_driver, "env": env, "connection": "aws_of_the_test"}
        conf = staging_query("zipline.daily", airflow={"runner": runner, "retries": 2})
        deployment.deploy(conf)
        yield Lab(deployment, cloud, jvm, conf)


def test_a_worker_that_is_killed_before_the_id_is_printed_leaves_the_job_to_the_next_try(lab: Lab) -> None:
    label = "2026-05-01"
    lab.jvm.hold("accepted")
    run = lab.started(label)
    runner = lab.submitter().parent()
    assert runner is not None
    runner.kill()
    lab.jvm.let_go("accepted")
    lab.deployment.wait_for_task(run, "backfill", "deferred", timeout=240)
    assert lab.deployment.task(run, "backfill").try_number == 2
    lab.ends_well(run, label)
    assert lab.cloud.jobs == ["SUCCESS"] and len(lab.jvm.calls) == 1


def test_a_clear_cancels_the_job_and_submits_another(lab: Lab) -> None:
    label = "2026-05-02"
    run = lab.started(label)
    lab.deployment.wait_for_task(run, "backfill", "deferred", timeout=180)
    clear(lab.deployment, run, "backfill")
    wait_until(lambda: len(lab.cloud.jobs) == 2, timeout=240, why="another job is submitted")
    assert lab.cloud.jobs[0] == "CANCELLED"
    lab.deployment.wait_for_task(run, "backfill", "deferred", timeout=180)
    lab.ends_well(run, label)
    assert lab.cloud.jobs == ["CANCELLED", "SUCCESS"]
