"""DuckDB over Parquet folders: a connection, and views that stand for the tables of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.extras import optional
from airflow_chronon.sql.spark import TableName
from airflow_chronon.storage.files import LocalStorage
from airflow_chronon.storage.layout import is_data_file

if TYPE_CHECKING:
    import duckdb

#: Nothing is fetched from anywhere while a query runs; time has one zone.
_SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


class UnknownTable(ChrononError):
    """A table of a query has no data below the root."""


def connect(settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A DuckDB database in memory, in UTC. Raises :class:`airflow_chronon.extras.MissingExtra`."""
    module = optional("duckdb", needed_for="running SQL over Parquet folders")
    connection: duckdb.DuckDBPyConnection = module.connect(":memory:", config={**_SETTINGS, **settings})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def literal(text: str) -> str:
    """The text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class ParquetViews:
    """Views over the tables below a root; partition columns are text, and files of other partitions are not opened."""

    storage: LocalStorage

    def bind(
        self, connection: duckdb.DuckDBPyConnection, tables: Iterable[TableName], *, by_name: bool = False
    ) -> None:
        """Create (or replace) one view per table. ``by_name`` reads the footer of every file and unites their columns;
        otherwise the newest file's columns count. Raises :class:`UnknownTable` before any view is made."""
        for table, files in [(table, self._files(table)) for table in dict.fromkeys(tables)]:
            schema = identifier(table.schema or "main")
            listed = ", ".join(map(literal, files))
            options = f"hive_partitioning = true, hive_types_autocast = false, union_by_name = {str(by_name).lower()}"
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            view = f"{schema}.{identifier(table.name)}"
            connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM read_parquet([{listed}], {options})")

    def _files(self, table: TableName) -> list[str]:
        """The table's data files, the newest partition's first: it is the one whose columns count."""
        folders = [str(table)]
        if table.schema.count(".") == 1:
            folders.append(f"{table.schema.partition('.')[2]}.{table.name}")  # spark_catalog.db.table is db.table
        for folder in folders:
            paths = self.storage.paths(folder)
            if paths is not None:
                files = sorted((path for path in paths if is_data_file(path.rpartition("/")[2])), reverse=True)
                if not files:
                    raise UnknownTable(self._fault(table, "has no data files"))
                return [_unglobbed(f"{self.storage.root / folder}/{path}") for path in files]
        raise UnknownTable(self._fault(table, "is not there"))

    def _fault(self, table: TableName, problem: str) -> Fault:
        remedy = f"let its producer write it to {self.storage.root / str(table)}, or correct the name"
        return Fault("sql", "", f"the table {table} {problem}", remedy)


def _unglobbed(path: str) -> str:
    """The path with the signs that DuckDB takes for a pattern made literal."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)
