"""DAG ids and tags: the same conf always gets the same id, and two confs never share one (C24, C26)."""

from __future__ import annotations

import hashlib
import re

from airflow_chronon.core.conf import Conf, ConfKey, Mode
from airflow_chronon.core.grid import PartitionGrid

MAX_LENGTH = 250  #: Airflow's limit on a DAG id
MAX_TAG_LENGTH = 100  #: Airflow's limit on a tag

_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")


def dag_id(key: ConfKey, *, name: str, version: str | None, branch: str, default_branch: str) -> str:
    """The id of a conf version's DAG: ``type.name__version``, with ``branch--`` in front off the default branch.

    ``name`` is the conf's without its version. What does not fit in :data:`MAX_LENGTH` characters of ``[A-Za-z0-9_.-]``, or
    does not survive, is shortened and told apart by eight hex digits; the version stays at the end.
    """
    prefix = "" if branch == default_branch else f"{branch}--"
    head, tail = f"{prefix}{key.conf_type.value}.{name}", f"__{version}" if version else ""
    if len(head) + len(tail) <= MAX_LENGTH and not _ILLEGAL.search(head + tail):
        return head + tail
    digest = hashlib.sha256("\n".join((branch, key.conf_type.value, key.name)).encode()).hexdigest()[:8]
    head, tail = _ILLEGAL.sub("_", head), _ILLEGAL.sub("_", tail)[:100]
    return f"{head[: MAX_LENGTH - len(tail) - 9]}_{digest}{tail}"


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
    return tuple(sorted(tag[:MAX_TAG_LENGTH] for tag in found))
