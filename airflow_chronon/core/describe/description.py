"""The base class of a plan's description: what confs and jobs answer for text, page and JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.plan import Plan

REFERENCE_WEEK: Instant = 1_780_272_000  #: 2026-06-01, a Monday that begins a month
RUNS_SHOWN = 8  #: on a page


TableFacts: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Neighbours:
    """Who writes and who reads which table, for pages and assets; plans are known by their keys."""

    dag_ids: Mapping[str, str] = field(default_factory=dict)  #: of every good plan
    consumers: Mapping[str, frozenset[str]] = field(default_factory=dict)  #: the plans that read a plan's table
    tables: Mapping[str, TableFacts] = field(default_factory=dict)  #: what is known of each table that they write

    @classmethod
    def of(cls, plans: Iterable[Plan]) -> Neighbours:
        """The neighbours in a tree with these good plans."""
        dag_ids: dict[str, str] = {}
        readers: dict[str, set[str]] = defaultdict(set)
        tables: dict[str, TableFacts] = {}
        for plan in plans:
            dag_ids[plan.key] = plan.dag_id
            tables |= table_facts(plan)
            for producer in plan.producers:
                readers[str(producer)].add(plan.key)
        return cls(dag_ids, {key: frozenset(found) for key, found in readers.items()}, tables)


def table_facts(plan: Plan) -> dict[str, TableFacts]:
    """What people want to know of the tables that a plan writes."""
    if plan.spec is None:
        return {}
    facts = {
        "conf": plan.key,
        "owner": plan.settings.owner or plan.team,
        "grid": str(plan.spec.grid),
        "column": plan.spec.column,
        "format": plan.spec.format.pattern,
    }
    return dict.fromkeys(plan.tables, facts)


class Description(ABC):
    """How one plan is shown: in a terminal, on the page of its DAG and as JSON."""

    source: ClassVar[str]  #: what its file is called on a page

    @property
    @abstractmethod
    def headline(self) -> str:
        """What stands above its runs."""

    @property
    @abstractmethod
    def one_line(self) -> str:
        """What it does and when, beside its name in a list."""

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

    def page_source(self) -> Sequence[str]:
        """A page, at its very end: what it computes, as it was written."""
        return ()
