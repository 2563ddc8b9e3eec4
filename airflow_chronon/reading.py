"""Files under a conf root: listed and read, each problem a fault."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from airflow_chronon.errors import Fault
from airflow_chronon.settings_file import cannot_read


def files_below(folder: Path, problems: list[Fault]) -> Iterator[Path]:
    """Every file below a folder, linked folders included, each once; a folder that cannot be listed becomes a problem, so
    that its confs do not just vanish."""

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            problems.append(cannot_read(error, what=f"the folder {error.filename}"))

    seen: set[tuple[int, int]] = set()
    for directory, folders, names in os.walk(folder, onerror=note, followlinks=True):
        at = os.stat(directory)
        if (at.st_dev, at.st_ino) in seen:  # a link that leads back
            folders[:] = []
            continue
        seen.add((at.st_dev, at.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        yield from (Path(directory, name) for name in sorted(names) if not name.startswith("."))
