"""Chains of confs that begin with their newest partitions: they start by themselves, and nothing waits for ever (C30)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from airflow_api import DagRun
from local_airflow import Component

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment, utc_now

pytestmark = pytest.mark.soak

MINUTE = timedelta(minutes=1)
LABEL = "%Y-%m-%d-%H-%M"
UNFINISHED = ("queued", "running")

MINUTES = staging_query("chain.minutes", every=1, schedule="* * * * *")
THREES = staging_query("chain.threes", every=3, schedule="*/3 * * * *", reads=MINUTES.table, reads_every=1)
SIXES = staging_query("chain.sixes", every=6, schedule="*/6 * * * *", reads=THREES.table, reads_every=3)
CHAIN = (MINUTES, THREES, SIXES)


@pytest.fixture(scope="module")
def chain(deployment: Deployment) -> Iterator[datetime]:
    """All three are dropped at once, with no settings of their own; since when."""
    since = utc_now()
    deployment.deploy(*CHAIN)
    yield since
    deployment.abandon(*CHAIN)


def first_success(deployment: Deployment, conf: CompiledConf, *, timeout: float) -> DagRun:
    def landed() -> list[DagRun]:
        runs = sorted(deployment.runs(conf, run_type="scheduled"), key=lambda run: run.partition_key or "")
        return [run for run in runs if run.state == "success" and run.partition_key in deployment.landed(conf)]

    return wait_until(landed, timeout=timeout, why=f"{conf.dag_id} lands a partition")[0]


def scheduled(deployment: Deployment, conf: CompiledConf) -> list[DagRun]:
    return sorted(deployment.runs(conf, run_type="scheduled"), key=lambda run: run.partition_key or "")


def test_every_conf_lands_its_first_possible_partition_and_no_run_is_left_waiting(
    deployment: Deployment, chain: datetime
) -> None:
    first = {conf.name: first_success(deployment, conf, timeout=1200) for conf in CHAIN}
    for conf, reads, length in ((THREES, MINUTES, 3), (SIXES, THREES, 6)):
        begins = datetime.strptime(str(first[reads.name].partition_key), LABEL).replace(tzinfo=UTC)
        ends_up = datetime.strptime(str(first[conf.name].partition_key), LABEL).replace(tzinfo=UTC)
        assert begins <= ends_up < begins + timedelta(minutes=length)  # the first whose inputs are all there
        skipped = [
            run for run in scheduled(deployment, conf) if str(run.partition_key) < str(first[conf.name].partition_key)
        ]
        assert skipped, "a chain that begins in the middle passes over what it cannot make"
        for run in skipped:
            assert run.state == "success"
            assert deployment.real.api.task_states(run)["landed"] == "skipped"
            # not the log: of a trigger that ends, a busy triggerer may lose the last line
            shown = deployment.real.api.request("GET", f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}")
            assert shown["note"].startswith(
                "Skipped: the run is skipped, since the chain begins with a later partition"
            )
    old = [
        run
        for conf in CHAIN
        for run in deployment.runs(conf)
        if run.state in UNFINISHED and run.run_after < utc_now() - 4 * MINUTE
    ]
    assert old == []


def test_a_replay_of_an_old_partition_delays_nobody(deployment: Deployment, chain: datetime) -> None:
    first_success(deployment, THREES, timeout=1200)
    old = utc_now().replace(second=0, microsecond=0) - timedelta(hours=6)
    deployment.real.api.trigger(MINUTES.dag_id, partition_key=f"{old:{LABEL}}")
    wait_until(lambda: f"{old:{LABEL}}" in deployment.landed(MINUTES), timeout=120, why="the old minute lands")
    newest = scheduled(deployment, THREES)[-1]
    following = wait_until(
        lambda: [run for run in scheduled(deployment, THREES) if str(run.partition_key) > str(newest.partition_key)],
        timeout=300,
        why="a run after the replay",
    )[0]
    assert deployment.end_of(following, timeout=120).state == "success"
    assert following.partition_key in deployment.landed(THREES)


def test_an_outage_ends_a_consumer_at_once_with_the_command_that_fills_it(
    deployment: Deployment, chain: datetime
) -> None:
    first_success(deployment, THREES, timeout=1200)
    server = deployment.real.server
    # down over two minutes in the middle of three, so that the run of the three comes and lacks minutes
    wait_until(lambda: utc_now().minute % 3 == 0 and utc_now().second > 20, timeout=200, why="a three has begun")
    server.stop_component(Component.SCHEDULER)
    down = utc_now()
    try:
        wait_until(lambda: utc_now() > down + 2 * MINUTE + timedelta(seconds=20), timeout=200, why="two fires pass")
    finally:
        server.ensure_component(Component.SCHEDULER)
        server.wait_until_healthy(timeout=120)
    failed = wait_until(
        lambda: [run for run in scheduled(deployment, THREES) if run.state == "failed"], timeout=300, why="it fails"
    )[-1]
    text = "\n".join(deployment.log(failed, f"wait.{MINUTES.table}"))
    command = re.search(rf"airflow-chronon (backfill {re.escape(MINUTES.dag_id)} --start-ds \S+ --end-ds [\d-]+)", text)
    assert command is not None, text
    environment = os.environ | server.environment | {"AIRFLOW__CHRONON__CONF_ROOT": str(deployment.real.conf_root)}
    arguments = [*shlex.split(command[1]), "--wait"]
    done = subprocess.run(
        [sys.executable, "-m", "airflow_chronon", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    again = deployment.real.api.trigger(THREES.dag_id, partition_key=str(failed.partition_key))
    assert deployment.end_of(again, timeout=120).state == "success"
    assert failed.partition_key in deployment.landed(THREES)
