"""Files below one root: a folder of this machine, or any store that fsspec reaches.

Whoever keeps something in files (catalogs their tables, a deployment its state) opens a :class:`Storage` and says which
error a :class:`StorageError` is there.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, BinaryIO, Protocol, TypeAlias, cast

from airflow_chronon.errors import shown_address
from airflow_chronon.extras import missing_extra, optional

#: The extra that brings the fsspec driver of each protocol.
_PROTOCOL_EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl", "azure"), "azure"),
}
_EXTRA_DRIVERS = {"s3": "s3fs", "gcs": "gcsfs", "azure": "adlfs"}  #: the package of each extra that serves a store
_CHANGED_KEYS = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "created")
_TEMPORARY = ".tmp-"
_READERS = 8  # in an object store each file is a round trip

Skip = Callable[[str], bool]


class StorageError(Exception):
    """A file or folder cannot be listed, read or written; the text says which, and why."""

    def __init__(self, doing: str, place: object, cause: BaseException) -> None:
        self.place, self.cause = shown_address(str(place)), cause
        reason = shown_address(str(getattr(cause, "strerror", None) or cause)).strip().splitlines()
        super().__init__(f"cannot {doing} {self.place}: {reason[0] if reason else type(cause).__name__}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file and what tells it from a rewritten one."""

    path: str  #: relative to the folder that was walked
    size: int
    changed: str  #: time of the last change, or the store's tag


#: What a storage raises for an error; by default the error itself.
AsError: TypeAlias = Callable[[StorageError], Exception]


