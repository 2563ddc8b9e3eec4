"""Small compiled confs for tests, as the compiler would write them, and what the core makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.confs.documents import ConfType, read_document
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.confs.resolve import ConfPlan, ConfVerdict, resolve
from airflow_chronon.core.confs.tree import ConfTree
from airflow_chronon.core.describe.confs import ConfDescription, wait_json
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.errors import Fault

Document = dict[str, Any]

_UNITS = {"h": 0, "d": 1, "m": 2}


def at(text: str) -> int:
    """The instant of ``2026-06-01`` or ``2026-06-01 04:15``."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def window(text: str | None) -> Document | None:
    """``3h`` as the compiler writes it."""
    if text is None:
        return None
    match = re.fullmatch(r"(-?\d+)([hdm])", text)
    assert match, text
    return {"length": int(match[1]), "timeUnit": _UNITS[match[2]]}


def without_nones(values: Document) -> Document:
    """Unset fields are absent, never null."""
    return {key: value for key, value in values.items() if value is not None}


def meta(
    name: str,
    *,
    schedule: str | None = None,
    online: str | None = None,
    interval: str | None = None,
    offset: str | None = None,
    **more: Any,
) -> Document:
    """``metaData``: ``online`` is an online conf's schedule; ``info``, ``common`` and ``execution`` add keys."""
    info = without_nones(
        {"partitionInterval": window(interval), "partitionOffset": window(offset), **more.pop("info", {})}
    )
    common = more.pop("common", None)
    execution = without_nones(
        {
            "offlineSchedule": schedule,
            "onlineSchedule": online,
            "outputTableInfo": info or None,
            "conf": {"common": common} if common else None,
            **more.pop("execution", {}),
        }
    )
    version = name.rpartition("__")[2] if "__" in name else None
    values = {
        "name": name,
        "version": version,
        "team": name.partition(".")[0],
        "outputNamespace": "ns",
        "executionInfo": execution,
    }
    return without_nones(values | ({"online": 1} if online is not None else {}) | more)


def query(interval: str | None = None, offset: str | None = None, lag: str | None = None, **more: Any) -> Document:
    """A source's query; further fields under the compiler's names."""
    windows = {"partitionInterval": window(interval), "partitionOffset": window(offset), "partitionLag": window(lag)}
    return without_nones({**windows, **more})


def events(
    table: str = "data.events", interval: str | None = None, *, topic: str | None = None, **more: Any
) -> Document:
    cumulative = more.pop("isCumulative", None)
    values = {"table": table, "topic": topic, "isCumulative": cumulative, "query": query(interval, **more)}
    return {"events": without_nones(values)}


def entities(
    table: str = "data.accounts", interval: str | None = None, *, mutations: str | None = None, **more: Any
) -> Document:
    values = {"snapshotTable": table, "mutationTable": mutations, "query": query(interval, **more)}
    return {"entities": without_nones(values)}


def group_by(
    name: str = "t.g.x__1",
    *,
    sources: list[Document] | None = None,
    windows: Iterable[str] | None = None,
    accuracy: int | None = None,
    **of_meta: Any,
) -> Document:
    """A GroupBy; ``windows`` are those of its one aggregation, none at all for an unwindowed one."""
    aggregations = None if windows is None else [without_nones({"windows": [window(text) for text in windows] or None})]
    values = {
        "sources": sources or [events()],
        "aggregations": aggregations,
        "accuracy": accuracy,
        "metaData": meta(name, **of_meta),
    }
    return without_nones(values)


def dependency(
    table: str,
    interval: str | None = "1d",
    *,
    start: str | None = "0d",
    end: str | None = "0d",
    start_cut: str | None = None,
    end_cut: str | None = None,
    **info: Any,
) -> Document:
    """A staging query's table dependency: 1d is what the compiler writes when the author says nothing."""
    offset = info.pop("offset", None)
    about = {"table": table, "partitionInterval": window(interval), "partitionOffset": window(offset), **info}
    offsets = {"startOffset": window(start), "endOffset": window(end), "startCutOff": start_cut, "endCutOff": end_cut}
    return without_nones({"tableInfo": without_nones(about), **offsets})


