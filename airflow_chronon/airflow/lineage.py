"""OpenLineage: which partitions of which tables a task read and wrote, for the provider of Airflow that sends such events.

That provider finds here what it asks of an operator, and how an asset of a Chronon table is called. It is an optional
package: nothing of it is imported before it asks.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.confs.conf import ConfKey
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET
from airflow_chronon.core.waits.dependencies import PartitionRange, Wait

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset

NAMESPACE = "chronon"  #: of the datasets; their names are full names of tables
MOST_NAMED = 1_000  #: partitions of one dataset that are named one by one; of more, the first and the last
SUBSET = "subset"  #: OpenLineage's own facet of partitions that were read or written


def dataset_of_asset(asset: Any, lineage_context: Any) -> Dataset | None:
    """The dataset of a ``chronon://namespace/table`` asset: what the provider asks for those of anybody's tasks.

    None for an asset that only keeps something (C22), and is no table.
    """
    from openlineage.client.event_v2 import Dataset

    parts = urlsplit(asset.uri)
    if parts.netloc == urlsplit(CONTRACTS_ASSET).netloc:
        return None
    return Dataset(NAMESPACE, f"{parts.netloc}.{parts.path.strip('/')}")


@dataclass(frozen=True)
class Written:
    """Partitions of one table that a run wrote."""

    table: str
    column: str
    labels: Sequence[str]


@dataclass
class Lineage:
    """What one task read and wrote, as far as it is known.

    ``prefix`` stands before the namespaces of tables that a deployment off the default branch writes (C24); ``producers`` are the
    confs of the tree whose tables are read.
    """

    prefix: str = ""
    producers: Container[str] = ()  #: the names of their tables, without the namespace
    reads: tuple[Wait, ...] = ()
    writes: tuple[Written, ...] = ()

    @classmethod
    def of(cls, prefix: str, producers: Iterable[ConfKey]) -> Lineage:
        return cls(prefix, {key.name.replace(".", "_") for key in producers} if prefix else ())

    def to_openlineage(self) -> OperatorLineage[Any, Any]:
        """For the provider."""
        from airflow.providers.openlineage.extractors import OperatorLineage

        return OperatorLineage(
            inputs=[self._input(wait) for wait in self.reads], outputs=[self._output(each) for each in self.writes]
        )

    def _input(self, wait: Wait) -> InputDataset:
        from openlineage.client.event_v2 import InputDataset
        from openlineage.client.generated.base_subset_dataset import InputSubsetInputDatasetFacet

        name = wait.table.rpartition(".")[2]
        is_own = any(name.removesuffix(end) in self.producers for end in ("", "__derived", "__upload"))
        found = InputDataset(NAMESPACE, f"{self.prefix if is_own else ''}{wait.table}")
        condition = _read(wait)
        if condition is not None:
            found.inputFacets = {SUBSET: InputSubsetInputDatasetFacet(inputCondition=condition)}
        return found

    def _output(self, written: Written) -> OutputDataset:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.generated.base_subset_dataset import OutputSubsetOutputDatasetFacet

        condition = _partitions(written.column, written.labels)
        facets: dict[str, Any] = {SUBSET: OutputSubsetOutputDatasetFacet(outputCondition=condition)}
        return OutputDataset(NAMESPACE, f"{self.prefix}{written.table}", outputFacets=facets)


class LineageMixin:
    """An operator that the provider of OpenLineage asks for what it read and wrote, once it has ended, well or badly."""

    _lineage: Lineage

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        return self._lineage.to_openlineage()


def _read(wait: Wait) -> Any:
    """What a run reads of a table: the partitions that it waits for, and its lookback; None where no partition tells."""
    from openlineage.client.generated.base_subset_dataset import BinarySubsetCondition

    if wait.until is not None:
        return _compared(wait.column, "LESS_THAN", iso(wait.until))
    if not wait.labels or wait.expression is not None:
        return None
    labels = wait.labels if wait.spec is None else sorted(wait.labels, key=wait.spec.format.decode)
    needed = _partitions(wait.column, labels, wait.sub)
    return (
        needed if wait.lookback is None else BinarySubsetCondition(needed, _between(wait.column, wait.lookback), "OR")
    )


def _partitions(column: str, labels: Sequence[str], sub: Sequence[str] = ()) -> Any:
    """Partitions by their values."""
    from openlineage.client.generated.base_subset_dataset import Partition, PartitionSubsetCondition

    below = [dict([each.partition("=")[::2]]) for each in sub] or [{}]
    if len(labels) * len(below) > MOST_NAMED:
        return _between(column, PartitionRange(labels[0], labels[-1]))  # type: ignore[arg-type]
    found = [{column: label, **more} for label, more in product(labels, below)]
    named = [Partition(each, "/".join(f"{name}={value}" for name, value in each.items())) for each in found]
    return PartitionSubsetCondition(named)


def _between(column: str, labels: PartitionRange) -> Any:
    """Partitions from one to another, both inclusive."""
    from openlineage.client.generated.base_subset_dataset import BinarySubsetCondition

    last = _compared(column, "LESS_EQUAL_THAN", labels.last)
    if labels.first is None:
        return last
    return BinarySubsetCondition(_compared(column, "GREATER_EQUAL_THAN", labels.first), last, "AND")


def _compared(column: str, comparison: str, value: str) -> Any:
    from openlineage.client.generated.base_subset_dataset import (
        CompareSubsetCondition,
        FieldBaseCompareExpression,
        LiteralCompareExpression,
    )

    return CompareSubsetCondition(FieldBaseCompareExpression(column), LiteralCompareExpression(value), comparison)
