"""A job that outlives several of its fires: they wait for their turn, and none is dropped (H12)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from airflow_chronon.core.calendar.instants import parse_instant
from tests.support.integration.deployment import utc_now
from tests.support.integration.job_lab import JobLab
from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import run_reconcile_airflow

pytestmark = pytest.mark.soak
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    with run_reconcile_airflow(tmp_path_factory.mktemp("waiting")) as running:
        yield running


@pytest.mark.parametrize("pending", [64, 2], ids=["wide", "as wide as two runs"])
def test_a_due_fire_waits_for_its_slot(airflow: RealAirflow, pending: int) -> None:
    """Without catch-up too: a busy slot is not an outage, be it the task's or the whole DAG's."""
    lab = JobLab.set_up(airflow, branch=f"wait{pending}")
    lab.write("long", works=85, schedule={"cron_expression": "* * * * *"}, max_pending_runs=pending)
    lab.seen_since(int((utc_now() - 5 * MINUTE).timestamp()))
    lab.reconcile()
    told = lab.wait_for_told("long", 4, timeout=500)
    dates = [datetime.fromtimestamp(parse_instant(line["HOPS_LOGICAL_DATE"]), UTC) for line in told]
    assert {later - earlier for earlier, later in pairwise(dates)} == {MINUTE}
    assert all(one["ended"] <= other["begun"] for one, other in pairwise(told))
    newest = datetime.fromtimestamp(parse_instant(lab.scheduled("long")[-1]), UTC)
    if pending > 2:
        assert newest >= utc_now() - 3 * MINUTE  # each fire has its run, in time, while the work lags behind
    lab.remove("long")
