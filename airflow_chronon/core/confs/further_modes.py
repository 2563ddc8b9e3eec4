"""The modes of Chronon's driver that confs ask for and no DAG runs (D5): whoever deploys the confs is told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from airflow_chronon.core.confs.conf import Conf
from airflow_chronon.core.confs.documents import Dialect, GroupBy, Join
from airflow_chronon.errors import Fault

_SHOWN = 3  #: so many confs are named; of the others the number is told


@dataclass(frozen=True)
class FurtherMode:
    """A mode of the driver beside those that fill the tables of a conf."""

    name: str  #: what the driver calls it
    asked_with: str  #: what in a conf asks for it, in words
    is_asked_for: Callable[[Conf], bool]


def _streams(conf: Conf) -> bool:
    document = conf.document
    if not (isinstance(document, GroupBy) and conf.is_online):
        return False
    has_topic = any(source.has_topic for source in document.sources)
    return has_topic or (conf.dialect is Dialect.OLDER and document.is_temporal)


def _checks_consistency(conf: Conf) -> bool:
    if not _is_older_join(conf):
        return False
    asks, sampled = _meta(conf, "consistencyCheck"), _meta(conf, "consistencySamplePercent")
    return _is_on(conf.own_words.get("check_consistency")) or (_is_on(asks) and _is_positive(sampled))


def _flattens_logs(conf: Conf) -> bool:
    return _is_older_join(conf) and _is_positive(_meta(conf, "samplePercent"))


def _joins_labels(conf: Conf) -> bool:
    return _is_older_join(conf) and bool(conf.raw.get("labelParts"))


#: Only streaming is asked for in both dialects.
FURTHER_MODES = (
    FurtherMode("streaming", "online, with a topic or point in time", _streams),
    FurtherMode("consistency-metrics-compute", "check_consistency, or consistencySamplePercent", _checks_consistency),
    FurtherMode("log-flattener", "samplePercent above 0", _flattens_logs),
    FurtherMode("label-join", "labelParts", _joins_labels),
)


def unscheduled_modes(confs: Iterable[Conf]) -> Iterator[Fault]:
    """A warning for each mode that some of the confs ask for."""
    named = sorted(confs, key=lambda conf: str(conf.key))
    for mode in FURTHER_MODES:
        asking = [str(conf.key) for conf in named if mode.is_asked_for(conf)]
        if asking:
            problem = (
                f"{_listed(asking)} {_ask(asking)} for the mode {mode.name} ({mode.asked_with}), which no DAG runs"
            )
            remedy = "run the driver in that mode from a job file"
            yield Fault("D5", "", problem, remedy)


def _listed(keys: list[str]) -> str:
    """The first few of some keys in a sentence, with the number of the others."""
    shown = keys[:_SHOWN]
    if len(keys) > _SHOWN:
        shown.append(f"{len(keys) - _SHOWN} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _ask(keys: list[str]) -> str:
    return "asks" if len(keys) == 1 else "ask"


def _is_older_join(conf: Conf) -> bool:
    return conf.dialect is Dialect.OLDER and isinstance(conf.document, Join)


def _meta(conf: Conf, name: str) -> Any:
    """A field of the metadata as it was read, of whatever type."""
    return conf.raw["metaData"].get(name)


def _is_on(value: Any) -> bool:
    """Whether a flag is set, in the spellings of either compiler."""
    return isinstance(value, int) and value == 1


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
