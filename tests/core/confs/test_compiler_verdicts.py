"""What the real compiler lets pass or refuses, and what the rules say of it: stricter where they differ.

One row per doubtful definition that was tried with the real compiler (zipline-ai 1.28.0) and names a schedule, an
interval, an offset or an alignment. A definition that the compiler cannot write at all (``1w``, a negative duration)
stands here as whatever a hand-made conf could say instead.
"""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.errors import Rejected
from tests.support.confs import Document, dependency, entities, events, group_by, join, rules_broken, staging_query

OK = ""  # the rules that it breaks, apart by spaces


def hourly(schedule: str) -> Document:
    """A GroupBy over an hourly source."""
    return group_by(sources=[events(interval="1h")], schedule=schedule)


def minutely(**of: Any) -> Document:
    """A GroupBy over a source that lines up with any grid in whole minutes."""
    return group_by(sources=[events(interval="1m")], **of)


SCHEDULES = [
    ("0 */5 * * *", "C2"),
    ("0 */2 * * MON", "C2"),
    ("*/45 * * * *", "C2"),
    ("*/7 * * * *", "C2"),
    ("0 9,17 * * *", "C2"),
    ("0 0,12 1 * *", "C2"),
    ("@hourly", "C1"),
    ("@weekly", "C1"),
    ("@monthly", "C1"),
    ("@once", "C1"),
    ("not a cron", "C1"),
    ("61 * * * *", "C1"),
    ("0 0 * * * *", "C1"),  # the compiler ignores a sixth field
    ("0 * * * * 30", "C1"),
    ("0 */24 * * *", OK),
    ("*/60 * * * *", OK),
    ("0 0-23 * * *", OK),
    ("0 * * * 0-6", OK),
    ("0 * 1-31 * *", OK),
    ("0 * ? * *", OK),
    ("0 0 * ? * * *", "C1"),
    ("0 0 L * *", OK),
    ("0 6 * * MON#1", OK),
    ("H * * * *", "C1"),
    ("", OK),
    ("none", OK),
    ("NULL", OK),
    ("@Never", OK),
    ("@NEVER", OK),
    (" @never ", OK),
    ("*/15 9-17 * * *", "C2"),
    ("0 1-23/2 * * *", OK),
    ("0 0 31 2 *", "C1"),  # the compiler takes it, although it never fires
    ("R * * * *", "C1"),  # the compiler takes it, although it fires at random
]


@pytest.mark.parametrize(
    ("schedule", "rule"), [pytest.param(*row, id=f"offline_schedule={row[0]!r}") for row in SCHEDULES]
)
def test_a_schedule(schedule: str, rule: str) -> None:
    assert rules_broken(hourly(schedule)) == rule.split()


INTERVALS = [
    *[(text, "C4") for text in ("45m", "90m", "5h", "7h", "2d", "7d", "0h", "0d", "16m", "9m", "48m", "36m", "-3h")],
    *[(text, OK) for text in ("24h", "1440m", "1m", "12h", "3h")],
]


@pytest.mark.parametrize(
    ("interval", "rule"), [pytest.param(*row, id=f"partition_interval={row[0]!r}, no schedule") for row in INTERVALS]
)
def test_an_output_interval(interval: str, rule: str) -> None:
    assert rules_broken(minutely(interval=interval)) == rule.split()


@pytest.mark.parametrize("text", ["1w", "3", "1.5h", "3 h", "3H"])
def test_a_duration_that_is_no_window_cannot_stand_in_a_conf(text: str) -> None:
    assert rules_broken_by_shape(group_by(info={"partitionInterval": text})) == ["input"]


def rules_broken_by_shape(document: Document) -> list[str]:
    try:
        return rules_broken(document)
    except Rejected as error:
        return [fault.rule for fault in error.faults]


GRIDS_AND_SCHEDULES = [
    ("partition_interval=3h & '0 * * * *'", minutely(interval="3h", schedule="0 * * * *"), "C6"),
    ("partition_interval=1h & '@daily'", minutely(interval="1h", schedule="@daily"), "C6"),
    ("partition_interval=1h & '0 6 * * MON'", minutely(interval="1h", schedule="0 6 * * MON"), "C6"),
    ("partition_interval=1h & '@never'", minutely(interval="1h", schedule="@never"), OK),
    ("partition_interval=1d & '0 */3 * * *'", minutely(interval="1d", schedule="0 */3 * * *"), "C6"),
    ("partition_interval=60m & '0 * * * *'", minutely(interval="60m", schedule="0 * * * *"), OK),
    ("partition_interval=3h partition_offset='3h'", minutely(interval="3h", offset="3h"), "C5"),
    ("partition_interval=3h partition_offset='4h'", minutely(interval="3h", offset="4h"), "C5"),
    ("partition_interval=3h partition_offset='180m'", minutely(interval="3h", offset="180m"), "C5"),
    ("partition_interval=3h partition_offset='2h'", minutely(interval="3h", offset="2h"), OK),
    ("partition_interval=3h partition_offset='-1h'", minutely(interval="3h", offset="-1h"), "C5"),
    ("partition_interval=3h partition_offset='0h'", minutely(interval="3h", offset="0h"), OK),
    ("partition_interval=3h partition_offset='0d'", minutely(interval="3h", offset="0d"), OK),
    ("partition_interval=3h partition_offset='30m'", minutely(interval="3h", offset="30m"), OK),
    ("partition_interval=3h partition_offset='1h'", minutely(interval="3h", offset="1h"), OK),
    ("partition_offset=24h alone", minutely(offset="24h"), "C5"),
    ("partition_offset=2h alone & '@daily'", minutely(offset="2h", schedule="@daily"), OK),
    (
        "partition_offset=2h alone & '0 1 * * *' (fires before the boundary)",
        minutely(offset="2h", schedule="0 1 * * *"),
        OK,
    ),
    ("partition_offset=W(-1,HOURS) interval 3h", minutely(interval="3h", offset="-1h"), "C5"),
    ("partition_offset=3h with '0 * * * *' inferred 1h", minutely(offset="3h", schedule="0 * * * *"), "C5"),
]

