"""Which labels are replayed, in which stretches, and what upstream of them (C9, C27)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.confs.plan import Plan, good_plans
from airflow_chronon.core.runs.backfill import Replay, Selection, select_starts, with_upstream
from airflow_chronon.core.runs.states import PartitionRow, State
from airflow_chronon.errors import ChrononError
from tests.support.confs import Document, at, dependency, entities, group_by, join, judge, plan_of, query, staging_query

NOW = at("2026-06-10 00:30")


class Landed:
    """Labels by table, as a catalog has them."""

    def __init__(self, **labels: list[str]) -> None:
        self.labels = labels

    def __call__(self, plan: Plan, table: str) -> frozenset[str]:
        return frozenset(self.labels.get(table.replace(".", "_"), ()))


def upstream(documents: list[Document], target: str, labels: list[str], landed: Landed) -> list[tuple[str, list[str]]]:
    """The replays for labels of a conf, in order, by name."""
    plans = {plan.key: plan for plan in good_plans(judge(*documents))}
    plan = next(plan for key, plan in plans.items() if key.partition("/")[2] == target)
    wanted = Replay(plan, tuple(plan.spec.start_of(label) for label in labels))
    found = with_upstream(wanted, plans, landed, now=NOW)
    return [(replay.plan.key.partition("/")[2], list(replay.labels)) for replay in found]


def row(hour: int, state: State, *, landed: bool | None = None) -> PartitionRow:
    plan = plan_of(staging_query(schedule="@never", interval="1h"))
    start = at("2026-06-01") + hour * HOUR
    return PartitionRow(plan.spec.label(start), start, state, landed)


def test_each_selection_takes_what_it_says_and_never_a_partition_whose_run_is_under_way() -> None:
    rows = [
        row(0, State.LANDED, landed=True),
        row(1, State.FAILED, landed=False),
        row(2, State.FAILED, landed=True),
        row(3, State.RUNNING, landed=False),
        row(4, State.QUEUED, landed=False),
        row(5, State.SKIPPED, landed=False),
        row(6, State.MISSING, landed=False),
        row(7, State.STALE, landed=True),
    ]
    hours = {kind: [(s - at("2026-06-01")) // HOUR for s in select_starts(rows, kind)] for kind in Selection}
    assert hours == {
        Selection.MISSING: [1, 5, 6],
        Selection.FAILED: [1, 2],
        Selection.STALE: [7],
        Selection.ALL: [0, 1, 2, 5, 6, 7],
    }


def test_neighbours_form_one_stretch_and_a_gap_parts_two() -> None:
    plan = plan_of(staging_query(schedule="@never", interval="3h", offset="1h"))
    labels = ["2026-06-01-01-00", "2026-06-01-04-00", "2026-06-01-10-00"]
    replay = Replay(plan, tuple(plan.spec.start_of(label) for label in labels))
    assert [list(label_range.labels) for label_range in replay.label_ranges] == [labels[:2], labels[2:]]
    assert list(replay.labels) == labels


RAW = staging_query("t.s.raw__1", schedule="@never", interval="1h")
MIDDLE = staging_query(
    "t.s.middle__1", schedule="@never", interval="3h", offset="1h", dependencies=[dependency("ns.t_s_raw__1", "1h")]
)
LAST = staging_query(
    "t.s.last__1",
    schedule="@never",
    interval="6h",
    offset="4h",
    dependencies=[dependency("ns.t_s_middle__1", "3h", offset="1h")],
)


def test_producers_come_first_each_with_the_labels_of_its_own_grid_that_are_missing() -> None:
    landed = Landed(ns_t_s_raw__1=["2026-06-01-04-00"])
    found = upstream([LAST, MIDDLE, RAW], "t.s.last__1", ["2026-06-01-04-00"], landed)
    assert found == [
        ("t.s.raw__1", [f"2026-06-01-0{hour}-00" for hour in range(5, 10)]),
        ("t.s.middle__1", ["2026-06-01-04-00", "2026-06-01-07-00"]),
        ("t.s.last__1", ["2026-06-01-04-00"]),
    ]


def test_what_has_landed_is_not_replayed_nor_is_anything_behind_it() -> None:
    landed = Landed(ns_t_s_middle__1=["2026-06-01-04-00", "2026-06-01-07-00"])
    found = upstream([LAST, MIDDLE, RAW], "t.s.last__1", ["2026-06-01-04-00"], landed)
    assert found == [("t.s.last__1", ["2026-06-01-04-00"])]


def test_a_producer_that_two_consumers_share_is_replayed_once_before_both() -> None:
    left = staging_query(
        "t.s.left__1", schedule="@never", interval="1h", dependencies=[dependency("ns.t_s_raw__1", "1h")]
    )
    right = staging_query(
        "t.s.right__1", schedule="@never", interval="1h", dependencies=[dependency("ns.t_s_raw__1", "1h")]
    )
    both = staging_query(
        "t.s.both__1",
        schedule="@never",
        interval="1h",
        dependencies=[dependency("ns.t_s_left__1", "1h"), dependency("ns.t_s_right__1", "1h")],
    )
    found = upstream([both, right, left, RAW], "t.s.both__1", ["2026-06-01-04-00"], Landed())
    names = [name for name, _ in found]
    assert names[0] == "t.s.raw__1"
    assert sorted(names[1:3]) == ["t.s.left__1", "t.s.right__1"]
    assert names[3:] == ["t.s.both__1"]
    assert all(labels == ["2026-06-01-04-00"] for _, labels in found)


def test_a_required_lookback_is_filled_but_never_before_the_first_landed_label() -> None:  # C17
    daily = staging_query("t.s.days__1")
    rolling = staging_query(
        "t.s.rolling__1", schedule="@never", dependencies=[dependency("ns.t_s_days__1", start="4d")]
    )
    landed = Landed(ns_t_s_days__1=["2026-06-05", "2026-06-08"])
    found = upstream([rolling, daily], "t.s.rolling__1", ["2026-06-09"], landed)
    assert found == [("t.s.days__1", ["2026-06-06", "2026-06-07", "2026-06-09"]), ("t.s.rolling__1", ["2026-06-09"])]


def test_a_join_gets_the_snapshots_of_its_parts() -> None:  # C21
    accounts = staging_query("t.s.accounts__1")
    part = group_by("t.g.part__1", sources=[entities("ns.t_s_accounts__1")], windows=["7d"], schedule="@daily")
    left = {"events": {"table": "ns.t_s_raw__1", "query": query("1h")}}
    whole = join("t.j.whole__1", left=left, parts=[part], schedule="@never", interval="1h")
    found = upstream([whole, part, accounts, RAW], "t.j.whole__1", ["2026-06-09-03-00"], Landed())
    assert found[-1] == ("t.j.whole__1", ["2026-06-09-03-00"])
    assert ("t.s.accounts__1", ["2026-06-08"]) in found
    assert ("t.s.raw__1", ["2026-06-09-03-00"]) in found


def test_a_conf_that_reads_its_own_past_does_not_pull_that_in() -> None:
    own = staging_query(
        "t.s.own__1", schedule="@never", dependencies=[dependency("ns.t_s_own__1", start="1d", end="1d")]
    )
    assert upstream([own], "t.s.own__1", ["2026-06-08"], Landed()) == [("t.s.own__1", ["2026-06-08"])]


def test_a_needed_partition_that_has_not_closed_is_refused_by_name() -> None:
    daily = staging_query("t.s.days__1")
    ahead = staging_query(
        "t.s.ahead__1", schedule="@never", dependencies=[dependency("ns.t_s_days__1", start="0d", end="-1d")]
    )
    with pytest.raises(ChrononError, match=r"2026-06-09 needs 2026-06-10 of staging_query/t\.s\.days__1.*not closed"):
        upstream([ahead, daily], "t.s.ahead__1", ["2026-06-09"], Landed())


def test_confs_that_read_each_others_earlier_days_are_followed_no_further_back_than_was_asked() -> None:  # C15
    def reads(name: str, other: str) -> Document:
        earlier = dependency(f"ns.t_s_{other}__1", start="1d", end="1d")
        return staging_query(f"t.s.{name}__1", dependencies=[earlier])

    found = upstream([reads("a", "b"), reads("b", "a")], "t.s.a__1", ["2026-06-03", "2026-06-05"], Landed())
    assert found == [
        ("t.s.b__1", ["2026-06-02", "2026-06-04"]),
        ("t.s.a__1", ["2026-06-03", "2026-06-05"]),
    ]
