"""Whether what a run waits for is there (C17 to C20), and a sentence about what is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from types import MappingProxyType

from airflow_chronon.core.calendar.instants import Instant, duration_text, iso, parse_instant
from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionKey, PartitionSpec
from airflow_chronon.core.partitions.limits import MOST_ASKED
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.dependencies import Lookback, PartitionRange, Wait
from airflow_chronon.core.waits.max_lag import Lagging, lagging
from airflow_chronon.core.waits.outlook import Forecast, Outlook
from airflow_chronon.errors import CatalogError, Fault

_SHOWN = 5


@dataclass(frozen=True)
class Hopeless:
    """Why a wait would go on for ever: partitions that no run will write (C30)."""

    labels: tuple[PartitionKey, ...]
    reason: str  #: one sentence, with the command that would fill them
    passes_over: (
        bool  #: they lie before all that their writers wrote, or were themselves passed over: a chain begins later
    )


@dataclass(frozen=True)
class Readiness:
    """The answer for one wait: whether it is over, what is still missing or worth a warning, and whether it is in vain."""

    satisfied: bool
    reason: str = ""
    hopeless: Hopeless | None = None
    lagging: tuple[Lagging, ...] = ()  #: what the run goes without, where ``max_lag`` lets it


#: What will become of labels that are not there, as far as anyone knows.
Forecasts = Mapping[str, Forecast]
_NO_FORECASTS: Forecasts = MappingProxyType({})


def labels_ready(
    wait: Wait, listing: TableListing, forecasts: Forecasts = _NO_FORECASTS, *, waited: int = 0
) -> Readiness:
    """Whether every label has landed and the lookback is as its policy wants it.

    After so many seconds ``waited`` as ``max_lag`` says, the newest labels may be missing. A missing table is "not yet". Labels
    that nobody will write are no holes of the lookback, and end the wait where the run itself needs them (C30). Raises
    ``CatalogError`` when the table can never hold the labels.
    """
    check_shape(wait.table, wait.column, listing)
    landed = listing.labels(wait.column, wait.sub)
    missing = [label for label in wait.labels if label not in landed]
    if missing:
        is_there = listing.state is not TableState.MISSING
        text = (
            f"{wait.table} lacks {wait.column}={_some(missing)}{_sub(wait)}"
            if is_there
            else f"{wait.table} is not there yet"
        )
        text += _prospects(missing, forecasts)
        found = lagging(wait, landed)
        if found is None or wait.max_lag is None:
            return Readiness(False, text, _hopeless(wait, missing, forecasts))
        after = f"after {duration_text(wait.max_lag.after)} of waiting"
        if waited < wait.max_lag.after:
            return Readiness(False, f"{text}; {after} the run goes on with {wait.column}={found.newest} (max_lag)")
        rest = _lookback_ready(wait, landed.union(found.lacks), forecasts)
        reasons = [text, f"the run goes on {after}: {found}" if rest.satisfied else "", rest.reason]
        return replace(rest, reason="; ".join(filter(None, reasons)), lagging=(found,) if rest.satisfied else ())
    return _lookback_ready(wait, landed, forecasts)


def _lookback_ready(wait: Wait, landed: frozenset[str], forecasts: Forecasts) -> Readiness:
    """Whether the lookback is as its policy wants it."""
    absent = _missing_in_lookback(wait, landed)
    never = tuple(label for label in absent if _is_hopeless(label, forecasts))
    if never and wait.policy is Lookback.REQUIRE and wait.is_strict:
        hopeless = _hopeless(wait, never, forecasts)
        return Readiness(False, f"the lookback of {wait.table} has holes: {wait.column}={_some(never)}", hopeless)
    holes = _holes(wait, landed.union(never))
    notes = [f"nobody writes {wait.column}={_some(never)} of {wait.table}: the lookback goes without"] if never else []
    if holes:
        expected = _prospects([label for label in absent if label not in never], forecasts)
        text = f"the lookback of {wait.table} has holes: {wait.column}={_some([str(hole) for hole in holes])}{expected}"
        notes.insert(0, text)
    return Readiness(not holes or wait.policy is not Lookback.REQUIRE, "; ".join(notes))


def missing_labels(wait: Wait, listing: TableListing) -> tuple[PartitionKey, ...]:
    """The labels that a wait needs, its lookback included, and that have not landed."""
    landed = listing.labels(wait.column, wait.sub)
    return (*(label for label in wait.labels if label not in landed), *_missing_in_lookback(wait, landed))


def _is_hopeless(label: str, forecasts: Forecasts) -> bool:
    found = forecasts.get(label)
    return found is not None and found.outlook.is_hopeless


def _hopeless(wait: Wait, missing: Sequence[PartitionKey], forecasts: Forecasts) -> Hopeless | None:
    """Why the wait is in vain; None while there is hope for every label."""
    labels = tuple(label for label in missing if _is_hopeless(label, forecasts))
    if not labels:
        return None
    found = [forecasts[label] for label in labels]
    by_writer: dict[str, list[Forecast]] = {}
    for each in sorted(found, key=lambda each: each.start):
        by_writer.setdefault(each.dag_id, []).append(each)
    commands = [
        f"airflow-chronon backfill {dag_id} --start-ds {quote(theirs[0].key)} --end-ds {quote(theirs[-1].key)}"
        for dag_id, theirs in by_writer.items()
    ]
    passes_over = all(
        (each.is_before_first or each.outlook is Outlook.PASSED_OVER) and not each.is_in_a_cycle for each in found
    )
    reason = f"no run of {', '.join(by_writer)} will write {wait.column}={_some(labels)} of {wait.table}"
    return Hopeless(labels, f"{reason} (C30): fill them with {' and '.join(commands)}", passes_over)


def _prospects(missing: Sequence[str], forecasts: Forecasts) -> str:
    """What will become of the labels, where that is more than that they will come."""
    by_outlook: dict[str, list[str]] = {}
    for label in missing:
        found = forecasts.get(label)
        if found is not None and (found.outlook is not Outlook.TO_COME or found.note):
            by_outlook.setdefault(found.note or f"{found.outlook.value} in {found.dag_id}", []).append(label)
    return f" ({'; '.join(f'{_some(labels)}: {text}' for text, labels in by_outlook.items())})" if by_outlook else ""


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
    return _holes(wait, listing.labels(wait.column, wait.sub))


def _holes(wait: Wait, landed: frozenset[str]) -> tuple[PartitionRange, ...]:
    found = _lookback_in_history(wait, landed)
    return () if found is None or wait.spec is None else missing_ranges(wait.spec, *found, landed)


def _missing_in_lookback(wait: Wait, landed: frozenset[str]) -> tuple[PartitionKey, ...]:
    """The labels of the lookback that have not landed, oldest first; of very many the newest, which alone are asked
    about (C30)."""
    found = _lookback_in_history(wait, landed)
    if found is None or wait.spec is None:
        return ()
    newest: list[Instant] = []
    for gap in reversed(missing_starts_between(wait.spec, *found, landed)):
        newest += gap[::-1][: MOST_ASKED - len(newest)]
        if len(newest) >= MOST_ASKED:
            break
    return tuple(map(wait.spec.label, reversed(newest)))


def _lookback_in_history(wait: Wait, landed: frozenset[str]) -> tuple[Instant, Instant] | None:
    """The starts of the oldest and the newest partition of the lookback, from the table's first landed one on (C17)."""
    if wait.lookback is None or wait.policy is Lookback.IGNORE or wait.spec is None:
        return None
    history = first_landed(wait.spec, landed)
    if history is None:
        return None
    decode = wait.spec.format.decode
    first = history if wait.lookback.first is None else max(history, decode(wait.lookback.first))
    return first, decode(wait.lookback.last)


