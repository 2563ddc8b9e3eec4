"""A reconciler whose user lacks a right says so once, however many steps need it (S10)."""

from __future__ import annotations

from dataclasses import replace

from airflow_chronon.airflow_api.errors import NoRights
from airflow_chronon.reconcile.run import failures, outcome_lines
from tests.support.world import World, conf


def test_many_steps_that_lack_one_right_are_one_sentence() -> None:  # S10
    world = World()
    world.deploy(*(conf(f"t.s.n{n}__1") for n in range(4)))
    world.converge()
    for dag_id, dag in world.airflow.dag_records.items():
        world.airflow.dag_records[dag_id] = replace(dag, is_paused=True)

    def refuse(call: str) -> None:
        if call == "unpause":
            raise NoRights(
                "unpausing it", status=403, detail="Forbidden", remedy="", right="edit DAGs", who="the user 'reader'"
            )

    world.airflow.before = refuse
    done = world.reconcile()
    [said] = failures(done.outcome)
    assert "the user 'reader' lacks the right to edit DAGs" in said
    assert said.endswith("3 further steps lack this right.")
    assert [line for line in outcome_lines(done) if line.startswith("FAILED")] == [f"FAILED    {said}"]
    world.airflow.before = lambda call: None
    assert world.reconcile().is_good  # it was tried for each, and is again
