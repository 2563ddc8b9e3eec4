"""What a table looks like to those who wait for it, in sentences: for people who set up a catalog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionSpec, partition_format
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.readiness import check_shape
from airflow_chronon.errors import CatalogError, ChrononError, Fault

#: Formats that labels are often written in, the finest first: what an unknown table is said to have.
_USUAL = (
    "yyyy-MM-dd-HH-mm",
    "yyyy-MM-dd-HH",
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd HH:mm",
    "yyyy-MM-dd",
    "yyyyMMddHHmm",
    "yyyyMMddHH",
    "yyyyMMdd",
    "yyyy/MM/dd",
)


@dataclass(frozen=True)
class ColumnView:
    """One partition column: how many labels it has, and which."""

    name: str
    count: int
    oldest: str  #: by their text
    newest: str
    format: str | None  #: that all of them are written in, of the usual ones

    def __str__(self) -> str:
        written = f", written as {self.format}" if self.format else ""
        return f"{self.name}: {self.count} labels, {self.oldest} to {self.newest}{written}"

    def as_json(self) -> dict[str, Any]:
        return {
            "column": self.name,
            "labels": self.count,
            "oldest": self.oldest,
            "newest": self.newest,
            "format": self.format,
        }


def columns_of(listing: TableListing) -> tuple[ColumnView, ...]:
    """The partition columns of a table that was listed, by name."""
    found = []
    for name in sorted(listing.columns):
        labels = sorted(listing.labels(name))
        found.append(ColumnView(name, len(labels), labels[0], labels[-1], _format_of(labels)))
    return tuple(found)


def check_labels(table: str, column: str, spec: PartitionSpec, listing: TableListing) -> None:
    """Raise ``CatalogError`` where nobody who waits for such labels will ever see one: another column, or another format."""
    check_shape(table, column, listing)
    labels = listing.labels(column)
    if listing.state is not TableState.PARTITIONED or not labels or any(is_label(spec, label) for label in labels):
        return
    newest = max(labels)
    problem = f"none of its {len(labels)} labels is a partition of {spec.grid}: they are such as {newest!r}, and"
    raise CatalogError(
        Fault(
            "C7",
            column,
            f"{problem} what is waited for is such as {spec.example()!r}",
            f"say how they are written: partitionFormat {_format_of([newest]) or '…'!r}, and which interval and offset they have",
        ),
        conf=table,
    )


def is_label(spec: PartitionSpec, label: str) -> bool:
    """Whether a text is a partition of the grid, in its format."""
    try:
        spec.start_of(label)
    except ChrononError:
        return False
    return True


def _format_of(labels: Iterable[str]) -> str | None:
    labels = list(labels)
    sample = labels if len(labels) <= 100 else [*labels[:50], *labels[-50:]]
    return next((pattern for pattern in _USUAL if all(_reads(pattern, label) for label in sample)), None)


def _reads(pattern: str, label: str) -> bool:
    try:
        partition_format(pattern).decode(label)
    except IllegalLabel:
        return False
    return True