def staging_query(
    name: str = "t.s.x__1",
    *,
    dependencies: list[Document] | None = None,
    schedule: str | None = "@daily",
    **of_meta: Any,
) -> Document:
    return {
        "query": "SELECT 1",
        "tableDependencies": dependencies or [],
        "metaData": meta(name, schedule=schedule, **of_meta),
    }


def join(
    name: str = "t.j.x__1",
    *,
    left: Document | None = None,
    parts: list[Document] | None = None,
    bootstraps: list[Document] | None = None,
    schedule: str | None = "@daily",
    **of_meta: Any,
) -> Document:
    values = {
        "left": left or events("data.left"),
        "joinParts": [{"groupBy": part} for part in parts or []],
        "bootstrapParts": bootstraps,
        "metaData": meta(name, schedule=schedule, **of_meta),
    }
    return without_nones(values)


def type_of(document: Document) -> ConfType:
    return (
        ConfType.GROUP_BY if "sources" in document else ConfType.JOIN if "left" in document else ConfType.STAGING_QUERY
    )


def conf_of(document: Document) -> Conf:
    kind, name = type_of(document), document["metaData"]["name"]
    return Conf(ConfKey(kind, name), read_document(kind, document), document, f"{kind.value}/{name}")


def judge(*documents: Document, settings: Settings | None = None, branch: str = "main") -> dict[str, ConfVerdict]:
    """The verdicts on a tree of these confs, by ``type/name``."""
    settings = settings or Settings()
    tree = ConfTree([conf_of(document) for document in documents], environment=settings.environment)
    return resolve(tree, settings, branch=branch)


def verdict_on(
    document: Document, *others: Document, settings: Settings | None = None, branch: str = "main"
) -> ConfVerdict:
    """The verdict on the first conf of a tree."""
    return judge(document, *others, settings=settings, branch=branch)[
        f"{type_of(document).value}/{document['metaData']['name']}"
    ]


def plan_of(document: Document, *others: Document, settings: Settings | None = None, branch: str = "main") -> ConfPlan:
    """The plan of the first conf of a tree, which must be good."""
    verdict = verdict_on(document, *others, settings=settings, branch=branch)
    assert isinstance(verdict, ConfPlan), verdict
    return verdict


def faults_of(document: Document, *others: Document, settings: Settings | None = None) -> tuple[Fault, ...]:
    """What the first conf of a tree is rejected for; nothing when it is good."""
    verdict = verdict_on(document, *others, settings=settings)
    return verdict.faults if isinstance(verdict, RejectedConf) else ()


def rules_broken(document: Document, *others: Document, settings: Settings | None = None) -> list[str]:
    return sorted({fault.rule for fault in faults_of(document, *others, settings=settings)})


def runs_of(plan: ConfPlan, start: str, end: str) -> list[Document]:
    """The runs whose fire lies in ``[start, end)``, as ``explain`` prints them."""
    return [ConfDescription(plan).run_json(run) for run in plan.schedule.runs_between(at(start), at(end))]


def waits_of(plan: ConfPlan, label: str) -> list[Document]:
    """What a replay of one partition waits for, as ``explain`` prints it."""
    partition = plan.schedule.partition(plan.spec.start_of(label))
    waits = plan.waits(plan.schedule.replay(partition))
    first_mode = next(iter(waits))
    return [wait_json(wait) for wait in waits[first_mode]]


def labels_waited(plan: ConfPlan, label: str) -> dict[str, list[str]]:
    """Per table, the labels that a replay of one partition waits for."""
    return {wait["table"]: wait["labels"] for wait in waits_of(plan, label)}
