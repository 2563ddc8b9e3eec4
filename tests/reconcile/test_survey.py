"""The survey: every table is looked at, late partitions are told once, and nothing that fails costs another table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.runs.freshness import Freshness
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.reconcile.survey import MOST_CALLS, LatePartition, Survey
from airflow_chronon.state.folder import StateFolder, open_state
from tests.support.confs import at, plan_of, staging_query

NOW = at("2026-06-10 05:30")


class Lab:
    """Some confs, a warehouse and a state folder, and what a survey told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.late: list[LatePartition] = []
        self.seen: dict[str, Freshness] = {}
        self.trouble: list[str] = []
        self.on_late: Callable[[ConfPlan, LatePartition], None] = lambda plan, late: self.late.append(late)

    @property
    def state(self) -> StateFolder:
        return open_state(str(self.folder / "state"), deployment=Deployment("main", "dags"))

    def plan(self, name: str = "t.one__1", *, freshness: str | None = "1h", schedule: str = "5 * * * *") -> ConfPlan:
        settings = Settings(
            freshness=freshness,  # type: ignore[arg-type]
            catalog={"kind": "filesystem", "root": str(self.folder / "warehouse")},  # type: ignore[arg-type]
        )
        return plan_of(staging_query(name, schedule=schedule, interval="1h"), settings=settings)

    def land(self, plan: ConfPlan, *hours: str) -> None:
        for hour in hours:
            folder = self.folder / "warehouse" / plan.table / f"ds={plan.spec.label(at(hour))}"
            folder.mkdir(parents=True)
            (folder / "_SUCCESS").touch()

    def survey(
        self, *plans: ConfPlan, now: int = NOW, most: int | None = None, seconds: float = float("inf")
    ) -> Survey:
        done: list[str] = []
        until = time.monotonic() + seconds
        failed_before = len(self.trouble)

        def seen(plan: ConfPlan, landed: StartRanges, found: Freshness) -> None:
            done.append(plan.dag_id)
            self.seen[plan.dag_id] = found

        survey = Survey(
            self.state,
            now,
            on_seen=seen,
            on_late=lambda plan, late: self.on_late(plan, late),
            trouble=self.trouble.append,
            has_time=lambda: most is None or len(done) + len(self.trouble) - failed_before < most,
            seconds_left=lambda: until - time.monotonic(),
            **({"at_once": 1} if most is not None else {"patience": 0.2}),
        )
        survey.run(plans)
        return survey


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_a_partition_that_becomes_late_is_told_once_with_all_that_someone_needs(lab: Lab) -> None:
    plan = lab.plan()
    lab.land(plan, "2026-06-10 02:00", "2026-06-10 03:00")
    lab.survey(plan)
    assert lab.late == []
    for _ in range(3):
        lab.survey(plan, now=at("2026-06-10 06:00"))
    (late,) = lab.late
    assert (late.conf, late.label, late.late_since) == (plan.key, "2026-06-10-04-00", "2026-06-10T06:00:00Z")
    assert (late.team, late.owner, late.table) == ("t", "t", plan.table)


def test_when_it_lands_it_is_over(lab: Lab) -> None:
    plan = lab.plan()
    lab.land(plan, "2026-06-10 03:00")
    lab.survey(plan)
    lab.survey(plan, now=at("2026-06-10 06:00"))
    lab.land(plan, "2026-06-10 04:00")
    lab.survey(plan, now=at("2026-06-10 06:05"))
    assert lab.seen[plan.dag_id].late == ()
    assert len(lab.late) == 1


def test_a_callback_that_fails_is_called_again_and_costs_no_other_conf(lab: Lab) -> None:
    plan, other = lab.plan(), lab.plan("t.two__1")
    for each in (plan, other):
        lab.land(each, "2026-06-10 03:00")
    lab.survey(plan, other)
    calls: list[str] = []

    def fail_once(plan: ConfPlan, late: LatePartition) -> None:
        calls.append(late.conf)
        if calls.count(other.key) == 1 and late.conf == other.key:
            raise RuntimeError("no pager")

    lab.on_late = fail_once
    for minute in ("06:00", "06:05", "06:10"):
        lab.survey(plan, other, now=at(f"2026-06-10 {minute}"))
    assert sorted(calls) == [plan.key, other.key, other.key]
    assert len(lab.trouble) == 1 and "no pager" in lab.trouble[0]


