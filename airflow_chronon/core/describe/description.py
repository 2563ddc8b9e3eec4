"""The base class of a plan's description: what confs and jobs answer for text, page and JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.plan import Plan

REFERENCE_WEEK: Instant = 1_780_272_000  #: 2026-06-01, a Monday that begins a month
RUNS_SHOWN = 8  #: on a page


@dataclass(frozen=True)
class Neighbours:
    """Who reads whose table, for the links on pages; plans are known by their keys."""

    dag_ids: Mapping[str, str] = field(default_factory=dict)  #: of every good plan
    consumers: Mapping[str, frozenset[str]] = field(default_factory=dict)  #: the plans that read a plan's table

    @classmethod
    def of(cls, plans: Iterable[Plan]) -> Neighbours:
        """The neighbours in a tree with these good plans."""
        dag_ids: dict[str, str] = {}
        readers: dict[str, set[str]] = defaultdict(set)
        for plan in plans:
            dag_ids[plan.key] = plan.dag_id
            for producer in plan.producers:
                readers[str(producer)].add(plan.key)
        return cls(dag_ids, {key: frozenset(found) for key, found in readers.items()})


class Description(ABC):
    """How one plan is shown: in a terminal, on the page of its DAG and as JSON."""

    source: ClassVar[str]  #: what its file is called on a page

    @property
    @abstractmethod
    def headline(self) -> str:
        """What stands above its runs."""

    @property
    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """JSON: what it has beside that which every plan has."""

    @abstractmethod
    def run_json(self, run: Any) -> dict[str, Any]:
        """JSON of one of its runs."""

    @abstractmethod
    def run_table(self, runs: Iterable[Any]) -> list[tuple[str, ...]]:
        """Its runs in rows under a head, for a terminal."""

    @abstractmethod
    def page_head(self) -> str:
        """A page: what it is."""

    @abstractmethod
    def page_schedule(self, *, is_active: bool) -> Sequence[str]:
        """A page: when it runs; ``is_active`` is false while a reconcile has to see it first (H14)."""

    @abstractmethod
    def page_sections(self, neighbours: Neighbours) -> Sequence[str]:
        """A page: what else there is to know, the runs of a fixed week at its end."""
