"""Who may say what (S6): the name that a conf's place gives it, the namespaces of its team, the settings that it may set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_chronon.core.confs.documents import MetaData
from airflow_chronon.core.settings.model import ConfSettings, Guarded, TeamSettings
from airflow_chronon.errors import Fault


def place_faults(meta: MetaData, place: Sequence[str]) -> Iterator[Fault]:
    """What is wrong with the team and the name that a document gives itself: its place, ``<team>/<rest>`` below the folder of
    its type, decides, so that no file takes the name of another team's conf."""
    if len(place) < 2:
        remedy = "compile it again with zipline compile, which puts it there"
        yield Fault("S6", "", "it is in no team's folder: a conf stands in <type>/<team>/<name>", remedy)
        return
    name, team = ".".join(place), place[0]
    if meta.name != name:
        problem = f"the name {meta.name!r} is not that of its file, {name!r}"
        yield Fault("S6", "metaData.name", problem, f"rename the file, or compile it again as {name}")
    if meta.team and meta.team != team:
        problem = f"the team {meta.team!r} is not that of its folder, {team!r}"
        yield Fault("S6", "metaData.team", problem, "move the file to its team's folder, or compile it again there")


def namespace_faults(namespace: str, *, team: str, teams: Mapping[str, TeamSettings]) -> Iterator[Fault]:
    """What ``teams:`` of the settings has against a conf of ``team`` that writes in a namespace."""
    own = teams.get(team)
    if own is not None and own.owns(namespace):
        return
    owners = [name for name, other in sorted(teams.items()) if other.owns(namespace)]
    if own is not None:
        allowed = ", ".join(own.output_namespaces) or "none"
        problem = f"the team {team} may not write in the namespace {namespace!r}: its namespaces are {allowed}"
    elif owners:
        problem = f"the namespace {namespace!r} belongs to the team {' and '.join(owners)}, not to {team}"
    else:
        return
    remedy = "set another output_namespace, or allow this one under teams: in chronon.yaml"
    yield Fault("S6", "metaData.outputNamespace", problem, remedy)


def own_word_faults(own: ConfSettings, *, may_set: Sequence[Guarded]) -> Iterator[Fault]:
    """What a conf says of itself and may not: a runner and a callback are programs, a catalog is a place."""
    said = [(each, each.value) for each in (Guarded.RUNNER, Guarded.CATALOG) if each.value in own.model_fields_set]
    callbacks = ("on_failure_callback", "on_late_callback")
    said += [(Guarded.CALLBACKS, f"task_defaults.{name}") for name in callbacks if getattr(own.task_defaults, name)]
    for guarded, key in said:
        if guarded not in may_set:
            remedy = f"set it in an override of chronon.yaml, or say confs_may_set: [{guarded.value}] there"
            yield Fault("S6", key, f"a conf may not set its own {key.rpartition('.')[2]}", remedy)
