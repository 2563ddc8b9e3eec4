"""Looking at a table on behalf of many waits: the queries, one observation per poll, and a verdict per wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from airflow_chronon.core.calendar.instants import DAY, Instant, iso
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.catalog import IllegalExpression, PartitionCatalog
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.core.waits.outlook import Forecast
from airflow_chronon.core.waits.readiness import (
    Forecasts,
    Readiness,
    expression_ready,
    labels_ready,
    missing_labels,
    newest_ready,
)
from airflow_chronon.core.waits.said import Said
from airflow_chronon.errors import CatalogError

_SHOWN = 5

#: An expression that can have no value answers with the error that says so.
Answer = TableListing | Instant | bool | str | float | IllegalExpression | None


class Query(NamedTuple):
    """What to ask of a table: ``labels``, the ``newest`` value of a column, or the ``value`` of an expression."""

    kind: str
    about: str = ""


@dataclass(frozen=True)
class Observation:
    """The answers of one poll; when the catalog could not answer, why."""

    answers: Mapping[Query, Answer]
    trouble: str = ""
    place: str = ""  #: where the table was looked for
    token: str | None = None  #: of the table when it was looked at, where its catalog tells one
    forecasts: Mapping[Instant, Forecast] = field(
        default_factory=dict
    )  #: by partition start, of some that are not there
    said: Mapping[str, Said] = field(default_factory=dict)  #: by label, of some that are not there


def query_of(wait: Wait) -> Query:
    """What a wait needs to know."""
    if wait.expression is not None:
        return Query("value", wait.expression)
    if wait.until is not None:
        return Query("newest", wait.column)
    return Query("labels")


def queries_of(waits: Iterable[Wait]) -> tuple[Query, ...]:
    """The distinct queries of some waits, in a fixed order."""
    return tuple(sorted({query_of(wait) for wait in waits}))


def observe(
    catalog: PartitionCatalog, table: str, queries: Iterable[Query], before: Observation | None = None
) -> Observation:
    """Ask the catalog once. A catalog that cannot answer is not a verdict: the wait goes on and says why.

    Where the table is what it was in the observation ``before``, nothing is listed again. An expression is always asked: it
    may be about other tables too, or about the time.
    """
    answers: dict[Query, Answer] = {}
    try:
        token = catalog.change_token(table)
        kept = before.answers if before is not None and token is not None and token == before.token else {}
        for query in queries:
            if query.kind == "value":
                answers[query] = _value(catalog, table, query.about)
            elif query in kept:
                answers[query] = kept[query]
            elif query.kind == "labels":
                answers[query] = catalog.list_partitions(table)
            else:
                answers[query] = catalog.newest_value(table, query.about)
    except CatalogError as error:
        return Observation({}, str(error))
    return Observation(answers, place=catalog.place_of(table), token=token)


def _value(catalog: PartitionCatalog, table: str, expression: str) -> Answer:
    try:
        return catalog.evaluate(table, expression)
    except IllegalExpression as error:
        return error


def beyond_now(observation: Observation, *, now: Instant) -> str:
    """What is odd about newest values that lie in the future: one such row opens every wait (C18); else empty."""
    found = [
        f"the newest {query.about} is {iso(answer)}, which lies in the future: every wait for earlier values is over"
        for query, answer in observation.answers.items()
        if query.kind == "newest" and isinstance(answer, int) and answer > now + DAY
    ]
    return "; ".join(found)


def judge(waits: Collection[Wait], observation: Observation, *, waited: int = 0) -> Readiness:
    """Whether every wait on a table is over that has gone on for so many seconds. Raises ``CatalogError`` when one never can be."""
    if observation.trouble:
        return Readiness(False, observation.trouble)
    verdicts = [_verdict(wait, observation.answers[query_of(wait)], observation, waited) for wait in waits]
    reasons = "; ".join(dict.fromkeys(verdict.reason for verdict in verdicts if verdict.reason))
    if observation.place and any(_is_absent(observation.answers[query_of(wait)]) for wait in waits):
        reasons += f"; looked for in {observation.place}"
    in_vain = [verdict.hopeless for verdict in verdicts if verdict.hopeless is not None]
    # a wait that fails outweighs one that is passed over
    hopeless = min(in_vain, key=lambda each: each.passes_over, default=None)
    is_over = all(verdict.satisfied for verdict in verdicts)
    return Readiness(is_over, reasons, hopeless, tuple(each for verdict in verdicts for each in verdict.lagging))


def missing_starts(waits: Iterable[Wait], observation: Observation) -> frozenset[Instant]:
    """The starts of the partitions that some waits need and that are not there, as far as the table was listed."""
    return frozenset(
        wait.spec.format.decode(label) for wait, label in _missing(waits, observation) if wait.spec is not None
    )


def missing_texts(waits: Iterable[Wait], observation: Observation) -> frozenset[str]:
    """The same as labels."""
    return frozenset(label for _, label in _missing(waits, observation))


def _missing(waits: Iterable[Wait], observation: Observation) -> Iterator[tuple[Wait, str]]:
    for wait in waits:
        listing = observation.answers.get(query_of(wait))
        if isinstance(listing, TableListing):
            yield from ((wait, label) for label in missing_labels(wait, listing))


def _is_absent(answer: Answer) -> bool:
    """Whether nothing was found of a table: it may lie in another place."""
    return answer is None or (isinstance(answer, TableListing) and answer.state is TableState.MISSING)


def _verdict(wait: Wait, answer: Answer, observation: Observation, waited: int) -> Readiness:
    if isinstance(answer, IllegalExpression):
        raise answer
    if isinstance(answer, TableListing):
        found = _labels_verdict(
            wait, answer.with_said(observation.said) if observation.said else answer, observation, waited
        )
        told = _told(wait, observation.said)
        return replace(found, reason="; ".join(filter(None, (found.reason, told)))) if told else found
    if wait.expression is not None:
        return expression_ready(wait, answer)
    assert answer is None or isinstance(answer, int)
    return newest_ready(wait, answer)


def _labels_verdict(wait: Wait, listing: TableListing, observation: Observation, waited: int) -> Readiness:
    forecasts = observation.forecasts
    if not forecasts or wait.spec is None:
        return labels_ready(wait, listing, waited=waited)
    decode = wait.spec.format.decode
    missing = {label: forecasts.get(decode(label)) for label in missing_labels(wait, listing)}
    told: Forecasts = {label: each for label, each in missing.items() if each is not None}
    return labels_ready(wait, listing, told, waited=waited)


def _told(wait: Wait, said: Mapping[str, Said]) -> str:
    """What people have said of the labels that a wait needs."""
    told = []
    for kind, what in ((Said.NEVER, "is absent on purpose"), (Said.LANDED, "is there by somebody's word")):
        labels = [label for label in wait.labels if said.get(label) is kind]
        if labels:
            more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
            told.append(f"{wait.table} {wait.column}={', '.join(labels[:_SHOWN])}{more} {what} (land)")
    return "; ".join(told)
