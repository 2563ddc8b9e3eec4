"""The newest value of a column, from the statistics in Parquet footers (C18).

What the column means is decided by its Parquet type: a timestamp is itself (without a zone it is UTC), a date is its
midnight, and a 32- or 64-bit integer counts milliseconds since the epoch. Nothing else is a time column.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, BinaryIO

from airflow_chronon.core.calendar.instants import DAY, Instant
from airflow_chronon.errors import CatalogError, Fault
from airflow_chronon.extras import optional

_UNITS = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


class NoSuchColumn(CatalogError):
    """The file has no column of that name."""


def newest_in_file(file: BinaryIO, *, column: str, place: str) -> Instant | None:
    """The newest value of the column in one Parquet file, or None when it holds none.

    ``place`` names the file in errors. Raises :class:`NoSuchColumn`, and :class:`CatalogError` for a broken file or a
    column that does not hold times.
    """
    parquet = optional("pyarrow.parquet", needed_for=f"reading {place}")
    arrow = optional("pyarrow", needed_for=f"reading {place}")
    try:
        opened = parquet.ParquetFile(file)
        index = _index_of(opened.schema, column, place)
        to_instant = _meaning(opened.schema.column(index), column, place)
        metadata = opened.metadata
        newest: list[Instant] = []
        for group in range(metadata.num_row_groups):
            chunk = metadata.row_group(group).column(index)
            statistics = chunk.statistics
            if statistics is not None and statistics.has_min_max and to_instant is not None:
                newest.append(to_instant(statistics.max_raw))
            elif statistics is None or not statistics.has_null_count or statistics.null_count < chunk.num_values:
                newest += _read_newest(opened, group=group, column=column)
        return max(newest, default=None)
    except (arrow.ArrowException, OSError, EOFError) as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise CatalogError(
            Fault(
                "C18", column, f"{place} is not a readable Parquet file: {text[0]}", "write the file again or remove it"
            )
        ) from error


def _index_of(schema: Any, column: str, place: str) -> int:
    paths = [schema.column(index).path for index in range(len(schema))]
    if column in paths:
        return paths.index(column)
    folded = [path.casefold() for path in paths]  # Spark does not tell upper from lower case
    if folded.count(column.casefold()) == 1:
        return folded.index(column.casefold())
    shown = ", ".join(sorted({path.split(".")[0] for path in paths})) or "none"
    raise NoSuchColumn(Fault("C18", column, f"{place} has no column {column!r}", f"its columns are {shown}"))


def _meaning(column: Any, name: str, place: str) -> Callable[[int], Instant] | None:
    """How a raw statistic becomes an instant; None when only the values themselves tell (the old INT96 timestamps)."""
    kind = json.loads(column.logical_type.to_json())
    logical, physical = kind.get("Type"), column.physical_type
    if logical == "Timestamp":
        unit = _UNITS[kind["timeUnit"]]
        return lambda raw: raw // unit
    if logical == "Date":
        return lambda raw: raw * DAY
    if physical == "INT96":
        return None
    if physical in ("INT64", "INT32") and logical in ("None", "Int", None):
        return lambda raw: raw // 1_000
    shown = physical.lower() if logical in ("None", None) else str(logical).lower()
    raise CatalogError(
        Fault(
            "C18",
            name,
            f"the column {name!r} of {place} is of type {shown}, which is not a time",
            "use a timestamp, a date or epoch milliseconds",
        )
    )


def _read_newest(opened: Any, *, group: int, column: str) -> list[Instant]:
    """Read the column itself, for files written without statistics."""
    arrow = optional("pyarrow", needed_for="reading Parquet")
    compute = optional("pyarrow.compute", needed_for="reading Parquet")
    table = opened.read_row_group(
        group, columns=[name for name in opened.schema_arrow.names if name.casefold() == column.casefold()]
    )
    newest = compute.max(table.column(0))
    if not newest.is_valid:
        return []
    if arrow.types.is_date(newest.type):
        return [newest.cast(arrow.date32()).value * DAY]
    if arrow.types.is_timestamp(newest.type):
        unit = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[newest.type.unit]
        return [newest.value // unit]
    return [newest.as_py() // 1_000]
