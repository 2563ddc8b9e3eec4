"""DuckDB over Parquet folders: a connection, and views that stand for the tables of a query."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.extras import optional
from airflow_chronon.sql.spark import TableName
from airflow_chronon.storage.tables import local_tables

if TYPE_CHECKING:
    import duckdb

_Result = TypeVar("_Result")

#: Nothing is fetched from anywhere while a query runs, no variable of Python is a table, and nobody's secrets are read.
_SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
}


class UnreadableTable(ChrononError):
    """A table of a query cannot be read; the text says why."""


class UnknownTable(UnreadableTable):
    """A table of a query has no data below the root."""

    def __init__(self, fault: Fault, *, table: str) -> None:
        super().__init__(fault)
        self.table = table


class LeadsOutside(UnreadableTable):
    """A table of a query holds a link that leads out of the root (S3)."""


@dataclass(frozen=True)
class Budget:
    """What the queries of one connection may take."""

    memory: str  #: DuckDB's own words, such as ``2GB``
    spill: str = "0GB"  #: how much may be written to ``spill_folder`` when memory is short
    spill_folder: str = ""  #: made when it is needed; without one nothing is written
    threads: int | None = None  #: None leaves it to DuckDB


def connect(root: Path, budget: Budget) -> duckdb.DuckDBPyConnection:
    """A DuckDB database in memory, in UTC, that reaches the files below ``root`` and nothing else (S3).

    No statement can change that any more, nor the budget. Raises :class:`airflow_chronon.extras.MissingExtra`.
    """
    module = optional("duckdb", needed_for="running SQL over Parquet folders")
    settings = {
        **_SETTINGS,
        "memory_limit": budget.memory,
        "temp_directory": budget.spill_folder,
    }
    if budget.threads is not None:
        settings["threads"] = budget.threads
    connection: duckdb.DuckDBPyConnection = module.connect(":memory:", config=settings)
    connection.execute("SET TimeZone = 'UTC'")
    # told when it opens, DuckDB before 2.0 shows this limit and does not keep to it
    connection.execute(f"SET max_temp_directory_size = {literal(budget.spill)}")
    # a scan names its files as patterns (see `unglobbed`), and DuckDB judges the pattern as well as the file
    reachable = ", ".join(literal(text) for text in dict.fromkeys((str(root), unglobbed(str(root)))))
    connection.execute(f"SET allowed_directories = [{reachable}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def literal(text: str) -> str:
    """The text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def scan(files: Iterable[str], *, by_name: bool) -> str:
    """The rows of Parquet files as a table function; partition columns, which their folders name, are text.

    ``by_name`` opens the footer of every file and unites their columns; otherwise the first file's columns count.
    """
    listed = ", ".join(literal(unglobbed(path)) for path in files)
    options = f"hive_partitioning = true, hive_types_autocast = false, union_by_name = {str(by_name).lower()}"
    return f"read_parquet([{listed}], {options})"


def tried_by_name(work: Callable[[bool], _Result]) -> _Result:
    """``work(False)``, and ``work(True)`` when that fails for want of a column; then the first error counts.

    For tables whose files differ in their columns: uniting them by name (see :func:`scan`) opens every file, so it
    waits until a query needs it.
    """
    import duckdb

    try:
        return work(False)
    except duckdb.Error as first:
        # A column that the newest file lacks, or one that an older file lacks: DuckDB's majors raise different errors.
        if not isinstance(first, duckdb.BinderException) and "union_by_name" not in str(first):
            raise
        try:
            return work(True)
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            raise first from None


def data_files(root: Path, table: str) -> list[str]:
    """The data files of a table below a root, relative to its folder.

    Raises :class:`UnknownTable` when it has none, and :class:`LeadsOutside` for a link that leads out of the root.
    """
    found = local_tables(root).data_files(table)
    if not found:
        problem = f"the table {table} {'is not there' if found is None else 'has no data files'}"
        remedy = f"let its producer write it to {root / table}, or correct the name"
        raise UnknownTable(Fault("sql", "", problem, remedy), table=table)
    _check_links(root, table, found)
    return found


def _check_links(root: Path, table: str, files: Iterable[str]) -> None:
    folder, inside = f"{root}/{table}", os.path.realpath(root)
    places = {folder: None}
    for path in files:
        place = f"{folder}/{path}"
        while place not in places:
            places[place] = None
            place = place.rpartition("/")[0]
    for place in filter(os.path.islink, places):
        if os.path.commonpath((inside, os.path.realpath(place))) != inside:
            problem = f"the table {table} cannot be read: {place} is a link that leads out of {root}"
            raise LeadsOutside(Fault("S3", "", problem, "put the files themselves below the root, or mount them there"))


@dataclass(frozen=True)
class ParquetViews:
    """Views over the tables below a root, named as a query names them."""

    root: Path

    def bind(
        self, connection: duckdb.DuckDBPyConnection, tables: Iterable[TableName], *, by_name: bool = False
    ) -> None:
        """Create (or replace) one view per table; ``by_name`` as in :func:`scan`.

        Raises :class:`UnknownTable` or :class:`LeadsOutside` before any view is made.
        """
        for table, files in [(table, self._files(table)) for table in dict.fromkeys(tables)]:
            schema = identifier(table.schema or "main")
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            view = f"{schema}.{identifier(table.name)}"
            connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {scan(files, by_name=by_name)}")

    def _files(self, table: TableName) -> list[str]:
        """The table's data files, the newest partition's first: it is the one whose columns count."""
        folders = [str(table)]
        if table.schema.count(".") == 1:
            folders.append(f"{table.schema.partition('.')[2]}.{table.name}")  # spark_catalog.db.table is db.table
        there = local_tables(self.root)
        folder = next((folder for folder in folders if there.paths(folder) is not None), folders[0])
        return [f"{self.root / folder}/{path}" for path in sorted(data_files(self.root, folder), reverse=True)]


def unglobbed(path: str) -> str:
    """The path with the signs that DuckDB takes for a pattern made literal."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)
