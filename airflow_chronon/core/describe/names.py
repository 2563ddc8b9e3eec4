"""Names that people read in Airflow's lists and grids, where ids are too long or begin alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

#: So many characters of a task's name are seen in the narrow column of Airflow's grid; it cuts the rest off.
SEEN = 22


def display_name(key: str, *, namespace_prefix: str = "") -> str:
    """What a DAG is called in lists, its conf's name first: ``commerce.orders.daily__1 (staging query)``.

    ``key`` is ``type/name``; ``namespace_prefix`` that of another branch's assets, which names the branch.
    """
    kind, _, name = key.partition("/")
    branch = f", branch {unquote(namespace_prefix.removesuffix('--'))}" if namespace_prefix else ""
    return f"{name} ({kind.replace('_', ' ')}{branch})"


def wait_names(tables: Iterable[str]) -> Mapping[str, str]:
    """What the wait for each table is called among the waits of its DAG; no two are alike in what is seen of them.

    Without the namespace, and without the team's name where the table repeats it. Of what is longer than :data:`SEEN` the end
    is kept: names of one conf differ in their cadence and version.
    """
    named: dict[str, str] = {}
    waiting = sorted(set(tables))
    for way in (_end, _bare, str):
        offered = {table: way(table) for table in waiting}
        seen = Counter(name[:SEEN] for name in (*named.values(), *offered.values()))
        named |= {table: name for table, name in offered.items() if seen[name[:SEEN]] == 1}
        waiting = [table for table in waiting if table not in named]
    return named | {table: f"{number}: {_end(table)}" for number, table in enumerate(waiting, 1)}


def _bare(table: str) -> str:
    return table.rpartition(".")[2]


def _end(table: str) -> str:
    namespace, _, name = table.rpartition(".")
    team, words = namespace.rpartition(".")[2].split("_"), name.split("_")
    while len(words) > 1 and team and words[0] == team[0]:
        del words[0], team[0]
    short = "_".join(words)
    return short if len(short) <= SEEN else f"…{short[1 - SEEN :]}"
