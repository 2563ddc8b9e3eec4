"""Killed anywhere, the next reconcile ends in the same state as an undisturbed one, and no history is lost."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from airflow_chronon.core.plan.actions import Delete
from airflow_chronon.core.records.manifest import manifest_of
from tests.support.world import Killed, World, broken, conf

NAMES = ("a__1", "a__2", "b__1", "c__1")
BRANCHES = ("main", "try")


def id_of(name: str, branch: str) -> str:
    return f"{'' if branch == 'main' else f'{branch}--'}staging_query.t.s.{name}"


def story(world: World) -> None:
    """Some deployed and run; one superseded, one gone, one changed in place."""
    world.deploy(*(conf(f"t.s.{name}") for name in ("a__1", "b__1", "c__1")))
    world.converge()
    for name in ("a__1", "b__1", "c__1"):
        world.fire(id_of(name, "main"), state="success")
    world.deploy(conf("t.s.a__2"), conf("t.s.c__1", schedule="0 7 * * *"))


def end_state(world: World) -> tuple[object, ...]:
    histories = {name: world.history(id_of(name, "main")) for name in NAMES}
    return set(world.airflow.dag_records), world.records(), histories, world.firing


@pytest.mark.parametrize("number", range(40))
def test_a_reconciler_killed_at_any_step_is_made_good_by_the_next(number: int) -> None:
    undisturbed = World()
    story(undisturbed)
    undisturbed.converge()

    world = World()
    story(world)
    calm = world.kill_at(number)
    with contextlib.suppress(Killed):
        for _ in range(5):
            world.parse()
            world.reconcile()
    calm()
    world.converge()
    assert end_state(world) == end_state(undisturbed)


@pytest.mark.parametrize("taken_back", [False, True])
@pytest.mark.parametrize("number", range(10))
def test_a_conf_changed_in_place_has_its_own_record_wherever_the_reconciler_is_killed(
    number: int, taken_back: bool
) -> None:  # C23, C28
    before, after = (conf("t.s.a__1", schedule=f"0 {hour} * * *") for hour in (2, 7))
    world = World()
    world.deploy(before)
    world.converge()
    world.deploy(after)
    world.parse()
    calm = world.kill_at(number)
    with contextlib.suppress(Killed):
        world.reconcile()
    calm()
    world.deploy(before if taken_back else after)
    world.converge()
    (plan,) = world.trees["main"].facts().plans.values()
    assert world.records()[plan.dag_id].manifest == manifest_of(plan)


@settings(max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
class Deployments(RuleBasedStateMachine):
    """Two branches whose trees change and break, and whose confs go, while the reconciler of each is killed at random moments."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.ran: dict[str, set[str]] = {}
        self.broken: dict[str, set[str]] = {branch: set() for branch in BRANCHES}

    @initialize()
    def begin(self) -> None:
        for branch in BRANCHES:
            self.world.deploy(conf("t.s.a__1"), conf("t.s.b__1"), branch=branch)

    @rule(
        branch=st.sampled_from(BRANCHES),
        good=st.sets(st.sampled_from(NAMES)),
        bad=st.sets(st.sampled_from(NAMES)),
        hour=st.sampled_from([2, 7]),
    )
    def change(self, branch: str, good: set[str], bad: set[str], hour: int) -> None:
        named = {name: conf(f"t.s.{name}", schedule=f"0 {hour} * * *") for name in good}
        confs = [broken(f"t.s.{name}") if name in bad else named[name] for name in sorted(good | bad)]
        self.world.deploy(*confs, branch=branch)
        self.broken[branch] = bad

    @rule()
    def parse(self) -> None:
        self.world.parse()

    @rule(name=st.sampled_from(NAMES), branch=st.sampled_from(BRANCHES))
    def fire(self, name: str, branch: str) -> None:
        run = self.world.fire(id_of(name, branch))
        if run is not None:
            self.ran.setdefault(run.dag_id, set()).add(run.run_id)

    @rule()
    def finish(self) -> None:
        self.world.finish()

    @rule(name=st.sampled_from(NAMES), branch=st.sampled_from(BRANCHES))
    def pause(self, name: str, branch: str) -> None:
        if id_of(name, branch) in self.world.airflow.dag_records:
            self.world.airflow.set_paused(id_of(name, branch), paused=True)

    @rule(branch=st.sampled_from(BRANCHES), number=st.integers(0, 40), confirmed=st.booleans())
    def reconcile(self, branch: str, number: int, confirmed: bool) -> None:
        others = {
            dag_id: dag for dag_id, dag in self.world.airflow.dag_records.items() if self._is_other(dag_id, branch)
        }
        present = self.world.trees[branch].facts().ids | {id_of(name, branch) for name in self.broken[branch]}
        before = set(self.world.airflow.dag_records)
        calm = self.world.kill_at(number)
        with contextlib.suppress(Killed):
            done = self.world.reconcile(branch, confirmed=confirmed)
            assert not any(isinstance(action, Delete) and action.dag_id in present for action in done.plan.actions)
        calm()
        after = self.world.airflow.dag_records
        assert {each: after.get(each) for each in others} == others  # never another branch's (C24)
        assert before - set(after) <= before - present  # never a present conf's (C23)

    @precondition(lambda self: all(self.world.trees[branch].confs for branch in BRANCHES))
    @rule()
    def converge(self) -> None:
        for _ in range(2):
            for branch in BRANCHES:
                self.world.parse()
                self.world.converge(branch)
        for branch in BRANCHES:
            facts = self.world.trees[branch].facts()
            assert self.world.firing >= set(facts.plans)
            had = {id_of(name, branch) for name in self.broken[branch]}
            assert self.world.live(branch) <= set(facts.plans) | had
            assert self.world.live(branch) >= set(facts.plans)
            records = self.world.records(branch)
            assert not self.world.retiring(branch)
            assert all(records[dag_id].manifest == manifest_of(plan) for dag_id, plan in facts.plans.items())

    @invariant()
    def no_history_is_lost(self) -> None:
        for dag_id, runs in self.ran.items():
            assert runs <= self.world.history(dag_id)

    @staticmethod
    def _is_other(dag_id: str, branch: str) -> bool:
        return dag_id.startswith("try--") != (branch == "try")


TestDeployments = Deployments.TestCase
