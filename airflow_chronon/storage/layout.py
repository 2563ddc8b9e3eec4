"""Hive-style folders: which partitions the files of a table make up (C7, C20).

Pure: paths come in as text, relative to the table's folder, with ``/`` between their parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_chronon.core.partitions.labels import COLUMN_NAME, unescape_label
from airflow_chronon.core.partitions.listing import LandedWhen, TableListing, TableState
from airflow_chronon.errors import CatalogError, Fault

SUCCESS_FILE = "_SUCCESS"

_PARTITION_FOLDER = re.compile(f"{COLUMN_NAME}=")
_HIDDEN = frozenset("._")  #: what names begin with that may be of no data
_FOLDER_MARKER = "_$folder$"  # what Hadoop leaves in object stores for an empty folder


def is_partition_folder(name: str) -> bool:
    """Whether a folder's name is ``column=label``; such a name may start with ``_`` (a column such as ``_HR``)."""
    return _PARTITION_FOLDER.match(name) is not None


def is_hidden(name: str) -> bool:
    """Whether a file or folder holds no data: its name starts with ``.`` or ``_``, and it is not a partition folder."""
    if name[:1] not in _HIDDEN:  # most names, and there are hundreds of thousands
        return False
    return name[0] == "." or not is_partition_folder(name)


def is_data_file(name: str) -> bool:
    """Whether a file holds rows of the table. Raises :class:`CatalogError` for a file named like a partition folder."""
    if is_hidden(name) or name.endswith(_FOLDER_MARKER):
        return False
    if "=" in name and is_partition_folder(name) and "." not in name.partition("=")[2]:
        raise CatalogError(
            Fault(
                "catalog",
                "",
                f"{name!r} is a file where a partition folder should be",
                "move the file out of the table",
            )
        )
    return True


def partition_of(folder: str) -> dict[str, str]:
    """The partition values that a folder's path spells, unescaped: ``ds=2026-01-01/hr=23%3A00`` and the like."""
    return _partition_of(part for part in folder.split("/") if is_partition_folder(part))


def _partition_of(parts: Iterable[str]) -> dict[str, str]:
    """The values that the names of partition folders spell."""
    pairs = (part.split("=", 1) for part in parts)
    return {column: unescape_label(label) if "%" in label else label for column, label in pairs}


@dataclass(slots=True)
class _Seen:
    data: bool = False
    success: bool = False


def listing_of(files: Iterable[str], *, landed: LandedWhen) -> TableListing:
    """The landed partitions that these files make up; the table is there.

    One mapping per leaf: a folder that holds a ``_SUCCESS`` for the partitions below it is not a partition itself.
    Raises :class:`CatalogError` for a file named like a partition folder.
    """
    folders: dict[str, _Seen | None] = {}
    partitions: dict[tuple[str, ...], _Seen] = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            parts = folder.split("/") if folder else []
            key = tuple(filter(is_partition_folder, parts))
            hidden = len(key) < len(parts) and any(map(is_hidden, parts))  # a partition folder never is
            folders[folder] = None if hidden else partitions.setdefault(key, _Seen())
        seen = folders[folder]
        if seen is None:
            continue
        if name == SUCCESS_FILE:
            seen.success = True
        elif not seen.data and is_data_file(name):
            seen.data = True
    table = partitions.pop((), _Seen())
    if table.data and not partitions:
        return TableListing(TableState.UNPARTITIONED)
    above = {key[:depth] for key in partitions for depth in range(1, len(key))}
    leaves = (key for key, seen in partitions.items() if seen.data or (seen.success and key not in above))
    if landed is LandedWhen.SUCCESS_FILE:
        marked = {key for key, seen in partitions.items() if seen.success}
        leaves = (key for key in leaves if any(key[:depth] in marked for depth in range(1, len(key) + 1)))
    return TableListing(TableState.PARTITIONED, tuple(map(_partition_of, leaves)))
