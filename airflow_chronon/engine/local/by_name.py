"""Tables whose files differ in their columns: read by the newest file's columns first, and united when that fails.

Uniting opens the footer of every file, so it waits until a query needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


def tried_by_name(work: Callable[[bool], _Result]) -> _Result:
    """``work(False)``, and ``work(True)`` when it fails for want of a column; then the first error counts."""
    import duckdb

    try:
        return work(False)
    except duckdb.Error as first:
        # A column that the newest file lacks, or one that an older file lacks: DuckDB's majors raise different errors.
        if not isinstance(first, duckdb.BinderException) and "union_by_name" not in str(first):
            raise
        try:
            return work(True)
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            raise first from None
