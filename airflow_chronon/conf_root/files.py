"""Files under a conf root: listed and read, each problem a fault."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from airflow_chronon.conf_root.settings import cannot_read
from airflow_chronon.errors import Fault


def files_below(folder: Path, problems: list[Fault]) -> Iterator[Path]:
    """Every file below a folder, linked folders included, each once; a folder that cannot be listed becomes a problem, so
    that its confs do not just vanish (C23)."""

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            problems.append(cannot_read(error, what=f"the folder {error.filename}"))

    if os.path.lexists(folder) and not folder.is_dir():
        problems.append(no_folder(folder))
        return
    seen: set[tuple[int, int]] = set()
    for directory, folders, names in os.walk(folder, onerror=note, followlinks=True):
        at = os.stat(directory)
        if (at.st_dev, at.st_ino) in seen:  # a link that leads back
            folders[:] = []
            continue
        seen.add((at.st_dev, at.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for path in (Path(directory, name) for name in sorted(names) if not name.startswith(".")):
            if path.is_symlink() and not os.path.exists(path) and not _is_name_of_file(path.name):
                problems.append(no_folder(path))  # what was in that folder counts as present
            else:
                yield path


def _is_name_of_file(name: str) -> bool:
    """Whether a link that leads nowhere stood for one conf (``name__version``) or one job, and not for a folder of them."""
    return "__" in name or name.endswith((".yaml", ".yml"))


def no_folder(path: Path) -> Fault:
    """A name that is there and leads to no folder: a mount or a checkout that is gone for a moment, perhaps (C23)."""
    is_link = path.is_symlink()
    problem = f"{path} is a link that leads nowhere" if is_link else f"{path} is not a folder"
    return Fault("input", "", problem, "mend the link, or remove it" if is_link else "put a folder there, or remove it")