def test_a_table_that_its_catalog_does_not_tell_of_costs_no_other(lab: Lab) -> None:
    plan, other = lab.plan(), lab.plan("t.two__1")
    lab.land(other, "2026-06-10 03:00")
    folder = lab.folder / "warehouse" / plan.table
    folder.mkdir(parents=True)
    (folder / "data.parquet").touch()
    lab.survey(plan, other)
    assert [*lab.seen] == [other.dag_id]
    assert len(lab.trouble) == 1 and plan.table in lab.trouble[0]


def test_a_table_that_takes_all_the_time_and_tells_nothing_is_not_the_first_again(lab: Lab) -> None:
    plan, other = lab.plan("t.a__1"), lab.plan("t.b__1")
    lab.land(other, "2026-06-10 03:00")
    folder = lab.folder / "warehouse" / plan.table
    folder.mkdir(parents=True)
    (folder / "data.parquet").touch()
    for minute in range(2):
        lab.survey(plan, other, now=NOW + minute * 60, most=1)
    assert len(lab.trouble) == 1 and plan.table in lab.trouble[0]
    assert [*lab.seen] == [other.dag_id]


def test_with_too_little_time_for_all_the_longest_unseen_come_first_and_those_with_freshness_before_all(
    lab: Lab,
) -> None:
    plans = [lab.plan(f"t.c{number}__1", freshness=None) for number in range(4)]
    urgent = lab.plan("t.urgent__1")
    seen = []
    for minute in range(3):
        lab.seen.clear()
        survey = lab.survey(*plans, urgent, now=NOW + minute * 60, most=3)
        seen.append([*lab.seen])
        assert len(survey.unseen) == 2
    assert all(urgent.dag_id == each[0] for each in seen)
    assert {dag_id for each in seen[:2] for dag_id in each} == {plan.dag_id for plan in (*plans, urgent)}


@pytest.fixture
def stuck(mocker: MockerFixture) -> Iterator[set[str]]:
    """Names of tables whose store does not answer before the test is over."""
    tables, over, listed = set[str](), threading.Event(), FilesystemCatalog.list_partitions

    def list_partitions(catalog: FilesystemCatalog, table: str) -> Any:
        if table in tables:
            over.wait()
        return listed(catalog, table)

    mocker.patch.object(FilesystemCatalog, "list_partitions", list_partitions)
    yield tables
    over.set()


def test_tables_that_hang_stall_nobody_and_are_not_the_first_again(lab: Lab, stuck: set[str]) -> None:  # S8
    hanging = [lab.plan(f"t.a{number}__1") for number in range(9)]
    others = [lab.plan(f"t.b{number}__1") for number in range(3)]
    stuck |= {plan.table for plan in hanging}
    lab.survey(*hanging, *others, seconds=3)
    assert {*lab.seen} == {plan.dag_id for plan in others}
    assert len(lab.trouble) == len(hanging)
    assert all("has not ended after" in each and "cannot be told" in each for each in lab.trouble)
    for plan in others:
        lab.land(plan, "2026-06-10 03:00")
    stuck.clear()
    lab.seen.clear()
    lab.survey(*hanging, *others, now=NOW + 60)
    assert {*lab.seen} == {plan.dag_id for plan in (*hanging, *others)}


def test_a_table_that_had_no_time_is_the_first_of_the_next_survey(lab: Lab, stuck: set[str]) -> None:
    slow, other = lab.plan("t.a__1"), lab.plan("t.b__1")
    stuck.add(slow.table)
    survey = lab.survey(slow, other, seconds=0.1)
    assert slow.dag_id in survey.unseen and lab.trouble == []
    stuck.clear()
    lab.seen.clear()
    lab.survey(slow, other, now=NOW + 60, most=1)
    assert [*lab.seen] == [slow.dag_id]


