"""Random trees: a handful of real confs with random changes, legal and illegal alike."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

Document = dict[str, Any]
Tree = dict[str, Document]  #: by path below the tree, such as ``joins/checkout/training.daily_join__1``

FOLDERS = ("group_bys", "joins", "staging_queries")

SCHEDULES = (
    *("@daily", "@never", "none", " @DAILY ", "", "0 * * * *", "15 * * * *", "0 */3 * * *", "15 1-22/3 * * *"),
    *("0 4-22/6 * * *", "*/15 * * * *", "5/15 * * * *", "0 */2 * * *", "0 */4 * * *", "0 0,12 * * *", "30 11,23 * * *"),
    *("0 2 * * *", "59 23 * * *", "0 6 * * MON", "0 6 1 * *", "0 6 1,15 * MON", "0 6 */2 * 1-5", "0 6 L * *"),
    *("0 6 * * MON#1", "0 6 * jan,jun *", "0 6 * 6 *", "0 */5 * * *", "0 */2 * * MON", "@hourly", "0 0 31 2 *"),
    *("0 0 * * * *", "not a cron", "61 * * * *", "0 */24 * * *", "0 0-23 * * *", "0 * 1-31 * *", "0 6 1-31 * MON"),
)
MINUTES_, HOURS, DAYS = 2, 0, 1
INTERVALS = ((15, MINUTES_), (30, MINUTES_), (1, HOURS), (60, MINUTES_), (2, HOURS), (3, HOURS), (4, HOURS), (6, HOURS))
INTERVALS += ((8, HOURS), (12, HOURS), (1, DAYS), (24, HOURS), (1440, MINUTES_), (45, MINUTES_), (5, HOURS), (7, DAYS))
OFFSETS = ((0, HOURS), (1, HOURS), (2, HOURS), (30, MINUTES_), (4, HOURS), (15, MINUTES_), (3, HOURS))
LAGS = ((0, DAYS), (1, DAYS), (2, DAYS), (3, HOURS), (6, HOURS), (90, MINUTES_), (1, HOURS), (-1, DAYS), (30, DAYS))
FORMATS = (
    "yyyy-MM-dd",
    "yyyyMMdd",
    "yyyy-MM-dd-HH-mm",
    "yyyy/MM/dd HH:mm",
    "yyyyMMddHH",
    "yyyy-MM-dd'T'HH:mm:ss",
    "yy-M-d-H-m",
)
FORMATS += ("dd.MM.yyyy HH:mm", "yyyy-MM", "MMM dd yyyy", "yyyy-DDD", "'d='yyyy-MM-dd")
CUT_OFFS = (
    "2026-06-02",
    "20260603",
    "2026-06-02-06-00",
    "2026-05-01",
    "2026-07-01",
    "2020-01-01",
    "not-a-date",
    "2026-06-03T00:00",
)
COLUMNS = ("ds", "dt", "event_ts", "hr")
SUBS = (["system=mobile"], ["a=1/b=2", "a=2"], [])


def read_tree(root: Path) -> Tree:
    """The confs of a compiled tree."""
    return {
        str(path.relative_to(root)): json.loads(path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    }


def write_tree(tree: Tree, root: Path) -> None:
    for name, document in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), encoding="utf-8")


def random_tree(source: Tree, random: Random, *, size: int = 8, changes: int = 10) -> Tree:
    """Some confs of ``source``, changed at random; the same ``random`` gives the same tree."""
    names = random.sample(sorted(source), size)
    tree = {name: copy.deepcopy(source[name]) for name in names}
    tables = [_table(document) for document in tree.values()]
    for _ in range(random.randint(1, changes)):
        document = tree[random.choice(names)]
        random.choice(_CHANGES)(document, random, tables)
    return tree


def queries_of(node: Any) -> Iterator[Document]:
    """Every source (events, entities, join source) of a conf, nested parts included."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("events", "entities", "joinSource") and isinstance(value, dict):
                yield value
            yield from queries_of(value)
    elif isinstance(node, list):
        for item in node:
            yield from queries_of(item)


def _table(document: Document) -> str:
    meta = document["metaData"]
    return f"{meta['outputNamespace']}.{meta['name'].replace('.', '_')}"


