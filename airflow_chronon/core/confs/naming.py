"""DAG ids and tags: the same conf always gets the same id, and two confs never share one (C24, C26)."""

from __future__ import annotations

import hashlib
import re

from airflow_chronon.core.bounds import MAX_ID, MAX_TAG, quoted
from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.errors import Fault, Rejected

_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")
_NAMESPACE = re.compile(r"[\w-]+(\.[\w-]+)*", re.A)  # the address of an asset takes no other letters


def dag_id(key: ConfKey, *, name: str, version: str | None, branch: str, default_branch: str) -> str:
    """The id of a conf version's DAG: ``type.name__version``, with ``branch--`` in front off the default branch.

    ``name`` is the conf's without its version. What does not fit in :data:`MAX_ID` characters of ``[A-Za-z0-9_.-]``, or
    does not survive, is shortened and gets eight hex digits; the version stays at the end.
    """
    kind, tail = key.conf_type.value, f"__{version}" if version else ""
    prefix = "" if branch == default_branch else f"{branch}--"
    return legal_id(f"{prefix}{kind}.{name}", tail, unique=(branch, kind, key.name))


def job_dag_id(*, name: str, branch: str, default_branch: str) -> str:
    """The id of a job's DAG, ``job.team.name`` whatever its version (H21), shortened as that of a conf; ``name`` is
    ``team.name``."""
    prefix = "" if branch == default_branch else f"{branch}--"
    return legal_id(f"{prefix}job.{name}", unique=(branch, "job", name))


def legal_id(head: str, tail: str = "", *, unique: tuple[str, ...]) -> str:
    """An id that Airflow takes; ``unique`` is what the eight hex digits tell apart when ``head`` and ``tail`` must change."""
    if len(head) + len(tail) <= MAX_ID and not _ILLEGAL.search(head + tail):
        return head + tail
    digest = hashlib.sha256("\n".join(unique).encode()).hexdigest()[:8]
    head, tail = _ILLEGAL.sub("_", head), _ILLEGAL.sub("_", tail)[:100]
    return f"{head[: MAX_ID - len(tail) - 9]}_{digest}{tail}"


def id_stem(key: str, *, branch: str, default_branch: str) -> str:
    """How the DAG ids of a file begin of which only ``type/name`` is known, its version and digits left open."""
    prefix = "" if branch == default_branch else f"{branch}--"
    return _ILLEGAL.sub("_", prefix + key.replace("/", ".", 1))[: MAX_ID - 109]


def tags(conf: Conf, *, grid: PartitionGrid, modes: tuple[Mode, ...], branch: str) -> tuple[str, ...]:
    """What people filter by in the UI; sorted, so that an unchanged conf stays unchanged."""
    found = {"chronon", f"type:{conf.key.conf_type.value}", f"branch:{branch}", f"grid:{grid}"}
    if conf.meta.team:
        found.add(f"team:{conf.meta.team}")
    if conf.version:
        found.add(f"version:{conf.version}")
    if conf.is_online:
        found.add("online")
    if not modes:
        found.add("unscheduled")
    return _in_order(found)


def job_tags(*, team: str, version: str, branch: str, is_scheduled: bool) -> tuple[str, ...]:
    """The tags of a job: those of a conf, without a grid."""
    found = {"chronon", "type:job", f"branch:{branch}", f"team:{team}", f"version:{version}"}
    return _in_order(found if is_scheduled else {*found, "unscheduled"})


def _in_order(found: set[str]) -> tuple[str, ...]:
    return tuple(sorted(tag[:MAX_TAG] for tag in found))


def refuse_name(raw: object) -> None:
    """Raise ``Rejected`` for the name in a compiled conf that cannot be one: it becomes part of paths and ids.

    What is no text is for the reader of the document to say.
    """
    meta = raw.get("metaData") if isinstance(raw, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(name, str):
        return
    if not name or name.startswith(".") or ".." in name or "/" in name or "\\" in name or not name.isprintable():
        remedy = "rename it: a name is Python names with dots between them"
        raise Rejected([Fault("input", "metaData.name", f"{quoted(name)} cannot be a conf's name", remedy)])


def refuse_namespace(namespace: str) -> None:
    """The same for an output namespace, which is part of the address of an asset."""
    if _NAMESPACE.fullmatch(namespace) is None:
        remedy = "use letters, digits, underscores and dashes, with single dots between"
        raise Rejected(
            [Fault("input", "metaData.outputNamespace", f"{quoted(namespace)} cannot be a namespace", remedy)]
        )
