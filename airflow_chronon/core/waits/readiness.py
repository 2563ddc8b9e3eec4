"""Whether what a run waits for is there (C17 to C20), and a sentence about what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_chronon.core.calendar.instants import Instant, iso, parse_instant
from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionKey, PartitionSpec
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.dependencies import Lookback, PartitionRange, Wait
from airflow_chronon.errors import CatalogError, Fault

_SHOWN = 5


@dataclass(frozen=True)
class Readiness:
    """The answer for one wait: whether it is over, and what is still missing or worth a warning."""

    satisfied: bool
    reason: str = ""


def labels_ready(wait: Wait, listing: TableListing) -> Readiness:
    """Whether every label has landed and the lookback is as its policy wants it.

    A missing table is "not yet". Raises ``CatalogError`` when the table can never hold the labels.
    """
    if listing.state is TableState.MISSING:
        return Readiness(False, f"{wait.table} is not there yet")
    check_shape(wait.table, wait.column, listing)
    landed = listing.labels(wait.column, wait.sub)
    missing = [label for label in wait.labels if label not in landed]
    if missing:
        return Readiness(False, f"{wait.table} lacks {wait.column}={_some(missing)}{_sub(wait)}")
    holes = lookback_holes(wait, listing)
    if not holes:
        return Readiness(True)
    text = f"the lookback of {wait.table} has holes: {wait.column}={_some([str(hole) for hole in holes])}"
    return Readiness(wait.policy is not Lookback.REQUIRE, text)


def check_shape(table: str, column: str, listing: TableListing) -> None:
    """Raise ``CatalogError`` when a table holds data that no partition column tells apart."""
    if listing.state is TableState.UNPARTITIONED:
        problem = f"{table} holds data without partitions, and labels of {column} are waited for"
        raise CatalogError(Fault("C17", table, problem, "declare it time_partitioned, or correct the table's name"))
    if listing.partitions and column not in listing.columns:
        found = ", ".join(sorted(listing.columns))
        problem = f"{table} is partitioned by {found}, not by {column}"
        raise CatalogError(Fault("C17", table, problem, "correct partition_column"))


def lookback_holes(wait: Wait, listing: TableListing) -> tuple[PartitionRange, ...]:
    """The gaps of the lookback, oldest first. What lies before the table's first landed label is not a gap (C17)."""
    if wait.lookback is None or wait.policy is Lookback.IGNORE or wait.spec is None:
        return ()
    landed = listing.labels(wait.column, wait.sub)
    history = first_landed(wait.spec, landed)
    if history is None:
        return ()
    last = wait.spec.format.decode(wait.lookback.last)
    first = history if wait.lookback.first is None else max(history, wait.spec.format.decode(wait.lookback.first))
    return missing_ranges(wait.spec, first, last, landed)


def first_landed(spec: PartitionSpec, landed: frozenset[str]) -> Instant | None:
    """The start of the oldest landed partition; labels of another shape are nobody's history."""
    oldest = None
    for label in landed:
        try:
            start = spec.format.decode(label)
        except IllegalLabel:
            continue
        if oldest is None or start < oldest:
            oldest = start
    return oldest


def missing_ranges(
    spec: PartitionSpec, first: Instant, last: Instant, landed: frozenset[str]
) -> tuple[PartitionRange, ...]:
    """The ranges of labels between the starts ``first`` and ``last``, both inclusive, that have not landed."""
    ranges: list[PartitionRange] = []
    opened: PartitionKey | None = None
    previous: PartitionKey | None = None
    for label in spec.labels(first, last + 1):
        if label in landed:
            if opened is not None and previous is not None:
                ranges.append(PartitionRange(opened, previous))
            opened = None
        elif opened is None:
            opened = label
        previous = label
    if opened is not None and previous is not None:
        ranges.append(PartitionRange(opened, previous))
    return tuple(ranges)


def newest_ready(wait: Wait, newest: Instant | None) -> Readiness:
    """Whether a time-partitioned table has reached the instant (C18)."""
    assert wait.until is not None
    if newest is None:
        return Readiness(False, f"{wait.table} holds no {wait.column} yet, needed up to {iso(wait.until)}")
    if newest >= wait.until:
        return Readiness(True)
    return Readiness(
        False, f"the newest {wait.column} of {wait.table} is {iso(newest)}, needed up to {iso(wait.until)}"
    )


def expression_ready(wait: Wait, value: bool | str | int | float | None) -> Readiness:
    """Whether a `triggerExpr` says so: true, or a value that is a greater label than the newest needed one (C19)."""
    if value is None or isinstance(value, bool):
        return Readiness(value is True, "" if value is True else f"{wait.expression} over {wait.table} is {value}")
    if wait.spec is None or not wait.labels:
        problem = f"{wait.expression!r} is {value!r}, no truth, and {wait.table} has no labels to compare it with"
        raise CatalogError(Fault("C19", wait.table, problem, "write an expression that is true or false"))
    newest = max(wait.labels, key=wait.spec.format.decode)
    reached = _as_start(value, wait) > wait.spec.format.decode(newest)
    return Readiness(reached, "" if reached else f"{wait.expression} over {wait.table} is {value}, not past {newest}")


def _as_start(value: str | int | float, wait: Wait) -> Instant:
    """The instant that a value means: a label of the table, or a date or instant that would be written as one (C19)."""
    assert wait.spec is not None
    for read in (wait.spec.format.decode, parse_instant):
        try:
            return read(str(value))
        except (IllegalLabel, ValueError):
            continue
    problem = f"{wait.expression!r} is {value!r}, neither a label in the format {wait.spec.format.pattern!r} nor a date"
    raise CatalogError(Fault("C19", wait.table, problem, "write an expression that is true or false, or gives a label"))


def _sub(wait: Wait) -> str:
    return f" with {', '.join(wait.sub)}" if wait.sub else ""


def _some(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return ", ".join(labels[:_SHOWN]) + more