def _execution(document: Document) -> Document:
    execution: Document = document["metaData"].setdefault("executionInfo", {})
    return execution


def _window(choices: tuple[tuple[int, int], ...], random: Random) -> Document | None:
    picked = random.choice((*choices, None))
    return None if picked is None else {"length": picked[0], "timeUnit": picked[1]}


def _set(node: Document, key: str, value: Any) -> None:
    if value is None:
        node.pop(key, None)
    else:
        node[key] = value


def _schedule(document: Document, random: Random, _: list[str]) -> None:
    key = random.choice(("offlineSchedule", "offlineSchedule", "onlineSchedule"))
    _set(_execution(document), key, random.choice((*SCHEDULES, None)))


def _daily_online(document: Document, random: Random, _: list[str]) -> None:
    document["metaData"]["online"] = 1
    execution = _execution(document)
    execution.pop("outputTableInfo", None)
    execution["offlineSchedule"] = random.choice(("@daily", "0 6 * * MON", "0 6 1 * *", "@never"))
    execution["onlineSchedule"] = random.choice(("@daily", "0 2 * * *", "0 7 * * MON", "30 23 * * *"))


def _sub_daily(document: Document, random: Random, _: list[str]) -> None:
    schedule, interval, offset = random.choice(
        [
            ("15 1-22/3 * * *", 3, 1),
            ("0 */3 * * *", 3, 0),
            ("0 * * * *", 1, 0),
            ("0 4-22/6 * * *", 6, 4),
            ("0 2-20/6 * * *", 6, 2),
        ]
    )
    execution = _execution(document)
    execution["offlineSchedule"] = schedule
    execution.pop("onlineSchedule", None)
    execution["outputTableInfo"] = {"partitionInterval": {"length": interval, "timeUnit": HOURS}}
    execution["outputTableInfo"]["partitionOffset"] = {"length": offset, "timeUnit": HOURS}
    for source in queries_of(document):
        if random.random() < 0.8:
            query = source.setdefault("query", {})
            query["partitionInterval"] = {"length": random.choice((1, 1, 3)), "timeUnit": HOURS}


def _grid(document: Document, random: Random, _: list[str]) -> None:
    info = _execution(document).setdefault("outputTableInfo", {})
    field = random.choice(("partitionInterval", "partitionOffset", "partitionFormat", "partitionColumn"))
    _grid_field(info, field, random)


def _grid_field(info: Document, field: str, random: Random) -> None:
    values: dict[str, Callable[[], Any]] = {
        "partitionInterval": lambda: _window(INTERVALS, random),
        "partitionOffset": lambda: _window(OFFSETS, random),
        "partitionFormat": lambda: random.choice((*FORMATS, None)),
        "partitionColumn": lambda: random.choice((*COLUMNS, None)),
        "partitionLag": lambda: _window(LAGS, random),
        "timePartitioned": lambda: random.choice((1, 0, None)),
        "startPartition": lambda: random.choice((*CUT_OFFS, None)),
        "endPartition": lambda: random.choice((*CUT_OFFS, None)),
        "triggerExpr": lambda: random.choice(("max(ds)", None, None)),
        "subPartitionsToWaitFor": lambda: random.choice((*SUBS, None)),
    }
    _set(info, field, values[field]())


_QUERY_FIELDS = (
    "partitionInterval",
    "partitionOffset",
    "partitionFormat",
    "partitionColumn",
    "partitionLag",
    "timePartitioned",
)
_QUERY_FIELDS += (
    "startPartition",
    "endPartition",
    "triggerExpr",
    "subPartitionsToWaitFor",
    "partitionLag",
    "endPartition",
)


def _query(document: Document, random: Random, _: list[str]) -> None:
    if sources := list(queries_of(document)):
        _grid_field(random.choice(sources).setdefault("query", {}), random.choice(_QUERY_FIELDS), random)


def _any_table(random: Random, tables: list[str]) -> str:
    table = random.choice((*tables, *tables, "vendor.events", "vendor.sessions/system=mobile"))
    table += random.choice(("", "", "", "__derived", "__upload", "/region=eu"))
    namespace, _, bare = table.partition(".")
    return f"{random.choice((namespace, namespace, 'checkout_features', 'growth_features', 'risk_features'))}.{bare}"