SOURCES: list[tuple[str, dict[str, Any], str | None, str]] = [
    # the compiler checks no source grid and no alignment at all
    (
        "Query(partition_interval='3h', partition_offset='3h') (source offset = interval)",
        {"interval": "3h", "offset": "3h"},
        "3h",
        "C5",
    ),
    ("Query(partition_interval='45m')", {"interval": "45m"}, "3h", "C4"),
    ("Query(partition_interval='3h', partition_offset='0h')", {"interval": "3h", "offset": "0h"}, "3h", OK),
    ("Query(partition_offset='1h') without interval", {"offset": "1h"}, "3h", "C14"),
    ("Query(partition_interval='7d')", {"interval": "7d"}, None, "C4"),
    ("1h output over 1d source", {"interval": "1d"}, "1h", "C13"),
    ("1h output over source with no declared grid", {}, "1h", "C14"),
    ("1h output over time_partitioned source with no grid", {"timePartitioned": 1}, "1h", OK),
    ("daily output over 3h@1h source (midnight cuts 22-01)", {"interval": "3h", "offset": "1h"}, None, "C13"),
]

THREE_AT_ONE: dict[str, Any] = {"schedule": "0 1-22/3 * * *", "interval": "3h", "offset": "1h"}
SIX_AT_TWO: dict[str, Any] = {"schedule": "0 2-20/6 * * *", "interval": "6h", "offset": "2h"}

ALIGNMENT = [
    *[(case, group_by(sources=[events(**query)], interval=interval), rule) for case, query, interval, rule in SOURCES],
    (
        "documented misaligned example: 6h@2h over 3h@1h",
        group_by(sources=[events(interval="3h", offset="1h")], **SIX_AT_TWO),
        "C13",
    ),
    ("1d@2h output over source with no declared grid", group_by(offset="2h"), "C14"),
    (
        "StagingQuery hourly, dependency without interval",
        staging_query(schedule="0 * * * *", dependencies=[dependency("a.b", None)]),
        "C14",
    ),
    ("StagingQuery hourly, dependency dict only", staging_query(schedule="0 * * * *"), OK),
    ("StagingQuery offset deprecated", staging_query(dependencies=[dependency("a.b", start="2d", end="2d")]), OK),
    ("StagingQuery negative end_offset", staging_query(dependencies=[dependency("a.b", end="-1d")]), OK),
    ("StagingQuery start_offset < end_offset", staging_query(dependencies=[dependency("a.b", end="5d")]), OK),
    (
        "StagingQuery TableDependency(partition_interval='3h', partition_offset='0h')",
        staging_query(dependencies=[dependency("a.b", "3h", offset="0h")]),
        OK,
    ),
    (
        "StagingQuery 6h@2h dep 3h@1h (misaligned)",
        staging_query(
            schedule="@never", interval="6h", offset="2h", dependencies=[dependency("a.b", "3h", offset="1h")]
        ),
        "C13",
    ),
    (
        "StagingQuery 6h@2h with the compiler's default @daily",
        staging_query(interval="6h", offset="2h", dependencies=[dependency("a.b", "6h", offset="2h")]),
        "C6",
    ),
    (
        "StagingQuery end_offset beyond start_cutoff garbage dates",
        staging_query(dependencies=[dependency("a.b", start=None, start_cut="not-a-date", end_cut="20240101")]),
        "C16",
    ),
    (
        "Join hourly left 3h@1h snapshot right part (unaligned right)",
        join(
            schedule="0 * * * *",
            left=events(interval="1h"),
            parts=[group_by(sources=[events(interval="1h")], **THREE_AT_ONE)],
        ),
        OK,
    ),
    ("Join 3h over left with no grid", join(schedule="0 */3 * * *", left=events()), "C14"),
    ("Join 3h over left declared 6h (left coarser)", join(schedule="0 */3 * * *", left=events(interval="6h")), "C13"),
    (
        "training_set of the source document: a Join's default @daily over partition_interval='3h'",
        join(left=events(interval="3h"), interval="3h"),
        "C6",
    ),
    (
        "online=True sub-daily, online_schedule different",
        minutely(schedule="0 * * * *", online="0 */2 * * *"),
        "C10 C6",
    ),
    (
        "online=True sub-daily, online_schedule at another phase",
        minutely(schedule="0 * * * *", online="5 * * * *"),
        "C10",
    ),
    ("online=True sub-daily, online_schedule same", minutely(schedule="0 * * * *", online="0 * * * *"), OK),
    ("online=True, interval 3h, no offline_schedule", minutely(interval="3h", online="@daily"), "C6"),
    (
        "online=True, interval 3h, no offline_schedule, online_schedule='@daily'",
        minutely(interval="3h", online="@daily"),
        "C6",
    ),
    (
        "online=True, daily, online_schedule='0 * * * *' (sub-daily online over daily grid)",
        minutely(schedule="@daily", online="0 * * * *"),
        "C6",
    ),
    ("online=True, daily, online_schedule='0 */5 * * *'", minutely(schedule="@daily", online="0 */5 * * *"), "C2"),
    ("online=False, online_schedule='@never'", group_by(schedule="@daily"), OK),
    (
        "SNAPSHOT window 360m on 3h grid",
        group_by(sources=[events(interval="3h")], windows=["360m"], accuracy=1, interval="3h"),
        OK,
    ),
    (
        "SNAPSHOT window 1d on 1d@2h grid",
        group_by(sources=[events(interval="1h")], windows=["1d"], accuracy=1, offset="2h"),
        OK,
    ),
    ("Team executionInfo: hourly schedule, conf says nothing", minutely(schedule="0 * * * *"), OK),
    ("Team executionInfo: hourly schedule '0 */5', conf says nothing", group_by(schedule="0 */5 * * *"), "C2"),
    ("Team executionInfo: grid 45m", minutely(interval="45m"), "C4"),
    ("Team executionInfo: a daily cron on an inherited 2h grid", minutely(interval="2h", schedule="0 2 * * *"), "C6"),
    ("1d@2h snapshots over midnight days", group_by(sources=[entities(interval="1d")], offset="2h"), "C13"),
]


