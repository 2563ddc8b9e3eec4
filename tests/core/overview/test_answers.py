"""What the page is told: the same as the commands say of the same partitions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import DAY, HOUR, TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.overview.answers import LETTERS, LiveDag, Zoom, overview, partition_of, timeline_of
from airflow_chronon.core.overview.snapshot import MOST_RANGES, ConfSnapshot, snapshot_of, snapshots_of
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.skip_reasons import Reason, Skip
from airflow_chronon.core.runs.states import KnownRun, State
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import at, dependency, judge, plan_of, staging_query

NOW = at("2026-06-10 05:30")


def hourly(name: str = "t.one__1", **settings: Any) -> ConfPlan:
    return plan_of(staging_query(name, schedule="5 * * * *", interval="1h"), settings=Settings(**settings))


def seen(plan: ConfPlan, first: str, last: str, *holes: str) -> ConfSnapshot:
    """A conf whose table has every hour of a range but for some."""
    starts = set(range(at(first), at(last) + 1, plan.spec.grid.interval)) - set(map(at, holes))
    return snapshot_of(plan).seen_at(StartRanges.of_starts(starts, interval=plan.spec.grid.interval), NOW - 60)


def run(plan: ConfPlan, hour: str, state: str) -> KnownRun:
    return KnownRun(f"scheduled__{hour}", state, True, TimeWindow(at(hour), at(hour) + plan.spec.grid.interval))


def row(conf: ConfSnapshot, dag: LiveDag = LiveDag(), days: int = 3) -> dict[str, Any]:  # noqa: B008 - frozen
    (found,) = overview([conf], lambda conf: dag, days=days, now=NOW)
    return found


def test_every_state_has_a_letter_of_its_own() -> None:
    assert len(set(LETTERS.values())) == len(LETTERS)
    assert set(State) - set(LETTERS) == {State.DONE}  # of jobs, which have no partitions


def test_a_conf_at_a_glance_is_its_lag_and_the_worst_of_each_day() -> None:
    plan = hourly()
    conf = seen(plan, "2026-06-01", "2026-06-10 04:00", "2026-06-09 10:00")
    dag = LiveDag([run(plan, "2026-06-09 10:00", "failed"), run(plan, "2026-06-10 04:00", "success")])
    found = row(conf, dag)
    assert found["cells"] == [
        ["L", 1],
        ["F", 1, 1],
        ["L", 1],
    ]  # one hour of 24: an eighth at least, so that it can be seen
    assert (found["lag"], found["failed"], found["lamp"]) == (HOUR // 2, 1, "bad")
    assert found["next_fire"] == at("2026-06-10 06:05")


@pytest.mark.parametrize(
    ("freshness", "halted", "lamp"),
    [(None, None, "good"), (HOUR, None, "late"), (None, Reason(Skip.PAUSED), "off")],
)
def test_the_lamp_says_whether_someone_has_to_look(freshness: int | None, halted: Reason | None, lamp: str) -> None:
    plan = hourly(**({} if freshness is None else {"freshness": "1h"}))
    conf = seen(plan, "2026-06-01", "2026-06-10 03:00")
    dag = LiveDag([run(plan, "2026-06-10 03:00", "success"), run(plan, "2026-06-10 04:00", "running")], halted)
    now = at("2026-06-10 06:00") if freshness else NOW
    (found,) = overview([conf], lambda conf: dag, days=3, now=now)
    assert found["lamp"] == lamp


def test_a_table_that_nobody_has_seen_is_unknown_and_not_missing() -> None:
    assert row(snapshot_of(hourly()))["lamp"] == "unknown"


def test_partitions_are_told_run_length_encoded_with_their_reasons() -> None:
    plan = hourly()
    conf = seen(plan, "2026-06-01", "2026-06-10 04:00", "2026-06-09 10:00", "2026-06-09 11:00")
    dag = LiveDag([run(plan, "2026-06-10 04:00", "success")])
    window = TimeWindow(at("2026-06-09"), at("2026-06-11"))
    found = timeline_of(conf, dag, window, Zoom.PARTITION, now=NOW)
    assert found["spans"] == [["L", 10], ["S", 2, 0], ["L", 17], ["O", 19]]
    assert found["reasons"] == ["catch-up off"]
    assert found["first"] == at("2026-06-09") and found["format"] == "yyyy-MM-dd-HH-mm"


@pytest.mark.parametrize("zoom", [Zoom.DAY, Zoom.MONTH])
def test_days_and_months_hold_every_partition_once(zoom: Zoom) -> None:
    plan = hourly()
    conf = seen(plan, "2026-04-01", "2026-06-10 04:00", "2026-05-31 23:00", "2026-06-01")
    dag = LiveDag([run(plan, "2026-06-10 04:00", "success")])
    window = TimeWindow(at("2026-05-30 06:00"), at("2026-06-03"))
    cells = timeline_of(conf, dag, window, zoom, now=NOW)["cells"]
    assert sum(count for _, count, _ in cells) == 90
    assert all(sum(letters.values()) == count for _, count, letters in cells)
    if zoom is Zoom.DAY:
        assert [first for first, *_ in cells] == [
            at("2026-05-30 06:00"),
            *(at(f"2026-{day}") for day in ("05-31", "06-01", "06-02")),
        ]
        assert cells[1][2] == {"L": 23, "S": 1}
    else:
        assert [first for first, *_ in cells] == [at("2026-05-30 06:00"), at("2026-06-01")]


def test_one_partition_says_what_it_waits_for_and_who_reads_it() -> None:
    documents = [
        staging_query("t.one__1", schedule="5 * * * *", interval="1h", dependencies=[dependency("vendor.raw", "1h")]),
        staging_query("t.two__1", schedule="@daily", interval="1d", dependencies=[dependency("ns.t_one__1", "1h")]),
    ]
    plans = [verdict.plan for verdict in judge(*documents).values()]
    confs = {}
    for plan in plans:
        assert plan is not None
        confs[plan.dag_id] = (
            seen(plan, "2026-06-01", "2026-06-08")
            if plan.key.endswith("two__1")
            else seen(plan, "2026-06-01", "2026-06-09 20:00")
        )
    one, two = (confs[f"staging_query.t.{name}__1"] for name in ("one", "two"))
    found = partition_of(two, LiveDag([]), at("2026-06-09"), confs, now=NOW)
    (wait,) = found["waits"]
    assert wait["dag_id"] == one.dag_id and len(wait["labels"]) == 24
    assert wait["missing"] == ["2026-06-09-21-00", "2026-06-09-22-00", "2026-06-09-23-00"]
    below = partition_of(one, LiveDag([]), at("2026-06-09 21:00"), confs, now=NOW)
    assert below["readers"] == [{"dag_id": two.dag_id, "key": two.key, "labels": ["2026-06-09"]}]
    (outside,) = below["waits"]
    assert outside["missing"] is None and outside["dag_id"] is None  # nobody here writes it


def test_a_snapshot_survives_being_written_down() -> None:
    conf = seen(hourly(freshness="2h"), "2026-06-01", "2026-06-10 04:00", "2026-06-09 10:00")
    text = json.dumps({conf.dag_id: conf.to_json(), "another": {"of": "a later version"}})
    assert snapshots_of(text) == [conf]


@pytest.mark.parametrize("text", [None, "", "[", "[]", "7", '{"x": 7}', '{"x": {}}'])
def test_what_is_no_snapshot_is_nothing(text: object) -> None:
    assert snapshots_of(text) == []


def test_of_a_table_with_very_many_holes_the_newest_part_is_kept() -> None:
    starts = range(0, (MOST_RANGES + 10) * 2 * DAY, 2 * DAY)
    conf = snapshot_of(plan_of(staging_query())).seen_at(StartRanges.of_starts(starts, interval=DAY), NOW)
    (kept,) = snapshots_of(json.dumps({conf.dag_id: conf.to_json()}))
    assert kept.landed is not None and len(kept.landed.ranges) == MOST_RANGES
    assert kept.landed.ranges[-1].start == starts[-1]
