"""Queued runs that Airflow never starts: those of cancelled backfills that someone cleared."""

from __future__ import annotations

from dataclasses import replace

from airflow_chronon.airflow_api.records import BackfillRecord, RunRecord
from airflow_chronon.core.plan.actions import Keep
from airflow_chronon.core.plan.explain import explain_plan
from tests.support.confs import at
from tests.support.world import ID, ONE, TWO, World, deployed

DAY_ONE, DAY_FIVE = at("2026-06-01"), at("2026-06-05")
QUEUED = RunRecord(ID, "backfill__1", "backfill", "queued", "2026-06-01", DAY_ONE)


def cancelled(world: World) -> None:
    """A backfill of one day was cancelled, and its run cleared."""
    world.airflow.run_records.append(QUEUED)
    world.airflow.backfill_records.append(BackfillRecord(1, ID, DAY_ONE, DAY_ONE, is_paused=True, completed=DAY_ONE))


def test_they_are_ended_so_that_nobody_waits_for_them() -> None:
    world = deployed(ONE)
    cancelled(world)
    other = replace(QUEUED, run_id="backfill__2", partition_key="2026-06-05", partition_date=DAY_FIVE)
    world.airflow.run_records += [other, replace(QUEUED, dag_id="not ours")]
    done = world.reconcile()
    assert done.is_good
    why = "since it was cleared after its backfill was cancelled"
    assert f"end       {ID}: 1 run queued for ever, {why}" in explain_plan(done.plan)
    ended, waiting, foreign = world.airflow.run_records
    assert ended.state == "failed" and ended.note == f"Ended by a test: it could never start, {why}."
    assert waiting.state == foreign.state == "queued"
    assert all(isinstance(each, Keep) for each in world.reconcile().plan.actions)


def test_a_conf_with_such_a_run_retires() -> None:
    world = deployed(ONE, TWO)
    cancelled(world)
    world.deploy(TWO)
    for _ in range(6):  # nobody finishes what never starts
        world.parse()
        world.reconcile()
    assert ID not in world.airflow.dag_records