@pytest.mark.parametrize(
    ("document", "rule"), [pytest.param(doc, rule, id=case) for case, doc, rule in GRIDS_AND_SCHEDULES + ALIGNMENT]
)
def test_a_definition(document: Document, rule: str) -> None:
    assert rules_broken(document) == rule.split()


PRODUCER = staging_query("t.s.a__1", **THREE_AT_ONE)
HOURLY = staging_query("t.s.a__1", schedule="0 * * * *")
JOIN = join("t.j.j__1", schedule="0 * * * *", left=events(interval="1h"))


def reader(table: str, declared: str | None = "1d", **of: Any) -> Document:
    return staging_query("t.s.b__1", dependencies=[dependency(table, declared)], **of)


PRODUCED = [
    (
        "Online join with sub-daily GroupBy without schedule",
        join(schedule="@daily", online="@daily", parts=[group_by("t.g.a__1", interval="3h")]),
        [group_by("t.g.a__1", sources=[events(interval="1h")], interval="3h")],
        OK,  # the part has no upload to wait for; the Join itself is fine
    ),
    (
        "Online join with sub-daily GroupBy @never",
        join(schedule="@daily", online="@daily", parts=[group_by("t.g.a__1", interval="3h", schedule="@never")]),
        [group_by("t.g.a__1", sources=[events(interval="1h")], interval="3h", schedule="@never")],
        OK,
    ),
    (
        "Consumer string-builds a sub-daily producer's table (same namespace)",
        group_by(sources=[events("ns.t_s_a__1")]),
        [HOURLY],
        OK,
    ),
    (
        "Consumer string-builds join derived table (same namespace)",
        group_by(sources=[events("ns.t_j_j__1__derived")]),
        [JOIN],
        OK,
    ),
    (
        "TableDependency string-builds sub-daily producer (dep interval defaults to 1d)",
        reader("ns.t_s_a__1"),
        [HOURLY],
        OK,
    ),
    (
        "Sub-daily consumer over a daily producer's .table",
        reader("ns.t_s_a__1", None, schedule="0 * * * *"),
        [staging_query("t.s.a__1")],
        "C13",
    ),
    (
        "Misaligned Chronon producer/consumer through .table: 6h@2h over 3h@1h",
        reader("ns.t_s_a__1", **SIX_AT_TWO),
        [PRODUCER],
        "C13",
    ),
    (
        "Cyclic StagingQuery chain by table strings",
        reader("ns.t_s_a__1"),
        [staging_query("t.s.a__1", dependencies=[dependency("ns.t_s_b__1")])],
        "C15",
    ),
]


@pytest.mark.parametrize(
    ("document", "others", "rule"), [pytest.param(doc, others, rule, id=case) for case, doc, others, rule in PRODUCED]
)
def test_a_reader_of_a_produced_table(document: Document, others: list[Document], rule: str) -> None:
    assert rules_broken(document, *others) == rule.split()
