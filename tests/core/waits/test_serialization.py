"""Schedules and dependencies come back from their JSON (rule 8 of the house: pairs with a round trip)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.calendar.instants import DAY, HOUR
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.grid import LEGAL_INTERVALS, PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.chronon import parse_schedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeSchedule, PartitionedSchedule
from airflow_chronon.core.schedules.serialization import schedule_from_json, schedule_to_json
from airflow_chronon.core.waits.dependencies import Binding, CutOffs, Lookback, TableDependency
from airflow_chronon.core.waits.serialization import dependency_from_json, dependency_to_json

CORPUS = Path(__file__).resolve().parents[2] / "data" / "main"
INSTANTS = st.integers(0, 4_000_000_000)


@st.composite
def specs(draw: st.DrawFn) -> PartitionSpec:
    interval = draw(st.sampled_from(LEGAL_INTERVALS))
    grid = PartitionGrid(interval, draw(st.integers(0, interval // 60 - 1)) * 60)
    return PartitionSpec(grid, partition_format(default_pattern(grid)), draw(st.sampled_from(["ds", "day"])))


@st.composite
def dependencies(draw: st.DrawFn) -> TableDependency:
    grids = specs().map(lambda spec: spec.grid)
    cut = st.builds(CutOffs, st.none() | INSTANTS, st.none() | INSTANTS, st.none() | INSTANTS)
    return TableDependency(
        draw(st.text(min_size=1)),
        draw(st.sampled_from(["", "ds", "event_ts"])),
        draw(st.none() | specs()),
        draw(st.sampled_from(Binding)),
        draw(st.none() | grids),
        draw(st.integers(-DAY, 30 * DAY)),
        draw(st.none() | st.integers(-DAY, 300 * DAY)),
        draw(cut),
        draw(st.booleans()),
        tuple(draw(st.lists(st.text(), max_size=2))),
        draw(st.none() | st.text(min_size=1)),
        tuple(map(PartitionKey, draw(st.lists(st.text(), max_size=2)))),
        draw(st.sampled_from(Lookback)),
    )


@given(dependency=dependencies())
def test_a_dependency_comes_back(dependency):
    text = json.dumps(dependency_to_json(dependency))
    assert dependency_from_json(json.loads(text)) == dependency


@given(
    spec=specs(),
    catch_up=st.builds(
        CatchUp,
        st.booleans(),
        st.none() | st.integers(1, 99),
        st.none() | INSTANTS,
        st.none() | INSTANTS,
        st.none() | INSTANTS,
    ).filter(lambda found: found.start is not None or not found.enabled),  # C29
    crons=st.dictionaries(st.sampled_from(Mode), st.sampled_from(["@daily", "0 6 * * mon", "*/15 * * * *"])),
    newest=st.booleans(),
)
def test_a_schedule_comes_back(spec, catch_up, crons, newest):
    modes = {}
    for mode, text in crons.items():
        cron = parse_schedule(text)
        assert cron is not None
        modes[mode] = ModeSchedule(cron, newest)
    schedule = PartitionedSchedule(
        spec, modes, catch_up, (Mode.BACKFILL, *(mode for mode in modes if mode is not Mode.BACKFILL))
    )
    text = json.dumps(schedule_to_json(schedule))
    back = schedule_from_json(json.loads(text))
    assert back == schedule
    assert list(back.modes) == list(schedule.modes)
    assert json.dumps(schedule_to_json(back)) == text


def test_every_schedule_and_dependency_of_the_corpus_comes_back():
    plans = [each for each in read_conf_root(CORPUS, environ={}).judge().values() if isinstance(each, ConfPlan)]
    assert len(plans) > 50
    for plan in plans:
        assert schedule_from_json(json.loads(json.dumps(schedule_to_json(plan.schedule)))) == plan.schedule
        for found in plan.dependencies.values():
            for dependency in found:
                back = dependency_from_json(json.loads(json.dumps(dependency_to_json(dependency))))
                start = plan.spec.grid.floor(1_780_272_000)
                waits = [list(each.waits(start, start + DAY, grid=plan.spec.grid)) for each in (dependency, back)]
                assert waits[0] == waits[1]


def test_equal_schedules_share_one_object():
    # Airflow builds the timetable of every DAG at every parse
    spec = PartitionSpec(PartitionGrid(HOUR), partition_format("yyyy-MM-dd-HH"))
    data = schedule_to_json(PartitionedSchedule(spec))
    assert schedule_from_json(data) is schedule_from_json(json.loads(json.dumps(data)))


def test_a_schedule_that_was_switched_off_in_its_json_is_an_error():
    spec = PartitionSpec(PartitionGrid(DAY), partition_format("yyyy-MM-dd"))
    data = schedule_to_json(PartitionedSchedule(spec)) | {"modes": {"backfill": ["@never", False]}}
    with pytest.raises(ValueError, match="backfill is off"):
        schedule_from_json(data)
