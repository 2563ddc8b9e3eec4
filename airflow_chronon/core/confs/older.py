"""The older dialect of Chronon, translated at the door: what reads confs knows one dialect (D1 to D4).

A conf of ``production/`` keeps its schedule in ``metaData.offlineSchedule`` and says of its tables in ``metaData.dependencies``
what its sources leave out: the partition column, sub-partitions, a lag. The translation puts both where the newer dialect has
them. It leaves what has the wrong shape alone: the reader of documents names it.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from airflow_chronon.core.confs.documents import ConfType, DependencySpec, TimeUnit, unquoted

DEPENDENCIES = "metaData.dependencies"
_NAMESPACE = "default"  #: Hive's, where neither the conf nor its team names one
_DAILY = "@daily"
_NEVER = "@never"
_A_DAY = {"length": 1, "timeUnit": TimeUnit.DAYS.value}
_OWN_NAMESPACE = re.compile(
    r"^\{\{\s*db\s*\}\}(?=\.)"
)  #: the compiler leaves it where a Join's table was not known yet
_SHIFT = re.compile(r"macros\.ds_add\(\s*ds\s*,\s*([+-]?\d{1,6})\s*\)")


class Translation(NamedTuple):
    """A conf as the newer dialect would have it."""

    document: Any
    specs: tuple[DependencySpec, ...] = ()  #: what it waits for beside its sources


class _Hint(NamedTuple):
    """What a dependency says of a table beside the sources that read it."""

    column: str
    lag_days: int
    sub: list[str]


@dataclass
class _Hints:
    """The dependencies of one conf, by table."""

    of: dict[str, _Hint] = field(default_factory=dict)

    def tell(self, source: Any) -> None:
        """Put what is known of the tables of a source into its query."""
        for kind, table_fields in _TABLES.items():
            found = _mapping(_mapping(source).get(kind))
            tables = [found[name] for name in table_fields if isinstance(found.get(name), str)]
            hint = self.of.get(_name_of(tables[0])) if tables else None
            if hint is None:
                continue
            query = found.setdefault("query", {})
            if not isinstance(query, dict):
                continue
            if hint.column not in ("", "ds"):
                query.setdefault("partitionColumn", hint.column)
            if hint.lag_days:
                query["partitionLag"] = {"length": hint.lag_days, "timeUnit": TimeUnit.DAYS.value}
            if hint.sub and "/" not in tables[0]:
                query["subPartitionsToWaitFor"] = hint.sub


#: The fields in which each kind of source names its tables, the one that is waited for first.
_TABLES = {"events": ("table",), "entities": ("snapshotTable", "mutationTable")}


def translated(conf_type: ConfType, raw: Any) -> Translation:
    """The newer dialect's form of a conf of the older one. ``raw`` stays as it is."""
    if not isinstance(raw, dict) or not isinstance(raw.get("metaData"), dict):
        return Translation(raw)
    conf = copy.deepcopy(raw)
    meta = conf["metaData"]
    _give_schedules(conf_type, conf, meta)
    specs = tuple(_specs(meta))
    if conf_type is ConfType.STAGING_QUERY:
        return Translation(conf, specs)
    hints = _hints(specs)
    for source in _sources(conf):
        hints.tell(source)
        _give_namespace(source, meta["outputNamespace"])
    for part in _parts(conf):
        own = _mapping(part.get("metaData"))
        own.setdefault("outputNamespace", meta["outputNamespace"])
        both = _Hints({**hints.of, **_hints(_specs(own)).of})
        for source in _list(part.get("sources")):
            both.tell(source)
            _give_namespace(source, own.get("outputNamespace"))
    known = {*_tables_read(conf), *(_in(table, meta["outputNamespace"]) for table in _joins_read(conf))}
    return Translation(
        conf, tuple(spec._replace(fits_no_source=True) for spec in specs if _name_of(spec.text) not in known)
    )


def _give_schedules(conf_type: ConfType, conf: dict[str, Any], meta: dict[str, Any]) -> None:
    """The schedules, the grid of days and the namespace, where the newer dialect has them (D2, D3)."""
    schedule = meta.get("offlineSchedule", _DAILY)
    is_group_by = conf_type is ConfType.GROUP_BY
    execution: dict[str, Any] = {
        "offlineSchedule": schedule if not is_group_by or conf.get("backfillStartDate") else _NEVER,
        "outputTableInfo": {"partitionInterval": dict(_A_DAY)},
    }
    if meta.get("online") in (1, True, "1"):
        execution["onlineSchedule"] = schedule
    if conf_type is ConfType.JOIN:
        conf["useLongNames"] = 1  # columns are called after the GroupBy, never after its keys
    if conf_type is ConfType.JOIN and meta.get("historicalBackfill") is not None:
        execution["historicalBackfill"] = meta["historicalBackfill"]
    of_modes = meta.get("modeToEnvMap")
    if isinstance(of_modes, dict):
        execution["env"] = {"modeEnvironments": of_modes}
    meta["executionInfo"] = execution
    meta.setdefault("outputNamespace", _NAMESPACE)
    meta.pop("version", None)  # the tail of a name is never one, and nothing else says so


