"""Partitions seen in Hive-style folders: ``<root>/<table>/<column>=<label>/…`` on disk or in an object store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from airflow_chronon.catalogs.expressions import Expressions
from airflow_chronon.catalogs.newest import NoSuchColumn, newest_in_file
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.listing import LandedWhen, TableListing, TableState
from airflow_chronon.core.waits.catalog import ExpressionValue, IllegalExpression
from airflow_chronon.errors import CatalogError, ChrononError, Fault
from airflow_chronon.extras import optional
from airflow_chronon.storage.files import LocalStorage, StoredFile, shown_root
from airflow_chronon.storage.layout import is_data_file, listing_of
from airflow_chronon.storage.tables import Tables, open_tables

_READERS = 8  # footers are read side by side: in an object store each is a round trip


@dataclass
class FilesystemCatalog:
    """A catalog over the folders below one root.

    A table is one folder, named by its full name. A root that is not there holds no tables. Labels in folder names are
    percent-escaped (C7); partition columns may be nested in any order (C20). Every error is a :class:`CatalogError`.
    """

    root: str  #: a path, or a URL that fsspec knows, such as ``s3://bucket/warehouse``
    landed: LandedWhen = LandedWhen.ANY_FILE
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    expression_memory: str = "512MB"  #: what an expression may take, in DuckDB's own words
    expression_timeout: int = 30  #: seconds that an expression may take
    _newest: dict[tuple[str, str], dict[StoredFile, Instant | None]] = field(
        default_factory=dict, init=False, repr=False
    )
    _opened: Tables | None = field(default=None, init=False, repr=False)
    _expressions: Expressions | None = field(default=None, init=False, repr=False)

    @property
    def tables(self) -> Tables:
        """The opened root; opened on first use, so that building a catalog touches nothing."""
        if self._opened is None:
            self._opened = open_tables(self.root, options=self.storage_options)
        return self._opened

    def place_of(self, table: str) -> str:
        """The folder of the table; see :class:`airflow_chronon.core.waits.catalog.PartitionCatalog`."""
        return f"{shown_root(self.root)}/{table}"

    def change_token(self, table: str) -> None:
        """None: folders do not tell that something below them has changed."""

    def list_partitions(self, table: str) -> TableListing:
        """The landed partitions; see :class:`airflow_chronon.core.waits.catalog.PartitionCatalog`."""
        paths = self.tables.paths(table)
        if paths is None:
            return TableListing(TableState.MISSING)
        try:
            return listing_of(paths, landed=self.landed)
        except CatalogError as error:
            raise _about(table, error) from error

    def newest_value(self, table: str, column: str) -> Instant | None:
        """The newest value of a time column over all files (C18).

        The Parquet type decides what it means: a timestamp (UTC when it has no zone), a date (its midnight), or an
        integer (milliseconds since the epoch). A file is read once for as long as its size and time of change stay,
        and only its footer when that holds statistics.
        """
        found = self.tables.files(table)
        if found is None:
            return None
        try:
            files = [file for file in found if file.size and is_data_file(file.path.rpartition("/")[2])]
            known = self._newest.get((table, column), {})
            new = [file for file in files if file not in known]
            answers = self._read(table, column, new)
        except CatalogError as error:
            raise _about(table, error) from error
        lacking = [answer for answer in answers.values() if isinstance(answer, NoSuchColumn)]
        current = {file: known[file] for file in files if file in known}
        current |= {file: answer for file, answer in answers.items() if not isinstance(answer, NoSuchColumn)}
        if lacking and not current:
            raise _about(table, lacking[0])  # an older file may lack a column; not every file
        self._newest[table, column] = current
        return max((value for value in current.values() if value is not None), default=None)

    def _read(
        self, table: str, column: str, files: Iterable[StoredFile]
    ) -> dict[StoredFile, Instant | NoSuchColumn | None]:
        def read(file: StoredFile) -> tuple[StoredFile, Instant | NoSuchColumn | None] | None:
            try:
                with self.tables.open(table, file.path) as opened:
                    return file, newest_in_file(opened, column=column, place=file.path)
            except NoSuchColumn as error:
                return file, error
            except FileNotFoundError:
                return None  # gone since it was listed: the next poll tells

        with ThreadPoolExecutor(_READERS) as pool:
            return dict(answer for answer in pool.map(read, files) if answer is not None)

    def evaluate(self, table: str, expression: str) -> ExpressionValue:
        """The value of a Spark SQL expression over the table, run by DuckDB (C19); None when the table is not there.

        Dates come back as ``YYYY-MM-DD`` and timestamps as ISO-8601 UTC text. Only for roots on this machine.
        """
        storage = self.tables.storage
        if not isinstance(storage, LocalStorage):
            place = shown_root(self.root)
            message = f"a triggerExpr cannot be evaluated over the root {place!r}, which is not on this machine"
            fault = Fault("C19", "triggerExpr", message, "remove the triggerExpr, or use a local root")
            raise IllegalExpression(fault, conf=table)
        try:
            for package in ("duckdb", "sqlglot"):
                optional(package, needed_for="evaluating a triggerExpr")
        except CatalogError as error:
            raise _about(table, error) from error
        if self._expressions is None:
            self._expressions = Expressions(str(storage.root), self.expression_memory, self.expression_timeout)
        return self._expressions.value(table, expression)


def _about(table: str, error: ChrononError) -> CatalogError:
    return error if isinstance(error, CatalogError) and error.conf == table else CatalogError(error.fault, conf=table)
