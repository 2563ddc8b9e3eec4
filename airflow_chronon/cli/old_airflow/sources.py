"""Reading the Python files of a folder as syntax trees: nothing of them is imported or run, and none can stop the others."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from airflow_chronon.conf_root.links import leads_out, outside
from airflow_chronon.conf_root.settings import cannot_read, read_bytes
from airflow_chronon.core.bounds import quoted
from airflow_chronon.errors import ChrononError, Fault, Rejected, readable

_MOST_FILES = 1_000
_MOST_BYTES = 256 * 1024  #: of one file: those of Chronon have up to 24 KB, and a parser takes seconds for odd ones
_MOST_BYTES_IN_ALL = 1024**2
_DEEPEST = 3  #: folders below the one that was named


@dataclass(frozen=True)
class Sources:
    """The parsed files of one folder, and what is wrong with the others."""

    folder: Path
    trees: dict[str, ast.Module]  #: by the file's path in the folder
    faults: tuple[Fault, ...] = ()


def read_sources(folder: Path) -> Sources:
    """Parse every Python file in a folder. Raises ``ChrononError`` where there is no such folder, or no such file in it."""
    faults: list[Fault] = []
    try:
        if not folder.is_dir():
            raise ChrononError(
                _fault(f"there is no folder {quoted(str(folder))}", "name the airflow/ folder of a repository")
            )
        files = list(islice(_python_files(folder, _DEEPEST, faults), _MOST_FILES + 1))
    except (OSError, ValueError) as error:
        raise ChrononError(
            _fault(f"the folder {quoted(str(folder))} cannot be read: {error.args[-1]}", "check it")
        ) from None
    if not files:
        raise ChrononError(
            _fault(f"there is no Python file in {quoted(str(folder))}", "name the airflow/ folder of a repository")
        )
    trees: dict[str, ast.Module] = {}
    left = _MOST_BYTES_IN_ALL
    if len(files) > _MOST_FILES:
        faults.append(
            _fault(f"only the first {_MOST_FILES} Python files are read", "name the folder of Chronon's DAGs")
        )
    for file in files[:_MOST_FILES]:
        name = readable(str(file.relative_to(folder)))
        try:
            if leads_out(file, folder):
                raise Rejected([outside("it")])
            data = read_bytes(file, limit=min(left, _MOST_BYTES), kind="file of DAGs")
            left -= len(data)
            trees[name] = _parsed(data)
        except Rejected as error:
            faults += [each.under(name) for each in error.faults]
        except OSError as error:
            faults.append(cannot_read(error, what="the file").under(name))
    return Sources(folder, trees, tuple(faults))


def _python_files(folder: Path, depth: int, faults: list[Fault]) -> Iterator[Path]:
    """The files in a folder and below it; a folder below that cannot be listed is one of ``faults``."""
    with os.scandir(folder) as entries:
        found = sorted((each.name, each.is_dir(follow_symlinks=False)) for each in islice(entries, 10 * _MOST_FILES))
    yield from (folder / name for name, is_folder in found if not is_folder and name.endswith(".py"))
    for name, is_folder in found:
        if is_folder and depth and not name.startswith((".", "__")):
            try:
                yield from _python_files(folder / name, depth - 1, faults)
            except OSError as error:
                faults.append(cannot_read(error, what=f"the folder {quoted(name)}"))


def _parsed(data: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escapes: nobody runs it
            return ast.parse(data)
    except (SyntaxError, ValueError) as error:
        problem = f"the file is not Python of today: {getattr(error, 'msg', error)}"
        if isinstance(error, SyntaxError) and error.lineno:
            problem += f" (line {error.lineno})"
    except (RecursionError, MemoryError):
        problem = "the file is nested too deeply"
    raise Rejected([Fault("input", "", problem, "what it did is not told here")])


def _fault(problem: str, remedy: str) -> Fault:
    return Fault("input", "FOLDER", problem, remedy)
