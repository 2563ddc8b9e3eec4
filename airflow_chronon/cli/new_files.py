"""Making files where there are none: nothing that is there is written over, and all are made or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from os import path as os_path
from pathlib import Path

from airflow_chronon.errors import ChrononError, Fault, readable
from airflow_chronon.storage.files import read_regular_file


class FileState(Enum):
    """What is where a file is to be made."""

    NEW = "new"  #: nothing
    SAME = "same"  #: a file with this very text
    OTHER = "other"  #: anything else, which stays as it is


def state_of(path: Path, text: str) -> FileState:
    """What is at a path already; a link that leads nowhere is something too."""
    if not os_path.lexists(path):
        return FileState.NEW
    wanted = text.encode()
    try:
        is_same = read_regular_file(path, most=len(wanted) + 1) == wanted
    except OSError:
        is_same = False
    return FileState.SAME if is_same else FileState.OTHER


def make_files(texts: Mapping[Path, str]) -> None:
    """Make the files, and the folder of each where it is missing.

    Raises ``ChrononError`` where one cannot be made; those that were made are gone again then.
    """
    made: list[Path] = []
    path = Path()
    try:
        for path, text in texts.items():
            if not os_path.lexists(path.parent):
                path.parent.mkdir()
                made.append(path.parent)
            with path.open("x", encoding="utf-8") as file:
                made.append(path)
                file.write(text)
    except OSError as error:
        for each in reversed(made):
            with suppress(OSError):
                if each.is_dir():
                    each.rmdir()
                else:
                    each.unlink()
        problem = f"the file {readable(str(path))} cannot be made: {error.strerror or error}"
        remedy = "nothing was written; run it as a user who may write there"
        raise ChrononError(Fault("input", "FOLDER", problem, remedy)) from None
