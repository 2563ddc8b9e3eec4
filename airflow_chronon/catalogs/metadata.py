"""What catalogs of table formats have in common: what a value in their metadata means, and how their errors read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any

from airflow_chronon.core.calendar.instants import Instant, from_datetime
from airflow_chronon.errors import CatalogError, ChrononError, Fault


def text_of(value: Any) -> str:
    """A partition's value as Hive and Spark write it into a label."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)


def instant_of(bound: Any, column: str, table: str) -> Instant:
    """What a bound of a time column means: a time without a zone is UTC, a date its midnight, a number milliseconds (C18)."""
    if isinstance(bound, datetime):
        return from_datetime(bound if bound.tzinfo is not None else bound.replace(tzinfo=UTC))
    if isinstance(bound, date):
        return from_datetime(datetime(bound.year, bound.month, bound.day, tzinfo=UTC))
    if isinstance(bound, int) and not isinstance(bound, bool):
        return bound // 1_000
    problem = f"the column {column!r} holds values such as {bound!r}, which are no times"
    raise CatalogError(Fault("C18", column, problem, "use a timestamp, a date or epoch milliseconds"), conf=table)


def column_of(columns: Iterable[str], column: str, table: str) -> str:
    """The column as the table spells it: Spark does not tell upper from lower case. Raises ``CatalogError`` without one."""
    names = list(columns)
    if column in names:
        return column
    folded = [name for name in names if name.casefold() == column.casefold()]
    if len(folded) == 1:
        return folded[0]
    remedy = f"its columns are {', '.join(names[:20])}"
    raise CatalogError(Fault("C18", column, f"the table has no column {column!r}", remedy), conf=table)


@contextmanager
def said_of(kind: str, table: str) -> Iterator[None]:
    """Whatever a library raises about a table is a ``CatalogError`` of that table, in one line."""
    try:
        yield
    except ChrononError as error:
        if error.conf:
            raise
        raise CatalogError(error.fault, conf=table) from error
    except Exception as error:  # they raise what their drivers do
        text = (str(error).strip().splitlines() or [""])[0][:300]
        problem = f"the {kind} catalog does not tell what it holds: {type(error).__name__}: {text}"
        fault = Fault("C16", "", problem, "does it answer, and may these credentials read the table?")
        raise CatalogError(fault, conf=table) from error
