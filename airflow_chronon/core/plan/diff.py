"""What differs between two revisions of a tree, before anything is deployed (C22)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.partitions.labels import span
from airflow_chronon.core.plan.facts import TreeFacts
from airflow_chronon.core.records.grid_contract import contract_fault
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.errors import Fault


class Change(Enum):
    """What becomes of a DAG when the later revision is deployed."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    BAD = "no longer good"
    GRID = "grid changed"


@dataclass(frozen=True)
class Difference:
    """One DAG that differs."""

    change: Change
    dag_id: str
    detail: str = ""
    fault: Fault | None = None  #: the broken rule, for a grid that was changed without a version bump

    def __str__(self) -> str:
        return f"{self.change.value.ljust(15)} {self.dag_id}" + (
            f": {self.fault or self.detail}" if self.fault or self.detail else ""
        )


def compare_trees(before: TreeFacts, after: TreeFacts) -> tuple[Difference, ...]:
    """Every DAG that differs, by id."""
    return tuple(_differences(before, after))


def _differences(before: TreeFacts, after: TreeFacts) -> Iterator[Difference]:
    families = {dag_id: plan.family for tree in (before, after) for dag_id, plan in tree.plans.items()}
    for dag_id in sorted({*before.plans, *after.plans}):
        old, new = before.plans.get(dag_id), after.plans.get(dag_id)
        if old is None:
            assert new is not None
            earlier = sorted(
                each for each in before.plans if families[each] == families[dag_id] and each not in after.plans
            )
            yield Difference(Change.NEW, dag_id, f"supersedes {span(earlier)}" if earlier else "")
        elif new is None:
            if after.holds(dag_id, None) or old.key in after.keys:
                yield Difference(Change.BAD, dag_id, "its conf is rejected, unreadable or of another environment")
            else:
                yield Difference(Change.GONE, dag_id, f"{old.file}")
        else:
            fault = _grid_fault(old, new)
            if fault is not None:
                yield Difference(Change.GRID, dag_id, fault=fault)
            elif manifest_of(old).digest != manifest_of(new).digest:
                what = "its schedule" if old.schedule != new.schedule else "its document or settings"
                yield Difference(Change.CHANGED, dag_id, what)


def _grid_fault(old: Plan, new: Plan) -> Fault | None:
    """A grid, format or column that was changed without a version bump (C22); jobs have none."""
    if old.spec is None or new.spec is None:
        return None
    return contract_fault(old.spec.contract, new.spec, table=new.table)