def _source_table(document: Document, random: Random, tables: list[str]) -> None:
    for source in queries_of(document):
        for key in ("table", "snapshotTable", "mutationTable"):
            if key in source and random.random() < 0.6:
                source[key] = _any_table(random, tables)


def _source_kind(document: Document, random: Random, _: list[str]) -> None:
    sources = [s for s in queries_of(document) if "join" not in s]
    if not sources:
        return
    source = random.choice(sources)
    if "table" in source:
        _set(source, "topic", random.choice(("kafka://t", None)))
        _set(source, "isCumulative", random.choice((1, None)))
    else:
        _set(source, "mutationTable", random.choice(("vendor.mutations", None)))
        _set(source, "mutationTopic", random.choice(("kafka://m", None)))


def _left(document: Document, random: Random, _: list[str]) -> None:
    left = document.get("left")
    if left and "events" in left:
        document["left"] = {
            "entities": {"snapshotTable": left["events"]["table"], "query": left["events"].get("query", {})}
        }
    elif left and "entities" in left:
        document["left"] = {
            "events": {"table": left["entities"]["snapshotTable"], "query": left["entities"].get("query", {})}
        }


def _group_by(document: Document, random: Random, _: list[str]) -> None:
    parts = [part["groupBy"] for part in document.get("joinParts", ())] + ([document] if "sources" in document else [])
    if not parts:
        return
    part = random.choice(parts)
    _set(part, "accuracy", random.choice((0, 1, None)))
    windows = [
        {"length": n, "timeUnit": unit}
        for n, unit in random.sample(((1, DAYS), (7, DAYS), (6, HOURS), (90, MINUTES_)), 2)
    ]
    _set(
        part,
        "aggregations",
        random.choice(([{"windows": windows}], [{"windows": windows}, {}], [], None, [{"windows": windows[:1]}])),
    )


def _bootstrap(document: Document, random: Random, tables: list[str]) -> None:
    if "left" in document:
        query: Document = {}
        for field in random.sample(_QUERY_FIELDS, 2):
            _grid_field(query, field, random)
        document["bootstrapParts"] = [{"table": _any_table(random, tables), "query": query}]


def _dependency(document: Document, random: Random, tables: list[str]) -> None:
    if "query" not in document:
        return
    entry: Document = {"tableInfo": {"table": _any_table(random, tables)}}
    for field in random.sample(_QUERY_FIELDS[:6], 2):
        if field != "partitionLag":
            _grid_field(entry["tableInfo"], field, random)
    entry["tableInfo"].setdefault("partitionInterval", {"length": 1, "timeUnit": random.choice((HOURS, DAYS))})
    _set(entry["tableInfo"], "isCumulative", random.choice((1, None, None)))
    for key in ("startOffset", "endOffset"):
        _set(entry, key, _window(LAGS, random))
    for key in ("startCutOff", "endCutOff"):
        _set(entry, key, random.choice((*CUT_OFFS, None, None, None)))
    kept = document.get("tableDependencies") or []
    document["tableDependencies"] = [*kept[: random.randint(0, len(kept))], entry]


def _meta(document: Document, random: Random, _: list[str]) -> None:
    meta, execution = document["metaData"], _execution(document)
    key = random.choice(("online", "environments", "historicalBackfill", "outputNamespace", "column", "format"))
    if key == "online":
        _set(meta, "online", random.choice((0, 1, None)))
    elif key == "environments":
        _set(meta, "environments", random.choice(([0], [1], [0, 1], None, [])))
    elif key == "historicalBackfill":
        _set(execution, key, random.choice((0, 1, None)))
    elif key == "outputNamespace":
        meta["outputNamespace"] = random.choice(("checkout_features", "growth_features", "risk_features", "elsewhere"))
    else:
        common = execution.setdefault("conf", {}).setdefault("common", {})
        choices = COLUMNS if key == "column" else FORMATS
        _set(common, f"spark.chronon.partition.{key}", random.choice((*choices, None)))


_CHANGES = (
    *(
        _schedule,
        _daily_online,
        _sub_daily,
        _grid,
        _query,
        _query,
        _query,
        _source_table,
        _source_kind,
        _left,
        _group_by,
    ),
    *(_bootstrap, _dependency, _dependency, _meta),
)
