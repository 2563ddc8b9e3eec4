"""What the embedded engine cannot do is said before any work: the conf, the field, the reason; nothing is written."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import parse_instant
from airflow_chronon.errors import JobRefused
from tests.support.warehouse import DAILY, HOURLY, Warehouse, aggregation, entities, events, group_by, join

AT = parse_instant("2026-06-01T10:00") * 1000
COLUMNS = {
    "user": "INTEGER",
    "ts_ms": "BIGINT",
    "amount": "BIGINT",
    "made": "TIMESTAMP",
    "tags": "VARCHAR[]",
    "word": "VARCHAR",
}
SELECTS = {"user": "user", "amount": "amount", "made": "made", "tags": "tags", "word": "word"}
SUM = aggregation("amount", 7)


@pytest.fixture
def landed(store: Warehouse) -> Warehouse:
    store.land("data.events", COLUMNS, [(1, AT, 5, "2026-06-01 10:00:00", ["a"], "x")], ds="2026-06-01")
    return store


def source(**query: Any) -> dict[str, Any]:
    return events("data.events", **{"selects": SELECTS, **query})


def one(*aggregations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return group_by(source(), aggregations=aggregations or [SUM], **more)


def with_part(**more: Any) -> dict[str, Any]:
    return join(
        events("data.events", selects={"user": "user", "word": "word", "ts": "ts_ms"}), {"groupBy": one()}, **more
    )


CASES = {
    "a timestamp is aggregated": (one(aggregation("made", 3)), r"aggregations\[0\].*made_last.*dates or timestamps"),
    "a list is counted": (one(SUM, aggregation("tags", 6)), r"aggregations\[1\].*tags_count.*lists"),
    "text is summed": (one(aggregation("word", 7)), r"aggregations\[0\].*word_sum.*text, and SUM needs"),
    "k is not a number": (one(aggregation("amount", 15, k="many")), r"aggregations\[0\].*k is 'many'"),
    "no such percentile": (one(aggregation("amount", 12, percentiles="[2]")), r"percentiles is '\[2\]'"),
    "keys are filtered": (one(keyFilter={"events": {}}), "keyFilter"),
    "setups": (group_by(source(setups=["ADD JAR x"]), aggregations=[SUM]), r"sources\[0\].events.query.setups"),
    "a template": (
        group_by(source(wheres=["ds = '{{ ds }}'"]), aggregations=[SUM]),
        r"sources\[0\].events.query.wheres",
    ),
    "a time that is not a number": (
        group_by(source(timeColumn="made"), aggregations=[SUM]),
        r"timeColumn: 'made' gives TIMESTAMP",
    ),
    "a missing table": (
        group_by(events("data.none", selects=SELECTS), aggregations=[SUM]),
        "the table data.none is not there",
    ),
    "another partition column": (
        group_by(source(partitionColumn="dt"), aggregations=[SUM]),
        "no partition column 'dt'",
    ),
    "labels of another grid": (
        group_by(events("data.events", HOURLY, selects=SELECTS), aggregations=[SUM]),
        "not on its grid 1h",
    ),
    "a grid that does not line up": (
        group_by(
            source(partitionInterval={"length": 3, "timeUnit": 0}, partitionOffset={"length": 1, "timeUnit": 0}),
            aggregations=[SUM],
        ),
        "C13",
    ),
    "mixed sources": (
        group_by(source(), entities("data.events", selects=SELECTS), aggregations=[SUM]),
        r"sources\[1\].*mix",
    ),
    "a model": (
        group_by({"modelTransforms": {"metaData": {"name": "m", "outputNamespace": "o"}}}, aggregations=[SUM]),
        "no models",
    ),
    "a derivation that reads a table": (
        one(derivations=[{"name": "x", "expression": "(SELECT max(a) FROM other.table)"}]),
        r"derivations\[0\].*reads tables",
    ),
    "external parts": (with_part(onlineExternalParts=[{"source": {}}]), "onlineExternalParts"),
    "label parts": (with_part(labelParts={"labels": []}), "labelParts"),
    "a part's key is not on the left": (
        join(events("data.events", selects={"who": "user", "ts": "ts_ms"}), {"groupBy": one()}),
        r"joinParts\[0\].groupBy.*no column 'user'",
    ),
    "keys of other types": (
        join(events("data.events", selects={"user": "word", "ts": "ts_ms"}), {"groupBy": one()}),
        r"the key 'user' is INTEGER, the left's 'user' is VARCHAR",
    ),
    "two columns of one name": (
        join(events("data.events", selects={"user": "user", "ts": "ts_ms"}), {"groupBy": one()}, {"groupBy": one()}),
        r"joinParts\[1\].*'user_amount_sum' is there already, from joinParts\[0\]",
    ),
    "entities point in time without mutations": (
        join(
            events("data.events", selects={"user": "user", "ts": "ts_ms"}),
            {"groupBy": group_by(entities("data.events", selects=SELECTS), aggregations=[SUM], accuracy=0)},
        ),
        r"joinParts\[0\].groupBy.sources\[0\].entities.*mutation table",
    ),
    "a bootstrap without keys": (
        with_part(bootstrapParts=[{"table": "data.events", "query": {}}]),
        r"bootstrapParts\[0\].*key",
    ),
}


@pytest.mark.parametrize(("document", "said"), CASES.values(), ids=CASES)
def test_it_is_refused_in_one_sentence_and_nothing_is_written(landed: Warehouse, document: Any, said: str) -> None:
    with pytest.raises(JobRefused, match=said) as error:
        landed.run(document, "2026-06-01", "2026-06-02", spec=DAILY)
    assert str(error.value).startswith(("group_by/team.features.all__1: ", "join/team.training.set__1: "))
    assert "\n" not in str(error.value)
    assert [path.name for path in landed.root.iterdir()] == ["data.events"]


def test_a_mode_that_does_not_exist_is_named(landed: Warehouse) -> None:
    with pytest.raises(JobRefused, match="no mode 'metadata_upload' for GroupBys"):
        landed.run(one(), "2026-06-01", "2026-06-02", mode="metadata_upload")


def test_a_snapshot_that_is_not_there_is_refused_and_makes_no_empty_partition(store: Warehouse) -> None:  # C16
    for day in (2, 4):
        store.land("data.users", {"user": "INTEGER", "tier": "VARCHAR"}, [(1, "gold")], ds=f"2026-06-0{day}")
    users = entities("data.users", selects={"user": "user", "tier": "tier"})
    document = group_by(users, aggregations=None, accuracy=None)
    with pytest.raises(JobRefused, match=r"the snapshot ds=2026-06-03 of data\.users is not there"):
        store.run(document, "2026-06-02", "2026-06-05")
    table = store.run(document, "2026-06-01", "2026-06-03")
    assert [len(store.rows(table, f"2026-06-0{day}")) for day in (1, 2)] == [0, 1]  # before the table's history
