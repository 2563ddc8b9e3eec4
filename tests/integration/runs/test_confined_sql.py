"""SQL of confs on a real Airflow: it reads the warehouse and nothing else, and a slow expression delays nobody (S3)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment

pytestmark = pytest.mark.soak

LABEL = "2026-06-01"
ENDLESS = "(SELECT count(*) FROM range(10000000) a, range(10000000) b, range(10000000) c) > 0"
SECRETS = "(SELECT content FROM read_text('/proc/self/environ'))"


def _with_expression(name: str, expression: str) -> CompiledConf:
    conf = staging_query(f"confined.{name}", reads=f"confined.raw_{name}")
    document = json.loads(json.dumps(conf.document))
    document["tableDependencies"][0]["tableInfo"]["triggerExpr"] = expression
    return CompiledConf(conf.kind, conf.name, document)


LOCAL = {"runner": {"kind": "local"}}
PEEKING = staging_query(
    "confined.peeking",
    airflow=LOCAL,
    query="SELECT content AS v, {{ start_date }} AS ds FROM read_text('/etc/passwd')",
)
TELLING = _with_expression("telling", SECRETS)
SLOW = [_with_expression(f"slow{number}", ENDLESS) for number in range(6)]
VICTIM = staging_query("confined.victim", reads="confined.raw_victim", airflow=LOCAL)


@pytest.fixture(scope="module")
def confined(deployment: Deployment) -> Iterator[Deployment]:
    for conf in (TELLING, *SLOW):
        deployment.land(f"confined.raw_{conf.name.split('.')[-1].removesuffix('__1')}", LABEL)
    deployment.deploy(PEEKING, TELLING, *SLOW, VICTIM)
    yield deployment
    deployment.abandon(PEEKING, TELLING, *SLOW, VICTIM)


def test_a_query_that_reads_a_file_of_the_machine_is_refused_in_one_sentence(confined: Deployment) -> None:
    run = confined.real.api.trigger(PEEKING.dag_id, partition_key=LABEL)
    assert confined.end_of(run).state == "failed"
    log = "\n".join(confined.log(run, "backfill"))
    assert "read_text" in log and "root:" not in log
    assert LABEL not in confined.landed(PEEKING)


def test_an_expression_that_reads_the_environment_fails_its_wait_and_shows_nothing(confined: Deployment) -> None:
    run = confined.real.api.trigger(TELLING.dag_id, partition_key=LABEL)
    assert confined.end_of(run).state == "failed"
    log = "\n".join(confined.log(run, "wait.confined.raw_telling"))
    assert "read_text" in log
    for name in ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__CORE__FERNET_KEY"):
        assert name not in log and confined.real.server.environment[name] not in log


def test_expressions_without_end_delay_no_other_wait(confined: Deployment) -> None:
    api = confined.real.api
    slow = [api.trigger(conf.dag_id, partition_key=LABEL) for conf in SLOW]
    for run in slow:
        [wait] = [task for task in api.tasks(run.dag_id, run.run_id) if task.task_id.startswith("wait.")]
        confined.wait_for_task(run, wait.task_id, "deferred")
    victim = api.trigger(VICTIM.dag_id, partition_key=LABEL)
    confined.wait_for_task(victim, "wait.confined.raw_victim", "deferred")
    confined.land("confined.raw_victim", LABEL)
    assert confined.end_of(victim).state == "success"
