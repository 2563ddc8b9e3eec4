"""Which reconciles have Airflow parse the loader files before their interval is over: those that found something changed (C23)."""

from __future__ import annotations

from dataclasses import replace

from airflow_chronon.airflow_api.errors import NoRights
from airflow_chronon.core.plan.actions import ParseSoon
from tests.support.world import ID, ONE, TWO, World, broken, conf, deployed


def from_file(world: World, file: str, *dag_ids: str) -> None:
    """Say which loader file produced DAGs."""
    for dag_id in dag_ids or world.airflow.dag_records:
        world.airflow.dag_records[dag_id] = replace(world.airflow.dag_records[dag_id], file=file)


def parsed(world: World) -> list[str]:
    """The DAGs whose files the next reconcile has parsed."""
    world.airflow.calls.clear()
    world.reconcile()
    return [str(call[1]) for call in world.airflow.calls if call[0] == "parse_soon"]


def settled() -> World:
    world = deployed(ONE, TWO)
    from_file(world, "chronon.py")
    world.reconcile()
    return world


def test_nothing_is_parsed_for_an_unchanged_tree() -> None:
    assert parsed(settled()) == []


def test_a_new_conf_and_a_changed_one_have_the_loader_file_parsed_once() -> None:
    world = settled()
    world.deploy(ONE, TWO, conf("t.new__1"), conf("t.newer__1"))
    assert parsed(world) == [ID]
    assert parsed(world) == []
    world.deploy(ONE, TWO, conf("t.new__1"), conf("t.newer__1"), retries=7)
    assert parsed(world) == [ID]


def test_with_several_loader_files_each_is_parsed() -> None:
    """Which of them a new conf belongs to only the files know."""
    world = settled()
    other = next(dag_id for dag_id in world.airflow.dag_records if dag_id != ID)
    from_file(world, "others.py", other)
    world.deploy(ONE, TWO, conf("t.new__1"))
    assert sorted(parsed(world)) == sorted([ID, other])


def test_each_step_of_a_retirement_that_the_loader_has_a_part_in_has_it_parsed() -> None:
    world = settled()
    world.deploy(TWO)
    other = next(dag_id for dag_id in world.airflow.dag_records if dag_id != ID)
    assert parsed(world) == [ID]  # off
    world.parse()
    assert parsed(world) == [ID]  # archived, so produced no longer
    world.parse()
    assert parsed(world) == []  # deleted
    assert set(world.airflow.dag_records) == {other}


def test_a_conf_that_breaks_and_is_mended_is_seen_soon() -> None:
    world = settled()
    world.deploy(broken("t.s.one__1"), TWO)
    assert len(parsed(world)) == 1
    assert parsed(world) == []
    world.deploy(ONE, TWO)
    assert len(parsed(world)) == 1


def test_a_new_conf_that_is_bad_and_its_end_are_seen_soon() -> None:
    """It has no DAG and no record: what changes is the import error."""
    world = settled()
    for confs, count in (
        ([broken("t.s.bad__1")], 1),
        ([broken("t.s.bad__1")], 0),
        ([broken("t.s.worse__1")], 1),
        ([], 1),
        ([], 0),
    ):
        world.deploy(ONE, TWO, *confs)
        assert len(parsed(world)) == count


def test_a_plan_says_so() -> None:
    world = settled()
    world.deploy(ONE, TWO, conf("t.new__1"))
    assert ParseSoon(ID, "chronon.py") in world.reconcile().plan.actions


def test_without_the_right_to_it_the_rest_is_done_and_the_reconcile_ends_badly() -> None:
    world = settled()

    def refuse(name: str) -> None:
        if name == "parse_soon":
            raise NoRights("parsing", status=403, detail="Forbidden", remedy="", right="edit DAGs", who="the user 'u'")

    world.airflow.before = refuse
    world.deploy(ONE, TWO, conf("t.new__1"))
    done = world.reconcile()
    assert not done.is_good and "staging_query.t.new__1" in world.records()