def first_landed(spec: PartitionSpec, landed: frozenset[str]) -> Instant | None:
    """The start of the oldest landed partition; labels of another shape are nobody's history."""
    return min(_starts_of(spec, landed), default=None)


def missing_ranges(
    spec: PartitionSpec, first: Instant, last: Instant, landed: frozenset[str]
) -> tuple[PartitionRange, ...]:
    """The ranges of labels between the starts ``first`` and ``last``, both inclusive, that have not landed."""
    gaps = missing_starts_between(spec, first, last, landed)
    return tuple(PartitionRange(spec.label(gap[0]), spec.label(gap[-1])) for gap in gaps)


def missing_starts_between(spec: PartitionSpec, first: Instant, last: Instant, landed: frozenset[str]) -> list[range]:
    """The same as starts. It takes as long as there are landed labels: between two of them may lie centuries (S7)."""
    step, begin = spec.grid.interval, spec.grid.floor(first)
    end = spec.grid.floor(last) + step
    there = {
        start
        for start in _starts_of(spec, landed)
        if begin <= start < end and spec.grid.is_boundary(start) and spec.label(start) in landed
    }
    gaps: list[range] = []
    for start in (*sorted(there), end):
        if begin < start:
            gaps.append(range(begin, start, step))
        begin = start + step
    return gaps


def _starts_of(spec: PartitionSpec, landed: Iterable[str]) -> Iterator[Instant]:
    for label in landed:
        try:
            yield spec.format.decode(label)
        except IllegalLabel:
            continue


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
