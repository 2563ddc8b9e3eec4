"""What a catalog saw of one table at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property


class TableState(Enum):
    """Whether a table is there and has partitions."""

    MISSING = "missing"  #: not there (yet)
    UNPARTITIONED = "unpartitioned"  #: there, with data but without partition columns
    PARTITIONED = "partitioned"  #: there; it may hold no partition yet


class LandedWhen(Enum):
    """What makes a partition count as landed."""

    ANY_FILE = "any_file"  #: any data file, or its ``_SUCCESS``
    SUCCESS_FILE = "success_file"  #: only a ``_SUCCESS``, its own or one of a partition folder above it


@dataclass(frozen=True)
class TableListing:
    """The landed partitions of one table: one mapping of column to (unescaped) value per leaf partition."""

    state: TableState
    partitions: tuple[Mapping[str, str], ...] = field(default=(), repr=False)
    said: frozenset[str] = frozenset()  #: labels that count as there whatever was listed, since people said so
    _labels: dict[tuple[str, tuple[str, ...]], frozenset[str]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, column: str, labels: Iterable[str]) -> TableListing:
        """A table with one partition column; for fakes and tests."""
        return cls(TableState.PARTITIONED, tuple({column: label} for label in labels))

    @cached_property
    def columns(self) -> frozenset[str]:
        """Every partition column seen."""
        return frozenset(column for partition in self.partitions for column in partition)

    def labels(self, column: str, sub: tuple[str, ...] = ()) -> frozenset[str]:
        """The labels of ``column`` under which every sub-partition of ``sub`` is there; worked out once per listing.

        A sub-partition is ``key=value`` or ``key=value/key=value``; the order of the columns in the folders is free (C20).
        """
        known = self._labels.get((column, sub))
        if known is None:
            known = self._labels[column, sub] = self._landed(column, sub) | self.said
        return known

    def with_said(self, labels: Iterable[str]) -> TableListing:
        """The same listing with labels that people said are there, or never will be."""
        return TableListing(self.state, self.partitions, frozenset(labels))

    def _landed(self, column: str, sub: tuple[str, ...]) -> frozenset[str]:
        landed = frozenset(p[column] for p in self.partitions if column in p)
        for spec in sub:
            pairs = [tuple(pair.split("=", 1)) for pair in spec.split("/") if "=" in pair]
            landed &= frozenset(
                p[column] for p in self.partitions if column in p and all(p.get(k) == v for k, v in pairs)
            )
        return landed
