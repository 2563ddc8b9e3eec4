"""Jobs in a cluster, and workers that are lost at every step: one job writes a partition, and none twice at a time (C28)."""

from __future__ import annotations

from urllib.parse import quote

import psutil
import pytest
from airflow_api import DagRun
from local_airflow import USER, Component

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.login import Login
from airflow_chronon.engine.remote import KEY, JobRecord
from tests.integration.elsewhere.conftest import Elsewhere
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.deployment import Deployment

pytestmark = pytest.mark.soak


@pytest.fixture(autouse=True)
def never_two_at_a_time(elsewhere: Elsewhere):
    yield
    assert elsewhere.cluster.overlaps == []


def started(deployment: Deployment, elsewhere: Elsewhere, label: str) -> DagRun:
    return deployment.real.api.trigger(elsewhere.conf.dag_id, partition_key=label)


def runner_of(client: psutil.Process) -> psutil.Process:
    """The process in which the task runs, of a command that it started."""
    runner = client.parent()
    assert runner is not None
    return runner


def has_ended(process: psutil.Process) -> bool:
    """Whether a process has ended, its parent may not have noticed."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def clear(deployment: Deployment, run: DagRun, task_id: str) -> None:
    """What a user does to a task, with all that comes after it."""
    body = {
        "dry_run": False,
        "dag_run_id": run.run_id,
        "task_ids": [task_id],
        "only_failed": False,
        "include_downstream": True,
    }
    deployment.real.api.request("POST", f"/dags/{run.dag_id}/clearTaskInstances", json=body)


def succeeds_with_one_job(deployment: Deployment, elsewhere: Elsewhere, run: DagRun, label: str) -> None:
    """The job ends well, and the run with it."""
    cluster = elsewhere.cluster
    deployment.wait_for_task(run, "backfill", "deferred", "success", timeout=180)
    for job in cluster.of(label):
        if job.is_alive:
            cluster.end(job)
    assert deployment.end_of(run, timeout=180).state == "success"
    assert [job.state for job in cluster.of(label)] == ["SUCCESS"]
    assert label in deployment.landed(elsewhere.conf)


@pytest.mark.parametrize(
    ("step", "label"),
    [("asked", "2026-05-01"), ("accepted", "2026-05-02"), ("printed", "2026-05-03")],
)
def test_a_worker_that_is_killed_while_it_submits(
    deployment: Deployment, elsewhere: Elsewhere, step: str, label: str
) -> None:
    # asked: the request is on its way, and the cluster takes it when nobody waits for its answer any more
    with elsewhere.cluster.holding(step, label) as reached:
        run = started(deployment, elsewhere, label)
        runner_of(reached()).kill()
    succeeds_with_one_job(deployment, elsewhere, run, label)


def test_a_worker_that_is_killed_between_the_id_and_its_record(deployment: Deployment, elsewhere: Elsewhere) -> None:
    label = "2026-05-04"
    with elsewhere.cluster.holding("accepted", label) as reached:
        run = started(deployment, elsewhere, label)
        client = reached()
        runner = runner_of(client)
        supervisor = runner_of(runner)
        supervisor.suspend()  # records nothing more
    try:
        wait_until(lambda: has_ended(client), timeout=60, why="the id is printed")
    finally:
        supervisor.kill()
    wait_until(lambda: has_ended(runner), timeout=60, why="its runner goes too")
    succeeds_with_one_job(deployment, elsewhere, run, label)


def test_a_worker_that_is_killed_when_the_job_has_ended(deployment: Deployment, elsewhere: Elsewhere) -> None:
    label = "2026-05-05"
    run = started(deployment, elsewhere, label)
    job = elsewhere.cluster.running(label)
    deployment.wait_for_task(run, "backfill", "deferred")
    with elsewhere.cluster.holding("ended", label) as reached:
        elsewhere.cluster.end(job)
        runner_of(reached()).kill()
    succeeds_with_one_job(deployment, elsewhere, run, label)


def test_a_triggerer_that_is_killed_while_the_job_runs(deployment: Deployment, elsewhere: Elsewhere) -> None:
    label = "2026-05-06"
    run = started(deployment, elsewhere, label)
    job = elsewhere.cluster.running(label)
    deployment.wait_for_task(run, "backfill", "deferred")
    deployment.real.server.stop_component(Component.TRIGGERER, grace=0)
    deployment.real.server.start_component(Component.TRIGGERER)
    deployment.real.server.wait_until_healthy([Component.TRIGGERER], timeout=120)
    assert not job.was_cancelled
    succeeds_with_one_job(deployment, elsewhere, run, label)


def test_a_cluster_that_is_silent_for_a_while(deployment: Deployment, elsewhere: Elsewhere) -> None:
    label, cluster = "2026-05-07", elsewhere.cluster
    with cluster.holding("accepted", label) as reached:
        run = started(deployment, elsewhere, label)
        runner = runner_of(reached())
        cluster.is_silent, cluster.refused = True, 0
        runner.kill()
    wait_until(lambda: cluster.refused > 0, timeout=120, why="the next try asks whether there is a job")
    task = deployment.wait_for_task(run, "backfill", "deferred", timeout=120)
    cluster.is_silent = False
    job = cluster.running(label)
    wait_until(lambda: state_of(deployment, run), timeout=180, why="its job is found")
    assert deployment.task(run, "backfill").try_number == task.try_number == 2  # the silence spends no try
    deployment.wait_for_task(run, "backfill", "deferred")
    cluster.is_silent, cluster.refused = True, 0
    cluster.end(job)
    wait_until(lambda: cluster.refused > 2, timeout=180, why="it is asked after again and again")
    cluster.is_silent = False
    succeeds_with_one_job(deployment, elsewhere, run, label)


def state_of(deployment: Deployment, run: DagRun, task_id: str = "backfill") -> str | None:
    """The id of the job in what Airflow keeps of a task."""
    found = airflow_of(deployment).task_state(run.dag_id, run.run_id, task_id=task_id, key=KEY)
    return None if found is None else JobRecord.from_json(found).job_id


def airflow_of(deployment: Deployment) -> AirflowRest:
    server = deployment.real.server
    return AirflowRest(Login(server.url, USER, server.password))


def test_a_clear_ends_the_job_and_starts_another_only_then(deployment: Deployment, elsewhere: Elsewhere) -> None:
    label, cluster = "2026-05-08", elsewhere.cluster
    run = started(deployment, elsewhere, label)
    first = cluster.running(label)
    deployment.wait_for_task(run, "backfill", "deferred")
    clear(deployment, run, "landed")  # another task: the job goes on
    clear(deployment, run, "backfill")
    wait_until(lambda: first.was_cancelled, timeout=120, why="the job is asked to end")
    wait_until(lambda: deployment.task(run, "backfill").try_number == 2, timeout=60, why="the next try has begun")
    deployment.wait_for_task(run, "backfill", "deferred")
    assert len(cluster.of(label)) == 1
    cluster.end(first, "CANCELLED")
    second = wait_until(lambda: cluster.of(label)[1:], timeout=120, why="another job is submitted")[0]
    assert second.token != first.token
    deployment.wait_for_task(run, "backfill", "deferred")
    cluster.end(second)
    assert deployment.end_of(run).state == "success"
    assert len(cluster.of(label)) == 2


def test_a_mark_ends_the_job_and_another_run_waits_for_its_end(deployment: Deployment, elsewhere: Elsewhere) -> None:
    label, cluster = "2026-05-09", elsewhere.cluster
    run = started(deployment, elsewhere, label)
    job = cluster.running(label)
    deployment.real.api.mark_task(deployment.wait_for_task(run, "backfill", "deferred"), "failed")
    wait_until(lambda: job.was_cancelled, timeout=120, why="the job is asked to end")
    assert deployment.end_of(run).state == "failed"
    other = started(deployment, elsewhere, label)
    deployment.wait_for_task(other, "backfill", "deferred", timeout=120)
    assert len(cluster.of(label)) == 1
    cluster.end(job, "CANCELLED")
    second = wait_until(lambda: cluster.of(label)[1:], timeout=180, why="the other run submits its job")[0]
    deployment.wait_for_task(other, "backfill", "deferred")
    cluster.end(second)
    assert deployment.end_of(other).state == "success"


def test_a_job_whose_id_nobody_knows_is_told_of_and_never_submitted_again(
    deployment: Deployment, elsewhere: Elsewhere
) -> None:
    label, cluster = "2026-05-10", elsewhere.cluster
    conf = staging_query("elsewhere.unfindable", airflow={"runner": cluster.runner(finds=False), "retries": 2})
    deployment.deploy(conf)
    try:
        with cluster.holding("accepted", label) as reached:
            run = deployment.real.api.trigger(conf.dag_id, partition_key=label)
            runner_of(reached()).kill()
        assert deployment.end_of(run).state == "failed"
        (job,) = cluster.of(label)
        said = deployment.real.api.log_text(deployment.task(run, "backfill"))
        assert f"by its token {job.token}" in said and "then clear the task" in said
        cluster.end(job, "CANCELLED")
        clear(deployment, run, "backfill")
        second = wait_until(lambda: cluster.of(label)[1:], timeout=120, why="the cleared task submits anew")[0]
        deployment.wait_for_task(run, "backfill", "deferred")
        cluster.end(second)
        deployment.land(conf.table, label)
        assert deployment.end_of(run).state == "success"
    finally:
        deployment.withdraw(conf)


def test_what_is_kept_of_a_task_is_read_through_airflows_api(deployment: Deployment, elsewhere: Elsewhere) -> None:
    label = "2026-05-11"
    run = started(deployment, elsewhere, label)
    job = elsewhere.cluster.running(label)
    deployment.wait_for_task(run, "backfill", "deferred")
    airflow = airflow_of(deployment)
    found = airflow.task_state(run.dag_id, run.run_id, task_id="backfill", key=KEY)
    record = JobRecord.from_json(found)
    assert (record.job_id, record.token, record.is_open) == (job.job_id, job.token, True)
    for dag_id, run_id, task_id, key in (
        (run.dag_id, run.run_id, "backfill", "another/key"),
        (run.dag_id, run.run_id, "landed", KEY),
        (run.dag_id, "no such run", "backfill", KEY),
        ("no_such_dag", run.run_id, "backfill", KEY),
    ):
        assert airflow.task_state(dag_id, run_id, task_id=task_id, key=key) is None
    elsewhere.cluster.end(job)
    assert deployment.end_of(run).state == "success"
    kept = JobRecord.from_json(airflow.task_state(run.dag_id, run.run_id, task_id="backfill", key=KEY))
    assert kept.ended == "succeeded"
    deployment.real.api.request("DELETE", f"/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}")
    assert airflow.task_state(run.dag_id, run.run_id, task_id="backfill", key=KEY) is None
