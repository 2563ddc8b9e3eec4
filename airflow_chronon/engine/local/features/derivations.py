"""Derivations: columns that are plain SQL over the columns that were computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_chronon.engine.local.computation import refused
from airflow_chronon.engine.local.features.documents import Derivation
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.sql.parquet import identifier
from airflow_chronon.sql.spark import UnreadableSql, read_query

_PLACEHOLDER = "chronon underived"


@dataclass(frozen=True)
class Derivations:
    """The select list that derivations make of base columns.

    As the compiler's own list of columns has it: ``*`` keeps every base column, renamed ones included; the columns that
    identify a row (keys, and a Join's left columns) stay whatever the derivations say.
    """

    columns: tuple[str, ...]  #: every output column in order
    select: str  #: DuckDB's select list over the base columns

    @classmethod
    def read(
        cls,
        derivations: Sequence[Derivation] | None,
        *,
        ids: Sequence[str],
        values: Sequence[str],
        job: JobRequest,
        field: str,
    ) -> Derivations:
        """``ids`` and ``values`` are the base columns. Raises :class:`airflow_chronon.errors.JobRefused`."""
        if not derivations:
            columns = tuple(dict.fromkeys((*ids, *values)))
            return cls(columns, ", ".join(map(identifier, columns)))
        shown = {name: identifier(name) for name in ids}
        if any(derivation.name == "*" for derivation in derivations):
            shown |= {name: identifier(name) for name in values}
        for index, derivation in enumerate(derivations):
            if derivation.name != "*":
                shown[derivation.name] = _translated(derivation, job, f"{field}[{index}]")
        columns = tuple(shown)
        return cls(columns, ", ".join(f"{sql} AS {identifier(name)}" for name, sql in shown.items()))


def _translated(derivation: Derivation, job: JobRequest, field: str) -> str:
    """One expression in DuckDB's words."""
    try:
        text = f"SELECT ({derivation.expression}) AS value FROM `{_PLACEHOLDER}`"
        query = read_query(text, field=field, known={_PLACEHOLDER})
    except UnreadableSql as error:
        raise refused(job, field, error.fault.message, error.fault.remedy, rule="sql") from error
    if query.tables:
        raise refused(job, field, f"the derivation {derivation.name!r} reads tables: only its own columns are allowed")
    head, _, tail = query.duckdb.partition("SELECT ")
    assert not head, "a derivation is one select"
    return tail.rpartition(" AS value FROM ")[0]