def _give_namespace(source: Any, namespace: Any) -> None:
    """The namespace of whoever reads it to a Join that is read, and to what that reads, where they name none."""
    join = _mapping(_mapping(_mapping(source).get("joinSource")).get("join"))
    for conf in (join, *_parts(join)):
        meta = conf.get("metaData")
        if isinstance(meta, dict):
            meta.setdefault("outputNamespace", namespace)
            for below in (*_sources(conf), *_list(conf.get("sources"))):
                _give_namespace(below, meta["outputNamespace"])


def _specs(meta: Mapping[str, Any]) -> Iterator[DependencySpec]:
    """The dependencies of a conf: JSON in a text, or the spec alone."""
    for text in _list(meta.get("dependencies")):
        if not isinstance(text, str):
            yield DependencySpec(repr(text)[:200])
            continue
        try:
            entry = json.loads(text) if text.lstrip().startswith("{") else None
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, dict) and isinstance(entry.get("spec"), str):
            start, end = (entry.get(name) if isinstance(entry.get(name), str) else None for name in ("start", "end"))
            yield DependencySpec(_filled(entry["spec"], meta), start, end)
        else:
            yield DependencySpec(_filled(text, meta))


def _filled(spec: str, meta: Mapping[str, Any]) -> str:
    """A spec with the conf's own namespace, where it stands for it."""
    return _OWN_NAMESPACE.sub(lambda _: str(meta.get("outputNamespace", _NAMESPACE)), spec)


def _hints(specs: Any) -> _Hints:
    found = _Hints()
    for spec in specs:
        name, *segments = spec.text.split("/")
        dated = next((segment for segment in segments if "{{" in segment), None)
        rest = "/".join(segment for segment in segments if segment is not dated)
        if dated is None:
            found.of[unquoted(name)] = _Hint("", 0, segments)
            continue
        column, _, template = dated.partition("=")
        shift = _SHIFT.search(template)
        found.of[unquoted(name)] = _Hint(column, -int(shift[1]) if shift else 0, [rest] if rest else [])
    return found


def _sources(conf: Mapping[str, Any]) -> Iterator[Any]:
    yield from _list(conf.get("sources"))
    if "left" in conf:
        yield conf["left"]


def _parts(conf: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The right GroupBys of a Join."""
    for part in _list(conf.get("joinParts")):
        group_by = _mapping(part).get("groupBy")
        if isinstance(group_by, dict):
            yield group_by


def _tables_read(conf: Mapping[str, Any]) -> Iterator[str]:
    """Every table that a conf reads by its sources, without sub-partitions."""
    yield from _joins_read(conf)
    sources = [*_sources(conf), *(source for part in _parts(conf) for source in _list(part.get("sources")))]
    for source in sources:
        for kind, table_fields in _TABLES.items():
            found = _mapping(_mapping(source).get(kind))
            yield from (_name_of(found[name]) for name in table_fields if isinstance(found.get(name), str))
    for part in _list(conf.get("bootstrapParts")):
        table = _mapping(part).get("table")
        if isinstance(table, str):
            yield _name_of(table)


def _joins_read(conf: Mapping[str, Any]) -> Iterator[str]:
    """The tables of the Joins that a conf reads."""
    for source in [*_sources(conf), *(source for part in _parts(conf) for source in _list(part.get("sources")))]:
        meta = _mapping(_mapping(_mapping(_mapping(source).get("joinSource")).get("join")).get("metaData"))
        if meta:
            yield f"{meta.get('outputNamespace', _NAMESPACE)}.{re.sub('[^a-zA-Z0-9_]', '_', str(meta.get('name')))}"


def _in(table: str, namespace: Any) -> str:
    """A table by its name in another namespace: how a dependency calls a Join whose own was not known when it was written."""
    return f"{namespace}.{table.rpartition('.')[2]}"


def _name_of(table: str) -> str:
    """A table without its sub-partitions and quotes."""
    return unquoted(table.partition("/")[0])


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
