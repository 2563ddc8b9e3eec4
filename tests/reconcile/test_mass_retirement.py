"""A tree that looks damaged retires nothing until someone confirms it (C23)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.confs.conf import Conf
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.jobs.document import Job
from airflow_chronon.core.plan.actions import Hold
from airflow_chronon.core.plan.facts import TreeState
from tests.support.world import BAD, ID, ONE, TWO, conf, deployed, job, tree


def test_a_version_bump_of_every_conf_is_no_damaged_checkout() -> None:
    world = deployed(*(conf(f"t.s.c{number}__1") for number in range(8)))
    world.deploy(*(conf(f"t.s.c{number}__2") for number in range(8)))
    world.converge()
    assert set(world.airflow.dag_records) == {f"staging_query.t.s.c{number}__2" for number in range(8)}


@pytest.mark.parametrize("state", [TreeState.EMPTY, TreeState.UNREADABLE])
def test_an_empty_or_unreadable_tree_retires_nothing_and_says_what_would_go(state: TreeState) -> None:  # case 29
    world = deployed(ONE, TWO)
    world.trees["main"] = tree(state=state)
    for _ in range(3):
        world.parse()
        done = world.reconcile()
        assert not done.is_good
        (hold,) = [action for action in done.plan.actions if isinstance(action, Hold)]
        assert ID in hold.dag_ids
    assert ID in world.live() and not world.retiring()


def test_jobs_beside_confs_that_are_all_gone_make_no_sound_tree() -> None:  # C23, case 29
    world = deployed(ONE, TWO, job(), job("other"))
    before = set(world.airflow.dag_records)
    world.deploy(job())
    for _ in range(3):
        world.parse()
        done = world.reconcile()
        assert [len(action.dag_ids) for action in done.plan.actions if isinstance(action, Hold)] == [3]
    assert set(world.airflow.dag_records) == before and not world.retiring()


def test_a_job_that_is_gone_from_a_tree_of_jobs_is_retired() -> None:  # C23
    world = deployed(job(), job("other"))
    world.deploy(job())
    world.converge()
    assert set(world.airflow.dag_records) == {"job.etl.hourly"}


@pytest.mark.parametrize("left", [(), (job(),)])
def test_an_empty_tree_is_retired_once_someone_confirms_it(left: tuple[Job, ...]) -> None:
    world = deployed(ONE, TWO, *left)
    world.deploy(*left)
    world.parse()
    world.reconcile(confirmed=True)
    for _ in range(4):
        world.parse()
        world.reconcile()  # the later steps need no confirmation of their own
    assert set(world.airflow.dag_records) == {"job.etl.hourly" for _ in left}


def test_an_unreadable_tree_cannot_be_confirmed() -> None:
    world = deployed(ONE)
    world.trees["main"] = tree(state=TreeState.UNREADABLE)
    world.parse()
    assert not world.reconcile(confirmed=True).is_good
    assert not world.retiring()


def test_a_tree_that_lost_more_than_a_third_waits_for_a_word() -> None:  # case 29
    confs = [conf(f"t.s.c{number}__1") for number in range(12)]
    world = deployed(*confs)
    world.deploy(*confs[5:])
    world.parse()
    done = world.reconcile()
    assert [len(action.dag_ids) for action in done.plan.actions if isinstance(action, Hold)] == [5]
    world.deploy(*confs[4:])  # a third exactly is not more than a third
    world.converge()
    assert len(world.airflow.dag_records) == 8


def test_a_retirement_that_began_goes_on_while_a_later_loss_is_held() -> None:
    confs = [conf(f"t.s.c{number}__1") for number in range(9)]
    world = deployed(*confs)
    world.deploy(*confs[1:])
    world.parse()
    world.reconcile()
    world.deploy(*confs[7:])
    for _ in range(4):
        world.parse()
        assert not world.reconcile().is_good
    assert set(world.airflow.dag_records) == {f"staging_query.t.s.c{number}__1" for number in range(1, 9)}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_conf_counts_as_present(bad: Conf | RejectedConf) -> None:  # C23
    world = deployed(ONE, TWO)
    world.deploy(bad, TWO)
    for _ in range(4):
        world.parse()
        world.reconcile()
    assert ID in world.airflow.dag_records and ID not in world.retiring()
