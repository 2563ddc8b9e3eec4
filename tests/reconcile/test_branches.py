"""Branches and bundles side by side: neither touches the other's (C24)."""

from __future__ import annotations

from dataclasses import replace

from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.reconcile.run import reconcile
from tests.support.world import BUNDLE, ID, ONE, TWO, conf, deployed


def test_branches_run_side_by_side_and_one_is_dropped_without_the_other() -> None:  # C24
    world = deployed(ONE, TWO)
    world.deploy(conf("t.s.one__2"), TWO, branch="try-v2")
    for _ in range(3):
        world.parse()
        world.reconcile("main")
        world.reconcile("try-v2")
    assert world.live("main") == {ID, "staging_query.t.s.two__1"}
    assert world.live("try-v2") == {"try-v2--staging_query.t.s.one__2", "try-v2--staging_query.t.s.two__1"}
    before = [dag for dag in world.airflow.dag_records.values() if "branch:main" in dag.tags]
    world.deploy(branch="try-v2")
    world.parse()
    world.reconcile("try-v2", confirmed=True)
    for _ in range(3):
        world.parse()
        world.reconcile("try-v2")
    assert list(world.airflow.dag_records.values()) == before


def test_dags_of_another_bundle_or_without_tags_are_not_touched() -> None:  # C24
    world = deployed(ONE)
    stranger = replace(
        world.airflow.dag_records[ID], dag_id="staging_query.t.s.else__1", bundle="another", is_stale=True
    )
    plain = replace(stranger, dag_id="etl", tags=frozenset({"chronon"}), bundle="dags-folder")
    world.airflow.dag_records |= {stranger.dag_id: stranger, plain.dag_id: plain}
    for _ in range(3):
        world.reconcile()
    assert {stranger.dag_id, plain.dag_id} <= set(world.airflow.dag_records)


def test_a_conf_that_moved_to_another_bundle_is_let_go_and_its_dag_left_alone() -> None:  # C24
    world = deployed(ONE, TWO)
    world.deploy(TWO)
    world.parse()
    theirs = replace(world.airflow.dag_records[ID], bundle="another", tags=frozenset({"chronon", "branch:main"}))
    world.airflow.dag_records[ID] = theirs
    world.airflow.run_records.append(RunRecord(ID, "theirs", "scheduled", "running"))
    for _ in range(3):
        done = world.reconcile()
    assert done.plan.is_up_to_date
    assert ID not in world.records()
    assert world.state().archives(ID) == ()  # what there is belongs to the other deployment now
    assert world.airflow.dag_records[ID] == theirs and world.airflow.run(ID, "theirs").state == "running"


def test_a_conf_that_moved_while_it_drained_is_let_go() -> None:  # C24
    world = deployed(ONE, TWO)
    world.fire(ID)
    world.deploy(TWO)
    world.parse()
    world.reconcile()
    world.airflow.dag_records[ID] = replace(world.airflow.dag_records[ID], bundle="another")
    world.reconcile()
    assert world.reconcile().plan.is_up_to_date
    assert set(world.records()) == {"staging_query.t.s.two__1"}


def test_what_a_merged_branch_left_is_listed() -> None:  # C24
    world = deployed(ONE)
    world.deploy(TWO, branch="merged")
    world.parse()
    world.reconcile("merged")
    del world.trees["merged"]
    world.parse()
    reports = [action for action in world.reconcile().plan.actions if getattr(action, "conf", "") == "branch merged"]
    assert "--branch merged --retire-branch" in str(reports)


def test_a_branch_that_is_given_up_goes_with_its_runs_and_its_tables_are_free() -> None:  # C24
    world = deployed(ONE)
    world.deploy(TWO, branch="merged")
    world.parse()
    world.reconcile("merged")
    run = world.fire("merged--staging_query.t.s.two__1")
    assert run is not None
    del world.trees["merged"]
    world.parse()
    place = replace(world.place(), deployment=Deployment("merged", BUNDLE, given_up=True), state=world.state("merged"))
    for _ in range(2):  # the first stops the run, which nothing could finish
        assert reconcile(place, by="a test", now=world.now).is_good
        world.finish()
    assert set(world.airflow.dag_records) == {ID}
    state = world.state("merged")
    assert state.dag_ids() == frozenset()
    (name,) = state.archives("merged--staging_query.t.s.two__1")
    assert [line["state"] for line in state.read_archive(name) or () if line["kind"] == "run"] == ["failed"]


def test_a_branch_that_a_file_still_produces_is_not_dropped() -> None:  # C24
    world = deployed(ONE)
    world.deploy(TWO, branch="alive")
    world.parse()
    world.reconcile("alive")
    place = replace(world.place(), deployment=Deployment("alive", BUNDLE, given_up=True), state=world.state("alive"))
    for _ in range(3):
        world.parse()
        outcome = reconcile(place, by="a test", now=world.now)
    assert "drop the branch's bundle first" in str(outcome.plan)
    assert world.live("alive") == {"alive--staging_query.t.s.two__1"}
