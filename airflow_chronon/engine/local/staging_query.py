"""Staging queries in the embedded engine: Spark SQL over Parquet folders, run once for all labels of the run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from airflow_chronon.core.partitions.labels import IllegalLabel
from airflow_chronon.engine.local.computation import ON_SPARK, RESULT, Output, Session, refused
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.engine.templates import IllegalTemplate, render_query
from airflow_chronon.errors import JobRefused
from airflow_chronon.sql.parquet import ParquetViews, UnreadableTable, identifier, tried_by_name
from airflow_chronon.sql.spark import SparkQuery, TableName, UnreadableSql, read_query, read_view

_ENGINES = {0: "SPARK", 1: "BIGQUERY", 2: "SNOWFLAKE"}
_WORDS = re.compile(r"\s*((?:[A-Za-z]+\s+){0,2}[A-Za-z]+)")


@dataclass
class StagingQueryComputation:
    """One staging query's backfill."""

    _views: list[tuple[str, SparkQuery]] = field(default_factory=list, init=False)
    _query: SparkQuery | None = field(default=None, init=False)

    def outputs(self, job: JobRequest) -> tuple[Output, ...]:
        return (Output(job.table),)

    def prepare(self, job: JobRequest, session: Session) -> None:
        """Everything that can be refused, in order: engine, setups, templates, SQL, tables."""
        assert job.window is not None, "a run without a window never gets here"
        document = job.document
        engine = document.get("engineType")
        if engine not in (None, 0):
            name = _ENGINES.get(engine, str(engine))
            raise refused(job, "engineType", f"the embedded engine does not run queries for {name}")
        self._views = self._read_setups(job)
        names = frozenset(name.casefold() for name, _ in self._views)

        def max_date(table: str) -> str | None:
            listing = session.catalog.list_partitions(table)
            column = job.spec.column if job.spec.column in listing.columns else next(iter(sorted(listing.columns)), "")
            return max(listing.labels(column), default=None)

        text = str(document.get("query") or "")
        try:
            rendered = render_query(text, spec=job.spec, window=job.window, max_dates=max_date)
            session.log(f"query: {rendered}")
            self._query = read_query(rendered, field="query", known=names)
            session.log(f"query for DuckDB: {self._query.duckdb}")
            self._bind(session, by_name=False)
        except (IllegalTemplate, IllegalLabel, UnreadableSql, UnreadableTable) as error:
            raise JobRefused(error.fault, conf=job.conf) from error

    def compute(self, job: JobRequest, session: Session) -> None:
        """Run the query. Files of one table that differ in their columns are united in a second try."""

        def attempt(by_name: bool) -> None:
            if by_name:  # otherwise bound already
                self._bind(session, by_name=True)
            self._run(session)

        tried_by_name(attempt)

    def _run(self, session: Session) -> None:
        assert self._query is not None, "prepare() comes first"
        session.connection.execute(f"CREATE OR REPLACE TEMPORARY TABLE {RESULT} AS {self._query.duckdb}")
        # Spark sums whole numbers in 64 bits; DuckDB does in 128, which Parquet knows only as floating point
        for name, kind, *_ in session.connection.execute(f"DESCRIBE {RESULT}").fetchall():
            if kind == "HUGEINT":
                session.connection.execute(f"ALTER TABLE {RESULT} ALTER {identifier(name)} TYPE BIGINT")

    def _bind(self, session: Session, *, by_name: bool) -> None:
        assert self._query is not None
        queries = [query for _, query in self._views] + [self._query]
        tables: list[TableName] = [table for query in queries for table in query.tables]
        ParquetViews(session.root).bind(session.connection, tables, by_name=by_name)
        for name, query in self._views:
            session.connection.execute(f'CREATE OR REPLACE VIEW "main".{identifier(name)} AS {query.duckdb}')

    def _read_setups(self, job: JobRequest) -> list[tuple[str, SparkQuery]]:
        views: list[tuple[str, SparkQuery]] = []
        for index, statement in enumerate(job.document.get("setups") or ()):
            place = f"setups[{index}]"
            try:
                view = read_view(str(statement), field=place, known=frozenset(name.casefold() for name, _ in views))
            except UnreadableSql as error:
                raise JobRefused(error.fault, conf=job.conf) from error
            if view is None:
                words = _WORDS.match(str(statement))
                shown = re.sub(r"\s+", " ", words[1]).upper() if words else repr(statement)
                message = f"the embedded engine cannot carry out the setup {shown} ({str(statement).strip()!r})"
                raise refused(job, place, message, f"remove it, write it as CREATE TEMPORARY VIEW, or {ON_SPARK}")
            views.append(view)
        return views
