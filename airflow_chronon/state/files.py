"""The files of the state folder: a storage whose errors say what to do about ``[chronon] state_root``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.storage.files import Storage, StorageError, open_storage


class StateError(ChrononError):
    """The state folder cannot be read or written."""


@dataclass(frozen=True)
class StateFiles:
    """Small files below the state root. Paths are relative, with slashes. Errors are :class:`StateError`.

    A file is there as a whole or not at all, whenever the writer is killed.
    """

    storage: Storage

    @property
    def place(self) -> str:
        """The root, for people."""
        return self.storage.place

    def names(self, folder: str) -> tuple[str, ...]:
        """The names of the files and folders in a folder, sorted; empty when it is not there."""
        with _state_errors():
            return self.storage.names(folder)

    def read(self, path: str) -> bytes | None:
        """The whole file, or None when it is not there."""
        with _state_errors():
            return self.storage.read(path)

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The whole files by their paths, those that are there; side by side in an object store."""
        with _state_errors():
            return self.storage.read_many(paths)

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file, in place of an older one."""
        with _state_errors():
            self.storage.write(path, data)

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is not there."""
        with _state_errors():
            self.storage.remove(path)


def open_state_files(root: str, *, options: Mapping[str, Any] | None = None) -> StateFiles:
    """The files below a root: a path of this machine, or a URL such as ``s3://bucket/chronon_state``.

    Nothing is made or asked yet. Raises ``ChrononError`` for a protocol that nothing serves.
    """
    with _state_errors():
        return StateFiles(open_storage(root, options=options))


@contextmanager
def _state_errors() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        remedy = "check the rights and the space there, or set [chronon] state_root"
        raise StateError(Fault("state", "[chronon] state_root", str(error), remedy)) from error
