"""Small files below one root: a folder of this machine, or any store that fsspec reaches.

A file is there as a whole or not at all, whenever the writer is killed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.extras import optional

_TEMPORARY = ".tmp-"
_READERS = 8  # in an object store each file is a round trip


class StateError(ChrononError):
    """The state folder cannot be read or written."""


class StateFiles(Protocol):
    """Paths are relative, with slashes. Errors are :class:`StateError`; what is not there is None or nothing."""

    @property
    def place(self) -> str:
        """The root, for people."""

    def names(self, folder: str) -> tuple[str, ...]:
        """The names of the files and folders in a folder, sorted; empty when it is not there."""

    def read(self, path: str) -> bytes | None: ...

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The whole files by their paths, those that are there; side by side in an object store."""

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file, in place of an older one."""

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is not there."""


@dataclass(frozen=True)
class LocalStateFiles:
    """A folder of this machine; made when something is first written."""

    root: Path

    @property
    def place(self) -> str:
        return str(self.root)

    def names(self, folder: str) -> tuple[str, ...]:
        with _guarded("list", self.root / folder):
            try:
                found = os.listdir(self.root / folder)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        return tuple(sorted(name for name in found if not name.startswith(_TEMPORARY)))

    def read(self, path: str) -> bytes | None:
        with _guarded("read", self.root / path):
            try:
                return (self.root / path).read_bytes()
            except FileNotFoundError:
                return None

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: data for path in paths if (data := self.read(path)) is not None}

    def write(self, path: str, data: bytes) -> None:
        target = self.root / path
        with _guarded("write", target):
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=target.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(temporary, 0o640)  # records hold settings; whoever runs the tasks shares the group
                os.replace(temporary, target)
                _flush(target.parent)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise

    def remove(self, path: str) -> None:
        with _guarded("remove", self.root / path), contextlib.suppress(FileNotFoundError):
            (self.root / path).unlink()
            _flush((self.root / path).parent)


@dataclass(frozen=True)
class RemoteStateFiles:
    """A path of an fsspec filesystem: an object store, which shows a written object as a whole."""

    filesystem: Any
    root: str

    @property
    def place(self) -> str:
        return self.root

    def names(self, folder: str) -> tuple[str, ...]:
        path = f"{self.root}/{folder}"
        with _guarded("list", path):
            self.filesystem.invalidate_cache(path)  # drivers remember listings
            try:
                found = self.filesystem.ls(path, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        names = (str(each).rstrip("/").rpartition("/")[2] for each in found)
        return tuple(sorted(name for name in names if name))

    def read(self, path: str) -> bytes | None:
        with _guarded("read", f"{self.root}/{path}"):
            try:
                data: bytes = self.filesystem.cat_file(f"{self.root}/{path}")
            except FileNotFoundError:
                return None
        return data

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        asked = list(paths)
        with ThreadPoolExecutor(_READERS) as pool:
            found = zip(asked, pool.map(self.read, asked), strict=True)
            return {path: data for path, data in found if data is not None}

    def write(self, path: str, data: bytes) -> None:
        target = f"{self.root}/{path}"
        with _guarded("write", target):
            self.filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
            self.filesystem.pipe_file(target, data)

    def remove(self, path: str) -> None:
        target = f"{self.root}/{path}"
        with _guarded("remove", target), contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(target)


def open_state_files(root: str, *, options: Mapping[str, Any] | None = None) -> StateFiles:
    """The files below a root: a path of this machine, or a URL such as ``s3://bucket/chronon_state``.

    Nothing is made or asked yet. Raises ``ChrononError`` for a protocol that nothing serves.
    """
    protocol, sign, rest = root.partition("://")
    if not sign or protocol in ("file", "local"):
        return LocalStateFiles(Path(rest if sign else root).expanduser().absolute())
    fsspec = optional("fsspec", needed_for=f"the state root {root!r}")
    with _guarded("open", root):
        filesystem, path = fsspec.core.url_to_fs(root, **dict(options or {}))
    return RemoteStateFiles(filesystem, str(path).rstrip("/"))


def _flush(folder: Path) -> None:
    """Put the names in a folder onto its disk, so that no power cut takes them back (S9)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _guarded(doing: str, place: object) -> Iterator[None]:
    """One sentence for whatever a disk or a driver raises: drivers do not agree on their exceptions."""
    try:
        yield
    except StateError:
        raise
    except Exception as error:
        reason = str(getattr(error, "strerror", None) or error).strip().splitlines()
        problem = f"cannot {doing} {place}: {reason[0] if reason else type(error).__name__}"
        remedy = "check the rights and the space there, or set [chronon] state_root"
        raise StateError(Fault("state", "[chronon] state_root", problem, remedy)) from error
