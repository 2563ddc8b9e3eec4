"""Tables below a root: one folder each, named by the table's full name, in any storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from airflow_chronon.errors import CatalogError, Fault
from airflow_chronon.storage.files import Storage, StorageError, StoredFile
from airflow_chronon.storage.layout import is_data_file, is_hidden

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Tables:
    """Reads the folders of tables. Errors are :class:`CatalogError`; a table that is not there is None."""

    storage: Storage

    def paths(self, table: str) -> Iterator[str] | None:
        """Every file of a table, relative to its folder; hidden folders are left out."""
        with _catalog_errors():
            found = self.storage.walk(check_table_name(table), skip=is_hidden)
        return None if found is None else _guarded(found)

    def files(self, table: str) -> Iterator[StoredFile] | None:
        """Like :meth:`paths`, with size and change of each file."""
        with _catalog_errors():
            found = self.storage.walk_files(check_table_name(table), skip=is_hidden)
        return None if found is None else _guarded(found)

    def data_files(self, table: str) -> list[str] | None:
        """The files that hold rows, relative to the table's folder."""
        paths = self.paths(table)
        return None if paths is None else [path for path in paths if is_data_file(path.rpartition("/")[2])]

    def open(self, table: str, path: str) -> BinaryIO:
        """Open one file for reading. Raises FileNotFoundError when it has gone since it was listed."""
        with _catalog_errors():
            return self.storage.open(f"{table}/{path}")


def check_table_name(table: str) -> str:
    """The table's name, when it can be one folder below the root. Raises :class:`CatalogError` otherwise."""
    if not table or table.startswith(".") or any(sign in table for sign in "/\\\0"):
        raise CatalogError(
            Fault("catalog", "table", f"{table!r} cannot be a folder's name", "use a name such as data.checkouts")
        )
    return table


@contextmanager
def _catalog_errors() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise catalog_error(error) from error


def catalog_error(error: StorageError) -> CatalogError:
    """What an error of the storage means to those who read tables."""
    if isinstance(error.cause, NotADirectoryError):
        problem = f"{error.place} is a file where the folder of a table should be"
        return CatalogError(Fault("catalog", "", problem, "move it out of the root"))
    is_denied = isinstance(error.cause, PermissionError)
    remedy = "give this process the right to read it" if is_denied else "check the root and the storage"
    return CatalogError(Fault("catalog", "", str(error), remedy))


def _guarded(found: Iterator[_Found]) -> Iterator[_Found]:
    with _catalog_errors():
        yield from found
