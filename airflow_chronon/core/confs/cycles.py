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
    within = cyclic_part(reads)
    for key in within:
        path = _shortest_way_back(key, within)
        if path:
            found[key] = path
    return found


def cyclic_part(reads: Graph) -> dict[ConfKey, tuple[ConfKey, ...]]:
    """What is left of a graph without the confs that read nobody of it or that nobody of it reads: all that can be on a
    cycle, usually none. One walk: a search from every conf of a long chain would take the square of its length."""
    within = _without_ends({key: set(producers) & reads.keys() for key, producers in reads.items()})
    within = _turned(_without_ends(_turned(within)))
    return {key: tuple(each for each in reads[key] if each in within) for key in reads if key in within}


def _without_ends(edges: dict[ConfKey, set[ConfKey]]) -> dict[ConfKey, set[ConfKey]]:
    """The same graph without those that lead nowhere, again and again."""
    into = _turned(edges)
    waiting = [key for key, others in edges.items() if not others]
    while waiting:
        key = waiting.pop()
        del edges[key]
        for other in into[key]:
            edges[other].discard(key)
            if not edges[other]:
                waiting.append(other)
    return edges


def _turned(edges: Mapping[ConfKey, set[ConfKey]]) -> dict[ConfKey, set[ConfKey]]:
    """The same edges the other way round."""
    turned: dict[ConfKey, set[ConfKey]] = {key: set() for key in edges}
    for key, others in edges.items():
        for other in others:
            turned[other].add(key)
    return turned


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