class Storage(Protocol):
    """Paths are text below the root, with slashes. Every error is what its opener makes of a :class:`StorageError`."""

    @property
    def place(self) -> str:
        """The root, for people."""

    def names(self, folder: str) -> tuple[str, ...]:
        """The names of the files and folders in a folder, sorted; empty when it is not there."""

    def read(self, path: str) -> bytes | None:
        """The whole file, or None when it is not there."""

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | None]:
        """The whole files by their paths, those that are there; None for what is no file."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading here and there. Raises FileNotFoundError when it is not there."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file in place of an older one: a reader, and a crash, see the old one or the new one as a whole."""

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is not there."""

    def move(self, path: str, to: str) -> None:
        """Move what stands under a path, a folder too, in place of an older file; nothing happens when nothing does."""

    def walk(self, folder: str, *, skip: Skip) -> Iterator[str] | None:
        """The path of every file below a folder, relative to it, as they are found; None when it is not there.

        Folders whose names ``skip`` accepts are left out. Raises with a ``cause`` NotADirectoryError for a file.
        """

    def walk_files(self, folder: str, *, skip: Skip) -> Iterator[StoredFile] | None:
        """Like :meth:`walk`, with size and change of each file."""


def _itself(error: StorageError) -> Exception:
    return error


@dataclass(frozen=True)
class _WithErrors:
    """One kind of error for whatever a disk or a driver raises: drivers do not agree on their exceptions."""

    as_error: AsError = field(default=_itself, kw_only=True, repr=False)

    def _error(self, doing: str, place: object, cause: Exception) -> Exception:
        return self.as_error(StorageError(doing, place, cause))

    @contextmanager
    def _guarded(self, doing: str, place: object) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:
            raise self._error(doing, place, error) from error


@dataclass(frozen=True)
class LocalStorage(_WithErrors):
    """A folder of this machine, made when something is first written.

    Folders are walked with ``os.scandir``, which tells files from folders without asking about each.
    """

    root: Path

    @property
    def place(self) -> str:
        return str(self.root)

    def names(self, folder: str) -> tuple[str, ...]:
        place = self.root / folder
        with self._guarded("list", place):
            try:
                found = os.listdir(place)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        return tuple(sorted(name for name in found if not name.startswith(_TEMPORARY)))

    def read(self, path: str) -> bytes | None:
        place = self.root / path
        with suppress(FileNotFoundError), self._guarded("read", place):
            return read_regular_file(place)
        return None

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        for path in paths:
            place = self.root / path
            with suppress(FileNotFoundError), self._guarded("read", place):
                try:
                    found[path] = read_regular_file(place)
                except NotAFile:
                    found[path] = None
        return found

    def open(self, path: str) -> BinaryIO:
        place = self.root / path
        with self._guarded("read", place):
            return place.open("rb")

    def write(self, path: str, data: bytes) -> None:
        place = self.root / path
        try:
            make_folder(place.parent)
            replace_file(place, data, permissions=0o640)  # state holds settings; who runs the tasks shares the group
        except Exception as error:
            raise self._error("write", place, error) from error

    def remove(self, path: str) -> None:
        place = self.root / path
        with self._guarded("remove", place):
            try:
                place.unlink()
            except FileNotFoundError:
                return
            flush(place.parent)

    def move(self, path: str, to: str) -> None:
        place, target = self.root / path, self.root / to
        with suppress(FileNotFoundError), self._guarded("move", place):
            make_folder(target.parent)
            os.replace(place, target)
            flush(target.parent)
            flush(place.parent)

    def walk(self, folder: str, *, skip: Skip) -> Iterator[str] | None:
        place = self._folder(folder)
        return None if place is None else (path for path, _ in self._walk(place, skip))

    def walk_files(self, folder: str, *, skip: Skip) -> Iterator[StoredFile] | None:
        place = self._folder(folder)
        return None if place is None else self._walk_files(place, skip)

    def _folder(self, folder: str) -> str | None:
        place = self.root / folder
        with self._guarded("list", place):
            try:
                mode = place.stat().st_mode  # `exists` takes what may not be read for missing, from Python 3.14 on
            except (FileNotFoundError, NotADirectoryError):
                return None
            if not S_ISDIR(mode):
                raise NotADirectoryError("it is a file")
        return str(place)

    def _walk(self, folder: str, skip: Skip) -> Iterator[tuple[str, os.DirEntry[str]]]:
        waiting = [(folder, "")]
        while waiting:
            place, prefix = waiting.pop()
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        if not entry.is_dir():
                            yield prefix + entry.name, entry
                        elif not skip(entry.name):
                            waiting.append((entry.path, f"{prefix}{entry.name}/"))
            except FileNotFoundError:
                continue  # removed by its owner while it was listed
            except OSError as error:
                raise self._error("list", place, error) from error

    def _walk_files(self, folder: str, skip: Skip) -> Iterator[StoredFile]:
        for path, entry in self._walk(folder, skip):
            try:
                stat = entry.stat()
            except FileNotFoundError:
                continue
            yield StoredFile(path, stat.st_size, str(stat.st_mtime_ns))


@dataclass(frozen=True)
class RemoteStorage(_WithErrors):
    """A path of an fsspec filesystem: an object store, which shows a written object as a whole.

    A folder is walked with one recursive listing, since every call is a round trip.
    """

    filesystem: Any
    root: str

    @property
    def place(self) -> str:
        return self.root

    def names(self, folder: str) -> tuple[str, ...]:
        place = f"{self.root}/{folder}"
        with self._guarded("list", place):
            self.filesystem.invalidate_cache(place)  # drivers remember listings, and others write too
            try:
                found = self.filesystem.ls(place, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return ()
        names = (str(each).rstrip("/").rpartition("/")[2] for each in found)
        return tuple(sorted(name for name in names if name))

    def read(self, path: str) -> bytes | None:
        place = f"{self.root}/{path}"
        with suppress(FileNotFoundError), self._guarded("read", place):
            return cast("bytes", self.filesystem.cat_file(place))
        return None

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes | None]:
        asked = list(paths)  # none is a folder: there are only names with slashes
        pool = ThreadPoolExecutor(_READERS)
        try:
            found = zip(asked, pool.map(self.read, asked), strict=True)
            return {path: data for path, data in found if data is not None}
        finally:  # whoever is told to end does not wait for a read that hangs (S8)
            pool.shutdown(wait=False, cancel_futures=True)

    def open(self, path: str) -> BinaryIO:
        place = f"{self.root}/{path}"
        with self._guarded("read", place):
            return cast("BinaryIO", self.filesystem.open(place, "rb"))

    def write(self, path: str, data: bytes) -> None:
        place = f"{self.root}/{path}"
        try:
            self.filesystem.makedirs(place.rpartition("/")[0], exist_ok=True)
            self.filesystem.pipe_file(place, data)
        except Exception as error:
            raise self._error("write", place, error) from error

    def remove(self, path: str) -> None:
        place = f"{self.root}/{path}"
        with suppress(FileNotFoundError), self._guarded("remove", place):
            self.filesystem.rm_file(place)

    def move(self, path: str, to: str) -> None:
        data = self.read(path)
        if data is not None:
            self.write(to, data)
            self.remove(path)

    def walk(self, folder: str, *, skip: Skip) -> Iterator[str] | None:
        found = self._find(folder, skip)
        return None if found is None else iter(found)

    def walk_files(self, folder: str, *, skip: Skip) -> Iterator[StoredFile] | None:
        found = self._find(folder, skip)
        return None if found is None else (_stored(path, info) for path, info in found.items())

    def _find(self, folder: str, skip: Skip) -> dict[str, dict[str, Any]] | None:
        place = f"{self.root}/{folder}"
        with suppress(FileNotFoundError), self._guarded("list", place):
            self.filesystem.invalidate_cache(place)
            found: dict[str, dict[str, Any]] = self.filesystem.find(place, detail=True)
            if not found:
                return {} if self.filesystem.isdir(place) else None
            start = len(self.filesystem._strip_protocol(place)) + 1
            if any(len(path) < start for path in found):
                raise NotADirectoryError("it is a file")

            @lru_cache(maxsize=4096)
            def is_skipped(folder: str) -> bool:
                return folder != "" and any(map(skip, folder.split("/")))

            below = ((path[start:], info) for path, info in found.items())
            return {path: info for path, info in below if not is_skipped(path.rpartition("/")[0])}
        return None


def _stored(path: str, info: Mapping[str, Any]) -> StoredFile:
    changed = next((str(info[key]) for key in _CHANGED_KEYS if info.get(key)), "")
    return StoredFile(path, int(info.get("size") or 0), changed)


def open_storage(root: str, *, options: Mapping[str, Any] | None = None, as_error: AsError = _itself) -> Storage:
    """The storage of a root: a path of this machine, or a URL such as ``s3://bucket/warehouse``.

    Nothing is made or asked yet. A protocol that nothing serves is an error of the storage, and
    :class:`airflow_chronon.extras.MissingExtra` is raised when an extra would serve it.
    """
    if (folder := _local_folder(root)) is not None:
        return LocalStorage(folder, as_error=as_error)
    protocol = root.partition("://")[0]
    needed_for = f"the root {shown_root(root)!r}"
    extra = _PROTOCOL_EXTRAS.get(protocol, "filesystem")
    fsspec = optional("fsspec", needed_for=needed_for, extra=extra)
    try:
        filesystem, path = fsspec.core.url_to_fs(root, **(options or {}))
    except ImportError as error:
        raise missing_extra(package=f"fsspec driver for {protocol}", extra=extra, needed_for=needed_for) from error
    except Exception as error:
        raise as_error(StorageError("open", root, error)) from error
    return RemoteStorage(filesystem, str(path).rstrip("/"), as_error=as_error)


def driver_of(root: str) -> tuple[str, str] | None:
    """The module that serves a root, and the extra that brings it; None of a folder of this machine."""
    if _local_folder(root) is not None:
        return None
    extra = _PROTOCOL_EXTRAS.get(root.partition("://")[0], "filesystem")
    return _EXTRA_DRIVERS.get(extra, "fsspec"), extra


def shown_root(root: str) -> str:
    """A root for people: a whole path, or an address without its password (S4)."""
    folder = _local_folder(root)
    return shown_address(root).rstrip("/") if folder is None else str(folder)


def _local_folder(root: str) -> Path | None:
    """The folder of a root on this machine; None of any other."""
    protocol, sign, rest = root.partition("://")
    if sign and protocol not in ("file", "local"):
        return None
    return Path(rest if sign else root).expanduser().absolute()


class NotAFile(OSError):
    """A folder, a pipe or a device stands where a file should."""


def read_regular_file(path: Path, *, most: int | None = None) -> bytes:
    """The bytes of a file of this machine, or its first ``most``. Raises OSError, for what is no regular file
    :class:`NotAFile`.

    It is judged once it is open, so that it cannot be another one by then; a pipe without a writer is not waited for.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise NotAFile(errno.EINVAL, "it is not a regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read() if most is None else file.read(most)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, permissions: int) -> None:
    """Write a file of this machine in place of an older one, whole and on disk when this returns. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, permissions)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    flush(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder of this machine and those above it that are missing, on disk when this returns. Raises OSError."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        flush(path.parent)


def flush(path: Path) -> None:
    """Put a file, or the names in a folder, from the machine's memory onto its disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
