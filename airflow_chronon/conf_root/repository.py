"""Finding a Chronon repository below a folder: where its compiled tree is, or which command would compile it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from airflow_chronon.conf_root.confs import COMPILED_TREE, CONF_FOLDERS, OLDER_TREE, REPOSITORY_FILES
from airflow_chronon.core.bounds import quoted
from airflow_chronon.errors import ChrononError, Fault, readable

#: What each compiled tree is called, and the dialect whose compiler calls it so.
TREES = {COMPILED_TREE: "the zipline dialect", OLDER_TREE: "the older dialect"}
#: The command that compiles a repository, by the file of its teams.
COMPILERS = {
    "teams.py": f"zipline compile, which writes {COMPILED_TREE}/",
    "teams.json": f"PYTHONPATH=. compile.py --conf=FILE for each file of confs, which writes {OLDER_TREE}/",
}

_MOST_FOLDERS = 5_000  #: that are looked into, whatever lies there
_DEEPEST = 5  #: folders below the one that was named
_NEVER = frozenset({"node_modules", "site-packages", "venv", "__pycache__"})
_SHOWN = 5  #: repositories that a message names


@dataclass(frozen=True)
class Repository:
    """A folder with compiled confs: a conf root."""

    path: Path
    trees: tuple[str, ...] = ()  #: the names of its compiled trees; empty where the folder is one itself

    @property
    def dialects(self) -> tuple[str, ...]:
        return tuple(TREES[tree] for tree in self.trees)

    @property
    def has_sources(self) -> bool:
        return bool(_team_files(self.path))


def find_repository(folder: Path) -> Repository:
    """The one repository in a folder: itself, or else the only one below it; links are not followed on the way.

    A compiled tree that is named itself stands for the folder that holds it. Raises ``ChrononError`` where there is no such
    folder, no repository, one that is not compiled, or several.
    """
    _need_folder(folder)
    if folder.name in TREES and _is_tree(folder):
        folder = folder.parent
    if (found := _compiled_in(folder)) is not None:
        return found
    below = list(_folders_below(folder))
    compiled = [found for each in below if (found := _compiled_in(each)) is not None]
    if len(compiled) == 1:
        return compiled[0]
    if compiled:
        raise _fault(f"there are several compiled trees below {_shown(folder)}: {_named(compiled)}", "name one of them")
    sources = [each for each in (folder, *below) if _team_files(each) and _has_conf_folders(each)]
    if not sources:
        problem = (
            f"there is no Chronon repository in {_shown(folder)}: no compiled tree and no {' or '.join(COMPILERS)}"
        )
        raise _fault(problem, "name the folder that holds the compiled tree")
    first = sources[0]
    commands = " or ".join(COMPILERS[name] for name in _team_files(first))
    problem = f"the Chronon repository {_shown(first)} has no compiled tree"
    raise _fault(problem, f"compile it in that folder with {commands}, and begin again")


def _need_folder(folder: Path) -> None:
    try:
        if not os.path.lexists(folder):
            raise _fault(f"there is no folder {_shown(folder)}", "name the folder of a Chronon repository")
        os.stat(folder)  # a loop of links ends here
        if not folder.is_dir():
            raise _fault(f"{_shown(folder)} is not a folder", "name the folder of a Chronon repository")
        with os.scandir(folder):
            pass
    except (OSError, ValueError) as error:  # no right to look, or no path at all
        raise _fault(f"the folder {quoted(str(folder))} cannot be read: {error.args[-1]}", "check the path") from None


def _compiled_in(folder: Path) -> Repository | None:
    """The repository that has its compiled trees right in a folder, or that is one compiled tree."""
    trees = tuple(name for name in TREES if _is_tree(folder / name))
    if trees:
        return Repository(folder, trees)
    if not _team_files(folder) and folder.name not in TREES and _is_tree(folder) and not _holds_python(folder):
        return Repository(folder)
    return None


def _is_tree(folder: Path) -> bool:
    """Whether a folder holds compiled confs of some type: many a ``production/`` has nothing to do with Chronon."""
    return any(_first(folder / name) for name in CONF_FOLDERS)


def _first(folder: Path) -> bool:
    """Whether there is something in a folder."""
    try:
        with os.scandir(folder) as entries:
            return any(not entry.name.startswith((".", "__")) for entry in entries)
    except OSError:
        return False


def _holds_python(tree: Path) -> bool:
    """Whether the folders of a tree hold sources: those are called like the folders of a compiled tree."""
    files = (file for name in CONF_FOLDERS for _, _, found in islice(os.walk(tree / name), 100) for file in found)
    return any(file.endswith(".py") for file in files)


def _has_conf_folders(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in CONF_FOLDERS)


def _team_files(folder: Path) -> tuple[str, ...]:
    return tuple(name for name in REPOSITORY_FILES if os.path.isfile(folder / name))


def _folders_below(folder: Path) -> Iterator[Path]:
    """The folders below one, the nearest first; none behind a link, none hidden, and no end of them."""
    level = [folder]
    left = _MOST_FOLDERS
    for _ in range(_DEEPEST):
        level = list(islice((below for each in level for below in _subfolders(each)), left))
        left -= len(level)
        yield from level
        level = [each for each in level if each.name not in TREES and each.name not in CONF_FOLDERS]


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in islice(entries, _MOST_FOLDERS)
                if not entry.name.startswith(".") and entry.name not in _NEVER and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:  # one that may not be read holds nothing of ours
        return []
    return [folder / name for name in sorted(names)]


def _named(found: list[Repository]) -> str:
    names = [_shown(each.path) for each in found[:_SHOWN]]
    return ", ".join(names) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")


def _shown(path: Path) -> str:
    return readable(str(path))


def _fault(problem: str, remedy: str) -> ChrononError:
    return ChrononError(Fault("input", "FOLDER", problem, remedy))
