"""Names that people read in Airflow's lists and grids, where ids are too long or begin alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

#: So many characters of a task's name are seen in the narrow column of Airflow's grid; it cuts the rest off.
SEEN = 22

#: The version of a conf within the name of a table that it writes.
_VERSION = re.compile(r"__\d+(?=__|$)")


def display_name(key: str, *, namespace_prefix: str = "") -> str:
    """What a DAG is called in lists, its conf's name first: ``commerce.orders.daily__1 (staging query)``.

    ``key`` is ``type/name``; ``namespace_prefix`` that of another branch's assets, which names the branch.
    """
    kind, _, name = key.partition("/")
    branch = f", branch {unquote(namespace_prefix.removesuffix('--'))}" if namespace_prefix else ""
    return f"{name} ({kind.replace('_', ' ')}{branch})"


def wait_names(tables: Iterable[str]) -> Mapping[str, str]:
    """What the wait for each table is called among the waits of its DAG; no two are alike in what is seen of them.

    Without the namespace, and without the team's name where the table repeats it. What is longer than :data:`SEEN` loses words
    at its beginning: names of one conf differ in their cadence and version. Where ends are alike, other words are left out.
    """
    named: dict[str, str] = {}
    waiting = sorted(set(tables))
    for way in (_end, _without_version, _first_and_end, _bare, str):
        offered = {table: way(table) for table in waiting}
        seen = Counter(name[:SEEN] for name in (*named.values(), *offered.values()))
        named |= {table: name for table, name in offered.items() if seen[name[:SEEN]] == 1}
        waiting = [table for table in waiting if table not in named]
    return named | {table: f"{number}: {_end(table)}" for number, table in enumerate(waiting, 1)}


def _end(table: str) -> str:
    """``…hourly__1__upload``"""
    return _fitted("", _without_team(table))


def _without_version(table: str) -> str:
    """``three_hourly…upload``"""
    before, *after = _VERSION.split(_without_team(table))
    return _fitted("", before, "…" + "".join(after).lstrip("_")) if after else _bare(table)


def _first_and_end(table: str) -> str:
    """``purchases…1__upload``"""
    first, _, rest = _without_team(table).partition("_")
    return _fitted(first, f"_{rest}") if rest else _bare(table)


def _bare(table: str) -> str:
    return table.rpartition(".")[2]


def _without_team(table: str) -> str:
    namespace, _, name = table.rpartition(".")
    team, words = namespace.rpartition(".")[2].split("_"), name.split("_")
    while len(words) > 1 and team and words[0] == team[0]:
        del words[0], team[0]
    return "_".join(words)


def _fitted(head: str, middle: str, tail: str = "") -> str:
    """The three as one name, of the middle only the last words that are seen; one word that is too long is cut in itself."""
    if len(head + middle + tail) <= SEEN:
        return head + middle + tail
    starts = (match.end() for match in re.finditer("_+", middle))
    ends = (f"{head}…{middle[start:]}{tail}" for start in starts)
    return next((end for end in ends if len(end) <= SEEN), f"…{(middle + tail)[1 - SEEN :]}")
