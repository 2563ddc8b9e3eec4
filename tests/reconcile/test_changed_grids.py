"""A grid that changed under the same version is reported until it is taken back (C22)."""

from __future__ import annotations

from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET, contract_key
from tests.support.confs import at
from tests.support.world import ID, TWO, conf, deployed


def test_a_changed_grid_is_reported_until_it_is_taken_back() -> None:  # C22
    world = deployed(conf("t.s.one__1", interval="3h", schedule="0 */3 * * *"))
    world.airflow.states[CONTRACTS_ASSET, contract_key(ID)] = "3h"
    world.deploy(conf("t.s.one__1", interval="1h", schedule="0 * * * *"))
    for _ in range(2):
        world.parse()
        done = world.reconcile()
        assert [finding.fault.rule for finding in done.plan.findings] == ["C22"]
    world.deploy(conf("t.s.one__1", interval="3h", schedule="0 */3 * * *"))
    world.converge()


def test_a_conf_that_is_back_on_another_grid_is_reported_until_it_is_taken_back() -> None:  # C22, H16
    three_hours = conf("t.s.one__1", interval="3h", schedule="0 */3 * * *")
    world = deployed(three_hours, TWO)
    world.airflow.states[CONTRACTS_ASSET, contract_key(ID)] = "3h"
    world.deploy(TWO)
    world.converge()
    assert ID not in world.records()
    world.deploy(conf("t.s.one__1", interval="1h", schedule="0 * * * *"), TWO)
    for _ in range(3):
        world.parse()
        done = world.reconcile()
        assert [finding.fault.rule for finding in done.plan.findings] == ["C22"]
        world.now += 600
    assert not done.outcome.done  # nothing new to remember
    world.deploy(three_hours, TWO)
    world.converge()
    assert world.records()[ID].grid == "3h"


def test_a_grid_may_change_before_anything_was_written() -> None:  # C22
    world = deployed(conf("t.s.one__1", interval="3h", schedule="0 */3 * * *"))
    world.deploy(conf("t.s.one__1", interval="1h", schedule="0 * * * *"))
    world.converge()
    assert world.records()[ID].grid == "1h"


def test_a_changed_schedule_on_the_same_grid_is_fine() -> None:  # C22
    world = deployed(conf("t.s.one__1", schedule="0 2 * * *"))
    world.now += 600
    world.deploy(conf("t.s.one__1", schedule="0 3 * * *"))
    world.converge()
    assert [revision.since - at("2026-06-10") for revision in world.records()[ID].revisions] == [0, 600]
