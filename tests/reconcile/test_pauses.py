"""DAGs that were paused by hand (C25)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.confs.conf import Conf
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.plan.actions import Severity, Unpause
from tests.support.world import BAD, ID, ONE, TWO, broken, conf, deployed


def test_a_paused_dag_is_unpaused_and_reported() -> None:  # C25
    world = deployed(ONE, TWO)
    world.airflow.set_paused(ID, paused=True)
    done = world.reconcile()
    assert [action.dag_id for action in done.outcome.done if isinstance(action, Unpause)] == [ID]
    assert not world.airflow.dag_records[ID].is_paused


def test_a_paused_dag_stays_paused_where_that_is_allowed() -> None:  # C25
    world = deployed(ONE, pause="allow")
    world.airflow.set_paused(ID, paused=True)
    done = world.reconcile()
    assert world.airflow.dag_records[ID].is_paused
    assert [each.severity for each in done.plan.actions if getattr(each, "conf", "") == ID] == [Severity.NOTE]  # type: ignore[union-attr]


@pytest.mark.parametrize("bad", BAD)
def test_a_paused_dag_is_unpaused_when_its_conf_is_bad_since(bad: Conf | RejectedConf) -> None:  # C23, C25
    world = deployed(ONE, TWO)
    run = world.fire(ID)
    assert run is not None
    world.airflow.set_paused(ID, paused=True)
    world.deploy(bad, TWO)
    world.parse()
    done = world.reconcile()
    assert [action.dag_id for action in done.outcome.done if isinstance(action, Unpause)] == [ID]
    world.finish()
    assert world.airflow.run(ID, run.run_id).state == "success"


def test_a_paused_dag_of_a_bad_conf_stays_paused_where_the_conf_allowed_it() -> None:  # C25
    world = deployed(conf("t.s.one__1", customJson='{"airflow": {"pause": "allow"}}'), TWO)
    world.airflow.set_paused(ID, paused=True)
    world.deploy(broken("t.s.one__1"), TWO)
    world.parse()
    plan = world.reconcile().plan
    assert world.airflow.dag_records[ID].is_paused
    assert [each.severity for each in plan.actions if getattr(each, "conf", "") == ID] == [Severity.NOTE]  # type: ignore[union-attr]


def test_a_paused_dag_that_is_to_go_is_unpaused_for_its_last_runs() -> None:
    world = deployed(ONE, TWO)
    world.fire(ID)
    world.airflow.set_paused(ID, paused=True)
    world.deploy(TWO)
    world.converge()
    assert ID not in world.airflow.dag_records
