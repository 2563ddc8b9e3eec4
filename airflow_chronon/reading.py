"""Files under a conf root: listed and read, each problem a fault."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from airflow_chronon.errors import Fault, Rejected
from airflow_chronon.settings_file import cannot_read


def files_below(folder: Path, problems: list[Fault]) -> Iterator[Path]:
    """Every file below a folder; a folder that cannot be listed becomes a problem, so that its confs do not just vanish."""

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            problems.append(cannot_read(error, what=f"the folder {error.filename}"))

    for directory, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        yield from (Path(directory, name) for name in sorted(names) if not name.startswith("."))


def read_bytes(path: Path, *, limit: int, kind: str) -> bytes:
    """The bytes of a regular file of at most ``limit``; ``kind`` is what it should be. Raises ``Rejected``, ``OSError``."""
    size = path.stat().st_size
    if size > limit:
        problem = f"the file has {_size(size)}, and no {kind} is larger than {_size(limit)}"
        raise Rejected([Fault("input", "", problem, "remove it, or put it outside the conf root")])
    if not path.is_file():
        raise Rejected([Fault("input", "", "it is no regular file", "remove it")])
    return path.read_bytes()


def _size(count: int) -> str:
    return f"{count // 1024**2} MB" if count >= 1024**2 else f"{count // 1024} KB"
