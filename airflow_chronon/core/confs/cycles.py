"""Cycles of confs in which no wait looks back (C15)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_chronon.core.confs.conf import ConfKey

Graph = Mapping[ConfKey, Iterable[ConfKey]]


def find_cycles(reads: Graph) -> dict[ConfKey, tuple[ConfKey, ...]]:
    """For every conf on a cycle, one shortest cycle through it, beginning with the conf itself.

    ``reads`` holds, per conf, the producers that it reads without looking back.
    """
    found = {}
    for key in reads:
        path = _shortest_way_back(key, reads)
        if path:
            found[key] = path
    return found


def _shortest_way_back(start: ConfKey, reads: Graph) -> tuple[ConfKey, ...]:
    came_from: dict[ConfKey, ConfKey] = {}
    level = [start]
    while level:
        following = []
        for key in level:
            for producer in reads.get(key, ()):
                if producer == start:
                    path = [key]
                    while path[-1] != start:
                        path.append(came_from[path[-1]])
                    return tuple(reversed(path))
                if producer not in came_from:
                    came_from[producer] = key
                    following.append(producer)
        level = following
    return ()
