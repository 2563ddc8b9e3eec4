"""A damaged record concerns its own DAG only (S9); so does whatever else goes wrong with one DAG while it is planned."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from airflow_chronon.core.plan.actions import Deploy, RememberBad, Report, SetAside, Severity
from airflow_chronon.core.plan.build import build_plan
from airflow_chronon.reconcile.gather import gather
from tests.support.world import ID, ONE, THREE, TWO, Killed, World, broken, deployed, job


def damage(world: World, dag_id: str) -> None:
    world.files.contents[f"dags-folder/main/records/{dag_id}.json"] = b"{"


def errors(world: World) -> list[str]:
    """The DAGs that a reconcile reports an error of."""
    done = world.reconcile()
    return [each.conf for each in done.plan.actions if isinstance(each, Report) and each.severity is Severity.ERROR]


def test_that_of_a_conf_that_is_there_is_reported_kept_and_written_anew() -> None:
    world = deployed(ONE, TWO)
    before = world.records()
    damage(world, ID)
    world.now += 3600
    assert errors(world) == [ID]
    after = world.records()
    assert after.keys() == before.keys() and after[ID].manifest == before[ID].manifest
    assert after[ID].first_seen == world.now
    assert world.files.contents[f"dags-folder/main/damaged/{ID}.json"] == b"{"
    assert world.reconcile().plan.is_up_to_date


def test_that_of_a_conf_that_is_gone_is_set_aside_and_holds_up_nothing() -> None:
    world = deployed(ONE, TWO, THREE)
    run = world.fire(ID)
    assert run is not None
    world.deploy(THREE)
    damage(world, ID)
    world.parse()
    done = world.reconcile()
    assert SetAside(ID) in done.outcome.done and not done.outcome.failed
    world.converge()
    assert set(world.airflow.dag_records) == {"staging_query.t.s.three__1"}
    assert world.history(ID) == {run.run_id}


def test_that_of_a_conf_that_is_bad_stays_where_it_is() -> None:
    world = deployed(ONE, TWO)
    damage(world, ID)
    world.deploy(broken("t.s.one__1"), TWO)
    for _ in range(2):
        world.parse()
        assert errors(world) == [ID]
    assert world.files.contents[f"dags-folder/main/records/{ID}.json"] == b"{"


def test_that_of_what_a_guard_holds_back_stays_where_it_is() -> None:
    world = deployed(ONE, TWO)
    damage(world, ID)
    world.deploy()
    world.parse()
    done = world.reconcile()
    assert {type(action) for action in done.outcome.done} <= {RememberBad}  # that the tree looks damaged
    assert ID in world.state().read_records().damaged


def test_a_job_whose_record_was_damaged_counts_as_new() -> None:  # H14
    world = deployed(job())
    damage(world, "job.etl.hourly")
    world.now += 3600
    assert errors(world) == ["job.etl.hourly"]
    assert world.records()["job.etl.hourly"].active_since == world.now


@pytest.mark.parametrize("number", range(6))
def test_a_reconciler_killed_on_the_way_is_made_good_by_the_next(number: int) -> None:
    world = deployed(ONE, TWO, THREE)
    damage(world, ID)
    damage(world, "staging_query.t.s.two__1")
    world.deploy(ONE, THREE)
    world.parse()
    calm = world.kill_at(number)
    with suppress(Killed):
        world.reconcile()
    calm()
    world.converge()
    assert set(world.records()) == {ID, "staging_query.t.s.three__1"} == set(world.airflow.dag_records)


def test_a_conf_that_cannot_be_planned_costs_no_other() -> None:
    world = World()
    world.deploy(ONE, TWO)
    facts = gather(world.place(), now=world.now)
    odd: Any = None
    plans = {**facts.tree.plans, ID: replace(facts.tree.plans[ID], tags=odd)}
    plan = build_plan(replace(facts, tree=replace(facts.tree, plans=plans)), now=world.now)
    assert [each.dag_id for each in plan.actions if isinstance(each, Deploy)] == ["staging_query.t.s.two__1"]
    (report,) = plan.findings
    assert isinstance(report, Report) and report.conf == ID and "cannot be planned" in report.fault.message


class Odd(dict[str, Any]):
    """A document that nobody can write down."""

    def items(self) -> Any:
        raise RuntimeError("nobody foresaw this")


def test_a_conf_that_raises_anything_is_one_finding_and_the_others_are_deployed() -> None:  # S1
    world = World()
    odd = replace(TWO, raw={"metaData": {1, 2}, "bytes": b"\xff"})
    world.deploy(ONE, odd, job("first"), replace(THREE, raw=Odd(a=1)))
    done = world.reconcile()
    said = [each.conf for _, each in done.outcome.failed]
    assert said == ["staging_query.t.s.three__1", "staging_query.t.s.two__1"] and not done.is_good
    assert set(world.records()) == {ID, "job.etl.first"}
