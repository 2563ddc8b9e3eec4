"""Tables below a root: one folder each, named by the table's full name, in any storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from airflow_chronon.errors import CatalogError, Fault
from airflow_chronon.storage.files import LocalStorage, Storage, StorageError, StoredFile, open_storage
from airflow_chronon.storage.layout import is_data_file, is_hidden


@dataclass(frozen=True)
class Tables:
    """Reads the folders of tables. Errors are :class:`CatalogError`; a table that is not there is None."""

    storage: Storage

    def paths(self, table: str) -> Iterator[str] | None:
        """Every file of a table, relative to its folder; hidden folders are left out."""
        return self.storage.walk(check_table_name(table), skip=is_hidden)

    def files(self, table: str) -> Iterator[StoredFile] | None:
        """Like :meth:`paths`, with size and change of each file."""
        return self.storage.walk_files(check_table_name(table), skip=is_hidden)

    def data_files(self, table: str) -> list[str] | None:
        """The files that hold rows, relative to the table's folder."""
        paths = self.paths(table)
        return None if paths is None else [path for path in paths if is_data_file(path.rpartition("/")[2])]

    def open(self, table: str, path: str) -> BinaryIO:
        """Open one file for reading. Raises FileNotFoundError when it has gone since it was listed."""
        return self.storage.open(f"{table}/{path}")


def open_tables(root: str, *, options: Mapping[str, Any]) -> Tables:
    """The tables below a path or a URL that fsspec knows; see :func:`airflow_chronon.storage.files.open_storage`."""
    return Tables(open_storage(root, options=options, as_error=_catalog_error))


def local_tables(root: Path) -> Tables:
    """The tables below a folder of this machine."""
    return Tables(LocalStorage(root, as_error=_catalog_error))


def check_table_name(table: str) -> str:
    """The table's name, when it can be one folder below the root. Raises :class:`CatalogError` otherwise."""
    if not table or table.startswith(".") or any(sign in table for sign in "/\\\0"):
        raise CatalogError(
            Fault("catalog", "table", f"{table!r} cannot be a folder's name", "use a name such as data.checkouts")
        )
    return table


def _catalog_error(error: StorageError) -> CatalogError:
    """What an error of the storage means to those who read tables."""
    if isinstance(error.cause, NotADirectoryError):
        problem = f"{error.place} is a file where the folder of a table should be"
        return CatalogError(Fault("catalog", "", problem, "move it out of the root"))
    is_denied = isinstance(error.cause, PermissionError)
    remedy = "give this process the right to read it" if is_denied else "check the root and the storage"
    return CatalogError(Fault("catalog", "", str(error), remedy))
