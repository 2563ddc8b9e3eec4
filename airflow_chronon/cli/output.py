"""The answer of a command, for people or for programs: results go to stdout, problems to stderr.

Lines are folded to the width of a terminal where one shows them; a file or another program gets each as one line.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TextIO

GOOD, FINDINGS, USAGE = 0, 1, 2  #: exit codes

_NARROWEST = 40  #: columns; below that nothing can be laid out
_BELOW = 4  #: by how much that is indented which stands below its line


def show(
    options: argparse.Namespace, *, text: Callable[[], str] | None = None, value: Callable[[], Any] | None = None
) -> None:
    """Print the text, or with ``--format json`` the value as JSON; what is left out is not printed."""
    if options.format != "json":
        if text is not None:
            say(text())
    elif value is not None:
        json.dump(value(), sys.stdout, indent=1, ensure_ascii=False)
        print()


def say(text: object) -> None:
    """Print a result for people."""
    _print(str(text), sys.stdout)


def tell(text: object) -> None:
    """Print a problem, a note or progress."""
    _print(str(text), sys.stderr)


def columns(rows: Sequence[tuple[str, ...]], *, indent: int = 0) -> list[str]:
    """A text for each row, each column as wide as its widest cell, ``indent`` blanks ahead.

    On a terminal, the last cells of a row that is too long for it stand below the row, in lines of the same text.
    """
    if not rows:
        return []
    width = _width(sys.stdout)
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells = [cell.ljust(each) for cell, each in zip(row, widths, strict=True)]
        kept = len(cells)
        while kept > 1 and width is not None and indent + len("  ".join(cells[:kept]).rstrip()) > width:
            kept -= 1
        line = " " * indent + "  ".join(cells[:kept]).rstrip()
        below = "  ".join(filter(None, row[kept:]))
        if below and width is not None:
            line = "\n".join([line, *_folded(" " * (indent + _BELOW) + below, width)])
        lines.append(line)
    return lines


def _print(text: str, stream: TextIO) -> None:
    width = _width(stream)
    lines = text.split("\n")
    if width is not None:
        lines = [part for line in lines for part in _folded(line, width)]
    print("\n".join(lines), file=stream)


def _width(stream: TextIO) -> int | None:
    """The columns of the terminal that shows a stream; None where none does."""
    return max(_NARROWEST, shutil.get_terminal_size().columns) if stream.isatty() else None


def _folded(line: str, width: int) -> list[str]:
    """A line in parts that fit; a longer word, such as a path, stays whole."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + _BELOW)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
