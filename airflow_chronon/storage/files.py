"""Where table folders lie: a local disk, or any store that fsspec reaches.

The local disk is read with ``os.scandir``, which tells files from folders without asking about each; a store with one
recursive listing, since there every call is a round trip.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR
from typing import Any, BinaryIO, NoReturn, Protocol, cast

from airflow_chronon.errors import CatalogError, Fault
from airflow_chronon.extras import missing_extra, optional
from airflow_chronon.storage.layout import is_hidden

#: The extra that brings the fsspec driver of each protocol.
_PROTOCOL_EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl", "azure"), "azure"),
}
_CHANGED_KEYS = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "created")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a table and what tells it from a rewritten one."""

    path: str  #: relative to the table's folder
    size: int
    changed: str  #: time of the last change, or the store's tag


class Storage(Protocol):
    """Reads the folders of tables. Errors are :class:`CatalogError`; a missing table is None."""

    @property
    def local_root(self) -> Path | None:
        """The root as a folder of this machine, or None."""

    def paths(self, table: str) -> Iterator[str] | None:
        """Every visible file of a table and every ``_SUCCESS``, relative to the table's folder."""

    def files(self, table: str) -> Iterator[StoredFile] | None:
        """Like :meth:`paths`, with size and change of each file."""

    def open(self, table: str, path: str) -> BinaryIO:
        """Open one file for reading. Raises FileNotFoundError when it has gone since it was listed."""


@lru_cache(maxsize=4096)
def _is_visible(folder: str) -> bool:
    """Whether no part of a folder's path, relative to its table, is hidden."""
    return not any(map(is_hidden, folder.split("/"))) if folder else True


def check_table_name(table: str) -> str:
    """The table's name, when it can be one folder below the root. Raises :class:`CatalogError` otherwise."""
    if not table or table.startswith(".") or any(sign in table for sign in "/\\\0"):
        raise CatalogError(
            Fault("catalog", "table", f"{table!r} cannot be a folder's name", "use a name such as data.checkouts")
        )
    return table


def _cannot(doing: str, place: str, error: BaseException) -> NoReturn:
    reason = str(getattr(error, "strerror", None) or error).strip().splitlines()
    text = f"cannot {doing} {place}: {reason[0] if reason else type(error).__name__}"
    remedy = (
        "give this process the right to read it"
        if isinstance(error, PermissionError)
        else "check the root and the storage"
    )
    raise CatalogError(Fault("catalog", "", text, remedy)) from error


def _not_a_folder(place: str) -> NoReturn:
    raise CatalogError(
        Fault("catalog", "", f"{place} is a file where the folder of a table should be", "move it out of the root")
    )


@contextmanager
def _reading(place: str, doing: str = "list") -> Iterator[None]:
    """Turn whatever a storage driver raises into one sentence: drivers do not agree on their exceptions."""
    try:
        yield
    except (CatalogError, FileNotFoundError):
        raise
    except Exception as error:
        _cannot(doing, place, error)


@dataclass(frozen=True)
class LocalStorage:
    """Tables below a folder of this machine."""

    root: Path

    @property
    def local_root(self) -> Path | None:
        return self.root

    def paths(self, table: str) -> Iterator[str] | None:
        folder = self._folder(table)
        return None if folder is None else (path for path, _ in self._walk(folder))

    def files(self, table: str) -> Iterator[StoredFile] | None:
        folder = self._folder(table)
        return None if folder is None else self._files(folder)

    def open(self, table: str, path: str) -> BinaryIO:
        place = self.root / table / path
        with _reading(str(place), "read"):
            return place.open("rb")

    def _folder(self, table: str) -> str | None:
        folder = self.root / check_table_name(table)
        with _reading(str(folder)):
            try:
                mode = folder.stat().st_mode  # `exists` takes what may not be read for missing, from Python 3.14 on
            except (FileNotFoundError, NotADirectoryError):
                return None
            if not S_ISDIR(mode):
                _not_a_folder(str(folder))
        return str(folder)

    @staticmethod
    def _walk(folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Every visible file with its path; folders are asked for their entries and nothing else."""
        waiting = [(folder, "")]
        while waiting:
            place, prefix = waiting.pop()
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        if not entry.is_dir():
                            yield prefix + entry.name, entry
                        elif not is_hidden(entry.name):
                            waiting.append((entry.path, f"{prefix}{entry.name}/"))
            except FileNotFoundError:
                continue  # removed by its owner while it was listed
            except OSError as error:
                _cannot("list", place, error)

    def _files(self, folder: str) -> Iterator[StoredFile]:
        for path, entry in self._walk(folder):
            try:
                stat = entry.stat()
            except FileNotFoundError:
                continue
            yield StoredFile(path, stat.st_size, str(stat.st_mtime_ns))


@dataclass(frozen=True)
class RemoteStorage:
    """Tables below a path of an fsspec filesystem."""

    filesystem: Any
    root: str

    @property
    def local_root(self) -> Path | None:
        return None

    def paths(self, table: str) -> Iterator[str] | None:
        found = self._find(table)
        return None if found is None else iter(found)

    def files(self, table: str) -> Iterator[StoredFile] | None:
        found = self._find(table)
        if found is None:
            return None
        return (
            StoredFile(
                path, int(info.get("size") or 0), next((str(info[key]) for key in _CHANGED_KEYS if info.get(key)), "")
            )
            for path, info in found.items()
        )

    def open(self, table: str, path: str) -> BinaryIO:
        place = f"{self.root}/{table}/{path}"
        with _reading(place, "read"):
            return cast("BinaryIO", self.filesystem.open(place, "rb"))

    def _find(self, table: str) -> dict[str, dict[str, Any]] | None:
        folder = f"{self.root}/{check_table_name(table)}"
        try:
            with _reading(folder):
                self.filesystem.invalidate_cache(folder)  # drivers remember listings; a poll must see what is new
                found: dict[str, dict[str, Any]] = self.filesystem.find(folder, detail=True)
                if not found:
                    return {} if self.filesystem.isdir(folder) else None
        except FileNotFoundError:
            return None
        start = len(self.filesystem._strip_protocol(folder)) + 1
        if any(len(path) < start for path in found):
            _not_a_folder(folder)
        return {path[start:]: info for path, info in found.items() if _is_visible(path[start:].rpartition("/")[0])}


def open_storage(root: str, *, options: Mapping[str, Any]) -> Storage:
    """The storage of a root: a path of this machine, or a URL such as ``s3://bucket/warehouse``.

    Raises :class:`CatalogError` for a protocol that nothing serves, naming the extra that would.
    """
    protocol, sign, rest = root.partition("://")
    if not sign or protocol in ("file", "local"):
        return LocalStorage(Path(rest if sign else root).expanduser().absolute())
    fsspec = optional("fsspec", needed_for=f"the root {root!r}")
    opener: Callable[..., tuple[Any, str]] = fsspec.core.url_to_fs
    try:
        filesystem, path = opener(root, **options)
    except ImportError as error:
        extra = _PROTOCOL_EXTRAS.get(protocol, "filesystem")
        raise missing_extra(
            package=f"fsspec driver for {protocol}", extra=extra, needed_for=f"the root {root!r}"
        ) from error
    except Exception as error:
        _cannot("open", root, error)
    return RemoteStorage(filesystem, path.rstrip("/"))
