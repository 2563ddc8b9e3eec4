"""Looking at a table on behalf of many waits: the questions, one sighting per poll, and a verdict per wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.listing import TableListing
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.core.waits.readiness import Readiness, expression_ready, labels_ready, newest_ready
from airflow_chronon.errors import CatalogError

Answer = TableListing | Instant | bool | str | float | None


class Question(NamedTuple):
    """What to ask of a table: ``labels``, the ``newest`` value of a column, or the ``value`` of an expression."""

    kind: str
    about: str = ""


class Observer(Protocol):
    """What a sighting asks; every catalog answers it."""

    def list_partitions(self, table: str) -> TableListing: ...

    def newest_value(self, table: str, column: str) -> Instant | None: ...

    def evaluate(self, table: str, expression: str) -> bool | str | int | float | None: ...


@dataclass(frozen=True)
class Sighting:
    """The answers of one poll; when the catalog could not answer, why."""

    answers: Mapping[Question, Answer]
    trouble: str = ""


def question_of(wait: Wait) -> Question:
    """What a wait needs to know."""
    if wait.expression is not None:
        return Question("value", wait.expression)
    if wait.until is not None:
        return Question("newest", wait.column)
    return Question("labels")


def questions_of(waits: Iterable[Wait]) -> tuple[Question, ...]:
    """The distinct questions of some waits, in a fixed order."""
    return tuple(sorted({question_of(wait) for wait in waits}))


def look(catalog: Observer, table: str, questions: Iterable[Question]) -> Sighting:
    """Ask the catalog once. A catalog that cannot answer is no verdict: the wait goes on and says why."""
    answers: dict[Question, Answer] = {}
    try:
        for question in questions:
            if question.kind == "labels":
                answers[question] = catalog.list_partitions(table)
            elif question.kind == "newest":
                answers[question] = catalog.newest_value(table, question.about)
            else:
                answers[question] = catalog.evaluate(table, question.about)
    except CatalogError as error:
        return Sighting({}, str(error))
    return Sighting(answers)


def judge(waits: Iterable[Wait], sighting: Sighting) -> Readiness:
    """Whether every wait on a table is over. Raises ``CatalogError`` when one never can be."""
    if sighting.trouble:
        return Readiness(False, sighting.trouble)
    verdicts = [_verdict(wait, sighting.answers[question_of(wait)]) for wait in waits]
    reasons = "; ".join(dict.fromkeys(verdict.reason for verdict in verdicts if verdict.reason))
    return Readiness(all(verdict.satisfied for verdict in verdicts), reasons)


def _verdict(wait: Wait, answer: Answer) -> Readiness:
    if isinstance(answer, TableListing):
        return labels_ready(wait, answer)
    if wait.expression is not None:
        return expression_ready(wait, answer)
    assert answer is None or isinstance(answer, int)
    return newest_ready(wait, answer)
