"""Files under a conf root, team by team: listed, counted, each problem a fault (S1, S2)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from airflow_chronon.conf_root.links import leads_out, outside
from airflow_chronon.conf_root.settings import cannot_read
from airflow_chronon.core.bounds import MAX_NAME, MAX_TEAM_FILES, name_problem, quoted
from airflow_chronon.errors import Fault, readable


@dataclass(frozen=True)
class Refusal:
    """A file or folder that is not read, and why."""

    file: str  #: relative to the conf root; that of a folder ends with a slash
    place: tuple[str, ...]  #: the parts of its path below the folder that was listed
    fault: Fault

    @property
    def name(self) -> str:
        """Its name as a part of a key: that of a folder ends with a slash."""
        name = readable(".".join(self.place))
        return f"{name}/" if name and self.file.endswith("/") else name


class FoundFile(NamedTuple):
    """A file in the folder of a team."""

    path: Path
    place: tuple[str, ...]  #: the parts of its path below the folder that was listed
    file: str  #: relative to the conf root


@dataclass
class TeamFiles:
    """What lies in the folder of one team."""

    team: str
    file: str  #: its folder, relative to the conf root, with a slash at the end
    files: list[FoundFile] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    count: int = 0  #: of everything in there, folders too

    def refused_as_a_whole(self, fault: Fault) -> Refusal:
        return Refusal(self.file, (self.team,), fault)


def files_by_team(root: Path, folder: Path, problems: list[Fault], *, home: Path) -> list[TeamFiles]:
    """Every file below a folder of a conf root, by the team's folder that it is in; each folder is gone through once.

    Links are followed within the root and within ``home``, its folder that ``folder`` is in, after what is there without
    them, and never out of those. A team with more files than the budget has none of them listed. A folder that cannot be
    listed becomes a problem, so that its confs do not just vanish (C23).
    """
    if os.path.lexists(folder) and not folder.is_dir():
        problems.append(no_folder(folder))
        return []
    if leads_out(folder, root, home):
        problems.append(outside(str(folder)))
        return []
    walk = _Walk(root, folder, problems, home)
    for start, place in walk.starts:  # grows while it is gone through
        walk.go_through(start, place)
    return [walk.teams[name] for name in sorted(walk.teams)]


class _Walk:
    """One listing of a folder."""

    def __init__(self, root: Path, folder: Path, problems: list[Fault], home: Path) -> None:
        self.root, self.folder, self.problems, self.home = root, folder, problems, home
        self.shown = str(folder.relative_to(root))
        self.starts: list[tuple[Path, tuple[str, ...]]] = [(folder, ())]
        self.teams: dict[str, TeamFiles] = {}
        self._seen: set[tuple[int, int]] = set()
        self._over: set[str] = set()

    def go_through(self, start: Path, place: tuple[str, ...]) -> None:
        """List everything below a folder, links to folders left for later."""
        waiting = [(start, place)]
        while waiting:
            directory, place = waiting.pop()
            try:
                at = os.stat(directory)
                if (at.st_dev, at.st_ino) in self._seen:  # a link that leads back, or to another one's folder
                    continue
                self._seen.add((at.st_dev, at.st_ino))
                entries = self._entries(directory)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.problems.append(cannot_read(error, what=f"the folder {directory}"))
                continue
            found_below = (self._visit(directory, (*place, entry.name), entry) for entry in entries)
            below = [each for each in found_below if each is not None]
            waiting += reversed(below)

    def _entries(self, directory: Path) -> list[os.DirEntry[str]]:
        """What lies in a folder: of a team's so much that it is over its budget, of the teams' own folder every folder.

        Nobody's folder is left out for the files of others that lie beside it.
        """
        with os.scandir(str(directory)) as found:
            if directory != self.folder:
                listed = list(islice(found, MAX_TEAM_FILES + 1))
            else:
                listed, loose = [], 0
                for entry in found:
                    if _is_folder(entry) or entry.is_symlink():
                        listed.append(entry)
                    elif not entry.name.startswith(".") and loose <= MAX_TEAM_FILES:
                        listed.append(entry)
                        loose += 1
        return sorted(listed, key=lambda entry: entry.name)

    def _visit(
        self, directory: Path, place: tuple[str, ...], entry: os.DirEntry[str]
    ) -> tuple[Path, tuple[str, ...]] | None:
        """Put one entry where it belongs; the answer is a folder to go through."""
        path = directory / entry.name
        is_folder, is_link = _is_folder(entry), entry.is_symlink()
        is_hidden = entry.name.startswith(".") or (is_folder and entry.name.startswith("__"))
        if is_hidden and directory == self.folder:
            return None
        team = self._team(place, is_folder=is_folder)
        if team is None or is_hidden:  # what is hidden is not read, but listing it has its price too
            return None
        fault = self._unfit(path, is_link=is_link)
        if fault is not None:
            file = readable(self._file(place)) + ("/" if is_folder else "")
            team.refused.append(Refusal(file, place, fault))
        elif is_link and not os.path.exists(path) and not _is_name_of_file(path.name):
            self.problems.append(no_folder(path))  # what was in that folder counts as present
        elif not is_folder:
            team.files.append(FoundFile(path, place, self._file(place)))
        elif is_link:
            self.starts.append((path, place))
        else:
            return path, place
        return None

    def _file(self, place: tuple[str, ...]) -> str:
        """Relative to the conf root. Not by ``Path.relative_to``: of a thousand files that took half of the reading."""
        return "/".join((self.shown, *place))

    def _team(self, place: tuple[str, ...], *, is_folder: bool) -> TeamFiles | None:
        """Whose budget an entry counts against; None once that is used up."""
        name = place[0] if is_folder or len(place) > 1 else ""
        if name not in self.teams:
            shown = readable(self._file((name,) if name else ()))
            self.teams[name] = TeamFiles(readable(name), f"{shown}/")
        team = self.teams[name]
        team.count += 1
        if team.count <= MAX_TEAM_FILES:
            return team
        if name not in self._over:
            self._over.add(name)
            problem = f"the folder holds more than {MAX_TEAM_FILES} files, the budget of one team: none is read"
            team.files.clear()
            team.refused[:] = [team.refused_as_a_whole(Fault("S2", "", problem, "remove some, or divide it"))]
        return None

    def _unfit(self, path: Path, *, is_link: bool) -> Fault | None:
        """What is against reading a file or folder at all."""
        problem = name_problem(path.name, most=MAX_NAME)
        if problem is not None:
            return Fault("S1", "", f"its name {quoted(path.name)} {problem}", "rename it")
        if is_link and leads_out(path, self.root, self.home):
            return outside("it")
        return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _is_name_of_file(name: str) -> bool:
    """Whether a link that leads nowhere stood for one conf (``name__version``) or one job, and not for a folder of them."""
    return "__" in name or name.endswith((".yaml", ".yml"))


def no_folder(path: Path) -> Fault:
    """A name that is there and leads to no folder: a mount or a checkout that is gone for a moment, perhaps (C23)."""
    is_link = path.is_symlink()
    problem = f"{path} is a link that leads nowhere" if is_link else f"{path} is not a folder"
    return Fault("input", "", problem, "mend the link, or remove it" if is_link else "put a folder there, or remove it")