def test_many_with_freshness_leave_the_others_their_turn(lab: Lab) -> None:
    urgent = [lab.plan(f"t.a{number}__1") for number in range(6)]
    plain = [lab.plan(f"t.b{number}__1", freshness=None) for number in range(2)]
    lab.survey(*urgent, *plain, most=4)
    assert {*lab.seen} >= {plan.dag_id for plan in plain}


def test_a_callback_that_hangs_is_called_again_and_costs_no_other_conf(lab: Lab) -> None:
    plan, other = lab.plan("t.a__1"), lab.plan("t.b__1")
    for each in (plan, other):
        lab.land(each, "2026-06-10 03:00")
    lab.survey(plan, other)
    over, told = threading.Event(), list[str]()

    def tell(which: ConfPlan, late: LatePartition) -> None:
        if which.dag_id == plan.dag_id:
            over.wait()
        told.append(late.conf)

    lab.on_late = tell
    lab.survey(plan, other, now=at("2026-06-10 06:00"), seconds=2)
    assert told == [other.key]
    assert len(lab.trouble) == 1 and "its callback has not ended" in lab.trouble[0] and plan.key in lab.trouble[0]
    lab.on_late = lambda which, late: told.append(f"again {late.conf}")
    lab.survey(plan, other, now=at("2026-06-10 06:05"))
    over.set()
    assert f"again {plan.key}" in told and f"again {other.key}" not in told


def test_a_store_that_fails_in_a_way_that_nobody_thought_of_costs_no_other(lab: Lab, mocker: MockerFixture) -> None:
    plan, other = lab.plan("t.a__1"), lab.plan("t.b__1")
    listed = FilesystemCatalog.list_partitions

    def list_partitions(catalog: FilesystemCatalog, table: str) -> Any:
        if table == plan.table:
            raise OSError("no route")
        return listed(catalog, table)

    mocker.patch.object(FilesystemCatalog, "list_partitions", list_partitions)
    lab.survey(plan, other)
    assert [*lab.seen] == [other.dag_id]
    assert len(lab.trouble) == 1 and "OSError: no route" in lab.trouble[0]


def test_of_very_many_late_ones_some_are_told_at_a_time(lab: Lab) -> None:
    plan = lab.plan()
    lab.land(plan, "2026-06-10 03:00")
    lab.survey(plan)
    later = NOW + (MOST_CALLS + 20) * HOUR
    lab.survey(plan, now=later)
    assert len(lab.late) == MOST_CALLS
    lab.survey(plan, now=later)
    assert len({late.label for late in lab.late}) == len(lab.late) > MOST_CALLS


def test_confs_without_a_schedule_are_not_looked_at(lab: Lab) -> None:
    lab.survey(lab.plan(schedule="@never"))
    assert lab.seen == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"staging_query.t.one__1": {"told": 3}}', '{"staging_query.t.one__1": 7}']
)
def test_damage_to_what_was_remembered_costs_nothing_but_what_was_told(lab: Lab, text: str) -> None:  # S9
    plan = lab.plan()
    lab.land(plan, "2026-06-10 03:00")
    lab.survey(plan)
    (file,) = (lab.folder / "state").rglob("freshness.json")
    file.write_text(text)
    lab.survey(plan, now=at("2026-06-10 06:00"))
    lab.survey(plan, now=at("2026-06-10 07:00"))
    assert [late.label for late in lab.late] == ["2026-06-10-05-00"]


def test_a_folder_in_the_place_of_what_is_remembered_is_set_aside(lab: Lab) -> None:  # S9
    plan = lab.plan()
    lab.survey(plan)
    (file,) = (lab.folder / "state").rglob("freshness.json")
    file.unlink()
    file.mkdir()
    lab.survey(plan)
    assert file.is_file()
