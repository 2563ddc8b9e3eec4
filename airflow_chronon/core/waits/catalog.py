"""The one protocol that every catalog answers, and the fake that ships with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.errors import CatalogError

#: What a `triggerExpr` evaluates to (C19): a truth, a value to compare with a label, or nothing.
ExpressionValue = bool | str | int | float | None


class IllegalExpression(CatalogError):
    """A `triggerExpr` that has no value whatever lands: it can never be waited for."""


class PartitionCatalog(Protocol):
    """Sees which partitions of a table have landed.

    Every call may block on I/O; callers in an event loop use a thread. A missing table is an answer, not an error.
    Raises :class:`airflow_chronon.errors.CatalogError` with the table, the cause and the remedy when it cannot answer.
    """

    def place_of(self, table: str) -> str:
        """Where a table is looked for, for people: no password stands in it (S4)."""

    def change_token(self, table: str) -> str | None:
        """A text that is another one once the table has changed, for the price of one small call; None where there is none.

        It is read before a listing: while it stays the same, the labels and newest values of before still hold. What it is
        read of may be what the next listing of the same table shows.
        """

    def list_partitions(self, table: str) -> TableListing:
        """The landed partitions of ``table`` (its full name, such as ``data.checkouts``)."""

    def newest_value(self, table: str, column: str) -> Instant | None:
        """The newest value of a time-partitioned table's column, or None when there is no data (C18)."""

    def evaluate(self, table: str, expression: str) -> ExpressionValue:
        """The value of a `triggerExpr` over the table (C19). Raises :class:`IllegalExpression` when it can have none."""


@dataclass
class FakeCatalog:
    """A catalog in memory, for tests of whatever stands on one."""

    listings: dict[str, TableListing] = field(default_factory=dict)
    newest: Mapping[tuple[str, str], Instant] = field(default_factory=dict)
    values: Mapping[tuple[str, str], ExpressionValue] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    tokens: Mapping[str, str] = field(default_factory=dict)  #: by table

    def place_of(self, table: str) -> str:
        return f"memory/{table}"

    def change_token(self, table: str) -> str | None:
        return self.tokens.get(table)

    def list_partitions(self, table: str) -> TableListing:
        self.calls.append(table)
        return self.listings.get(table, TableListing(TableState.MISSING))

    def newest_value(self, table: str, column: str) -> Instant | None:
        self.calls.append(table)
        return self.newest.get((table, column))

    def evaluate(self, table: str, expression: str) -> ExpressionValue:
        self.calls.append(table)
        return self.values.get((table, expression))
