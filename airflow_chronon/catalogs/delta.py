"""Partitions of Delta tables, seen in their logs: no data is read, and no server is needed beside the store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_chronon.catalogs.metadata import column_of, instant_of, said_of, text_of
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.catalog import ExpressionValue, IllegalExpression
from airflow_chronon.errors import CatalogError, Fault, without_passwords
from airflow_chronon.extras import optional
from airflow_chronon.storage.tables import check_table_name


@dataclass
class DeltaCatalog:
    """A catalog over the Delta tables below one root, each in a folder of its full name.

    A partition whose value is null is none that anyone can wait for. Every error is a :class:`CatalogError`.
    """

    root: str  #: a path, or a URL such as ``s3://bucket/lake``
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)  #: the deltalake package's own
    _loaded: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  #: tables as their token was read

    def place_of(self, table: str) -> str:
        """The folder of the table; see :class:`airflow_chronon.core.waits.catalog.PartitionCatalog`."""
        return f"{without_passwords(self.root)}/{table}"

    def change_token(self, table: str) -> str:
        """The version of the table: the end of its log is read, and no more."""
        found = self._loaded[table] = self._load(table)
        return "missing" if found is None else f"{found.metadata().id} {found.version()}"

    def list_partitions(self, table: str) -> TableListing:
        """The partitions of the present version; see :class:`airflow_chronon.core.waits.catalog.PartitionCatalog`."""
        found = self._take(table)
        if found is None:
            return TableListing(TableState.MISSING)
        with said_of("Delta", table):
            if not found.metadata().partition_columns:
                return TableListing(TableState.UNPARTITIONED)
            rows = found.partitions()
            leaves = ({name: text_of(value) for name, value in row.items()} for row in rows if None not in row.values())
            return TableListing(TableState.PARTITIONED, tuple(leaves))

    def newest_value(self, table: str, column: str) -> Instant | None:
        """The newest value of a time column, by the statistics that the log holds for each file (C18)."""
        found = self._take(table)
        if found is None:
            return None
        arrow = optional("pyarrow", needed_for="reading Delta tables")
        with said_of("Delta", table):
            name = column_of([each.name for each in found.schema().fields], column, table)
            files = arrow.table(found.get_add_actions(flatten=True))
            if not files.num_rows:
                return None
            if f"max.{name}" not in files.column_names:
                problem = f"the log holds no statistics of the column {column!r}"
                remedy = "let its writer keep them (delta.dataSkippingStatsColumns)"
                raise CatalogError(Fault("C18", column, problem, remedy), conf=table)
            bounds = [each for each in files[f"max.{name}"].to_pylist() if each is not None]
            return max((instant_of(bound, column, table) for bound in bounds), default=None)

    def evaluate(self, table: str, expression: str) -> ExpressionValue:
        """No expression is run over the rows of a Delta table here."""
        problem = "a triggerExpr cannot be evaluated over a Delta table, of which only the log is read"
        raise IllegalExpression(Fault("C19", "triggerExpr", problem, "remove the triggerExpr"), conf=table)

    def _take(self, table: str) -> Any:
        """The table as it was when its token was read, so that a poll loads it once; else as it is."""
        return self._loaded[table] if table in self._loaded else self._load(table)

    def _load(self, table: str) -> Any:
        """The table's log; None where there is no such table."""
        delta = optional("deltalake", needed_for="reading Delta tables")
        exceptions = optional("deltalake.exceptions", needed_for="reading Delta tables")
        address = f"{self.root.rstrip('/')}/{check_table_name(table)}"
        with said_of("Delta", table):
            if "://" not in address and os.path.isdir(address) and not os.access(address, os.R_OK | os.X_OK):
                raise PermissionError(f"{address} may not be read")  # it would be taken for a table that is not there
            try:
                return delta.DeltaTable(address, storage_options=dict(self.storage_options) or None)
            except exceptions.TableNotFoundError:
                return None
