"""A flip to catch-up on a real Airflow: exactly the partitions that were missed (H10, H11, H13)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from airflow_api import wait_until

from airflow_chronon.conf_root import read_conf_root
from airflow_chronon.core.instants import DAY, iso
from airflow_chronon.core.resolve import ConfPlan
from tests.integration.real_airflow import RealAirflow
from tests.integration.reconcile_lab import Deployment, run_reconcile_airflow


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    with run_reconcile_airflow(tmp_path_factory.mktemp("replays")) as running:
        yield running


@pytest.mark.parametrize(
    ("name", "conf", "days", "cap"),
    [
        pytest.param(
            "three__1", {"schedule": "15 1-22/3 * * *", "interval": "3h", "offset": "1h"}, 2, 6, id="3h@1h, capped"
        ),
        pytest.param("weekly__1", {"schedule": "0 6 * * MON"}, 24, None, id="weekly, from the start"),
    ],
)
def test_a_flip_replays_what_was_missed_and_nothing_else(
    airflow: RealAirflow, name: str, conf: dict[str, object], days: int, cap: int | None
) -> None:
    here = Deployment.beside(airflow, branch=f"flip-{name.partition('__')[0]}")
    start = iso((int(time.time()) // DAY - days) * DAY)
    fast: dict[str, object] = {"enabled": True, "start_date": start, "runner": {"kind": "command", "argv": ["true"]}}
    here.write(f"t.{name}", settings=fast, **conf)
    dag_id = f"{here.branch}--staging_query.t.{name}"
    here.wait_for(dag_id)
    assert here.reconcile().returncode == 0
    wait_until(lambda: airflow.api.runs(dag_id), timeout=240, why="the newest partition has its run")
    (newest,) = airflow.api.runs(dag_id)
    assert newest.run_type == "scheduled" and newest.partition_key is not None

    here.write(f"t.{name}", settings={**fast, "catchup": True, "max_catchup_runs": cap}, **conf)
    root = read_conf_root(here.root, environ={}, warehouse="warehouse")
    (plan,) = (verdict for verdict in root.judge().values() if isinstance(verdict, ConfPlan))
    expected = missed(plan, newest.partition_key, cap)
    assert expected
    here.reconciled_until(
        lambda: {run.partition_key for run in airflow.api.runs(dag_id)} >= set(expected), why="what was missed has runs"
    )
    here.reconciled_until(lambda: here.state().journal()[dag_id].owed is None, why="nothing is owed any more")
    keys = sorted(run.partition_key or "" for run in airflow.api.runs(dag_id) if run.run_type != "scheduled")
    assert keys == sorted(expected)


def missed(plan: ConfPlan, newest: str, cap: int | None) -> list[str]:
    """The labels of every fire between the start and the newest run's, by the schedule itself."""
    first = plan.runs.first_start
    assert first is not None
    fires, run = [], plan.runs.run_after(first)
    while run is not None and plan.runs.key_of(run) != newest:
        fires.append(run)
        run = plan.runs.run_after(run.end)
    kept = fires if cap is None else fires[-cap:]
    return [label for each in kept for label in plan.spec.labels(each.window.start, each.window.end)]
