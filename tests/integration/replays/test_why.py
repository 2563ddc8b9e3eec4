"""``airflow-chronon why`` against a real Airflow: four confs in a row, followed to the root."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_chronon.cli.main import main
from tests.support.confs import dependency
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.replay_lab import Lab, unscheduled

pytestmark = pytest.mark.soak

HOUR = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
LABEL = f"{HOUR:%Y-%m-%d-%H-%M}"
STEPS = ("t.why.a__1", "t.why.b__1", "t.why.c__1", "t.why.d__1")
SOURCE = "vendor.why"


def dag_id(step: str) -> str:
    return f"staging_query.{step}"


@pytest.fixture
def chain(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("AIRFLOW_CONN_CHRONON_AIRFLOW", lab.airflow.server.environment["AIRFLOW_CONN_CHRONON_AIRFLOW"])
    before = SOURCE
    for step in STEPS:
        lab.deploy(unscheduled(step, "1h", dependencies=[dependency(before, "1h")]))
        before = lab.table(step)
    lab.wait_for(*map(dag_id, STEPS))
    return lab


def ask(lab: Lab, step: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The causes from a partition down to its one root."""
    import json

    capsys.readouterr()
    assert main(["why", dag_id(step), LABEL, "--format", "json", "--root", str(lab.airflow.conf_root)]) == 0
    found = json.loads(capsys.readouterr().out)
    path = [found]
    while "because" in path[-1]:
        (below,) = path[-1]["because"]
        path.append(below)
    return path


def test_a_chain_is_followed_to_the_source_the_failure_and_the_work(
    chain: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    api = chain.airflow.api
    first, *_, last = STEPS
    (chain.folder / f"fail {chain.table(first)}").write_text(LABEL)
    for step in STEPS:
        api.trigger(dag_id(step), partition_key=LABEL)

    def path(*states: str) -> list[dict[str, Any]] | None:
        found = ask(chain, last, capsys)
        return found if [each["state"] for each in found] == list(states) else None

    waiting = wait_until(
        lambda: path("waiting", "waiting", "waiting", "waiting", "not landed"), timeout=120, why="all four wait"
    )
    assert [each["of"] for each in waiting] == [*(f"staging_query/{step}" for step in reversed(STEPS)), SOURCE]

    source = chain.airflow.warehouse / SOURCE / f"ds={LABEL}"
    source.mkdir(parents=True)
    (source / "_SUCCESS").touch()
    failed = wait_until(
        lambda: path("waiting", "waiting", "waiting", "failed"), timeout=180, why="the first has failed"
    )
    assert failed[-1]["text"].startswith("backfill failed in try")
    assert failed[-1]["log"], "the last lines of its log are told"

    (chain.folder / f"fail {chain.table(first)}").unlink()
    with chain.holding(chain.table(first)):
        api.trigger(dag_id(first), partition_key=LABEL)

        def at_work() -> bool:
            found = path("waiting", "waiting", "waiting", "running")
            return found is not None and found[-1]["text"].startswith("backfill works since")

        wait_until(at_work, timeout=120, why="the first is at work again")
    wait_until(lambda: path("landed"), timeout=240, why="all have landed")

    api.trigger(dag_id(first), partition_key=LABEL)
    stale = wait_until(lambda: path("landed", "landed", "stale"), timeout=120, why="what read the first is stale")
    assert stale[-1]["text"].startswith(f"{chain.table(first)} {LABEL} was written at ")
    api.trigger(dag_id(STEPS[1]), partition_key=LABEL)
    wait_until(lambda: path("landed", "stale"), timeout=120, why="it was written again, and what read it is stale")
