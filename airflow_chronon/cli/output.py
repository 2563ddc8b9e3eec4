"""The answer of a command, for people or for programs: results go to stdout, problems to stderr."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

GOOD, FINDINGS, USAGE = 0, 1, 2  #: exit codes


def show(
    options: argparse.Namespace, *, text: Callable[[], str] | None = None, value: Callable[[], Any] | None = None
) -> None:
    """Print the text, or with ``--format json`` the value as JSON; what is left out is not printed."""
    if options.format != "json":
        if text is not None:
            print(text())
    elif value is not None:
        json.dump(value(), sys.stdout, indent=1, ensure_ascii=False)
        print()


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines, each column as wide as its widest cell."""
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
