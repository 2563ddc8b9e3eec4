"""Spark SQL, read by sqlglot and written again for DuckDB."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.extras import optional
from airflow_chronon.sql.confinement import READ_TABLES, reach_outside

if TYPE_CHECKING:
    from sqlglot import exp

_REMEDY = "correct the query, or run it on Spark with the command runner"
_TOKEN = re.compile(r"<Token token_type: [^,]*, text: (?P<text>.*?), line: .*?>", re.S)
#: Clauses that only say where Spark puts rows, never which rows there are.
_LAYOUT = ("hint", "distribute", "sort", "cluster")


class UnreadableSql(ChrononError):
    """SQL that does not parse, or that DuckDB has no words for; the text says where."""


class ReachesOutside(UnreadableSql):
    """SQL that would do more than read tables of the warehouse; the text says what (S3)."""


@dataclass(frozen=True, order=True)
class TableName:
    """A table as a query names it."""

    schema: str  #: the part before the name, ``catalog.db`` or ``db``; empty when the query gives none
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True)
class SparkQuery:
    """One query: what it reads, and how DuckDB says it.

    Tables appear in :attr:`duckdb` as ``"schema"."name"``; those without a schema as ``"main"."name"``, so that a
    common table expression may carry the name of the table that it reads.
    """

    duckdb: str
    tables: tuple[TableName, ...]


def read_query(text: str, *, field: str, known: Collection[str] = ()) -> SparkQuery:
    """Translate one SELECT. ``known`` are names without a schema that need no table (temporary views).

    Raises :class:`UnreadableSql`: one sentence with the position and the remedy. It is :class:`ReachesOutside` for a query
    that does more than read tables by name.
    """
    statement = _single(text, field)
    from sqlglot import exp  # after _single, which says it in one sentence when sqlglot is not installed

    if not isinstance(statement, exp.Query):
        kind = statement.key.upper()
        raise UnreadableSql(
            Fault("sql", field, f"a query must be one SELECT, this is {_article(kind)} {kind}", "write a SELECT")
        )
    return _translated(statement, field=field, known=known)


def read_view(text: str, *, field: str, known: Collection[str] = ()) -> tuple[str, SparkQuery] | None:
    """The name and the query of a ``CREATE TEMPORARY VIEW … AS SELECT``; None for any other statement."""
    try:
        statement = _single(text, field)
    except UnreadableSql:
        return None
    from sqlglot import exp

    if not isinstance(statement, exp.Create) or statement.args.get("kind") != "VIEW":
        return None
    name, query = statement.this, statement.expression
    if not isinstance(name, exp.Table) or name.db or not isinstance(query, exp.Query):
        return None
    return name.name, _translated(query, field=field, known=known)


def read_expression(text: str, *, table: str, field: str) -> SparkQuery:
    """A query for the value of one expression over a table; distinct values only, so that a constant gives one row.

    Raises like :func:`read_query`, and for what is no single value.
    """
    expression = _single(text, field)
    from sqlglot import exp

    if not isinstance(expression, exp.Condition | exp.Filter | exp.Subquery):
        kind = expression.key.upper()
        message = f"a triggerExpr must be one expression, this is {_article(kind)} {kind}"
        raise UnreadableSql(Fault("sql", field, message, "write an expression such as max(ds) or count(*) > 0"))
    name = ".".join(f"`{part.replace('`', '``')}`" for part in table.split("."))
    query = _single(f"SELECT DISTINCT (TRUE) AS value FROM {name}", field)
    assert isinstance(query, exp.Select), "it was written as one"
    query.selects[0].this.replace(exp.Paren(this=expression))
    return _translated(query, field=field, known=())


def _single(text: str, field: str) -> exp.Expression:
    sqlglot = optional("sqlglot", needed_for="reading Spark SQL")
    try:
        statements = [statement for statement in sqlglot.parse(text, read="spark") if statement is not None]
    except sqlglot.errors.SqlglotError as error:
        raise UnreadableSql(Fault("sql", field, f"the SQL does not parse{_position(error)}", _REMEDY)) from error
    except Exception as error:
        raise _unread(error, field) from error
    if len(statements) != 1:
        message = f"there must be exactly one SQL statement, not {len(statements)}"
        raise UnreadableSql(Fault("sql", field, message, "write one SELECT"))
    statement: exp.Expression = statements[0]
    return statement


def _unread(error: Exception, field: str) -> UnreadableSql:
    """What sqlglot does not expect of any SQL ends this query, not the process."""
    if isinstance(error, RecursionError):
        return UnreadableSql(Fault("sql", field, "the SQL is nested too deeply", "write it with fewer levels"))
    problem = f"the SQL cannot be read: sqlglot ends with {type(error).__name__}"
    return UnreadableSql(Fault("sql", field, problem, _REMEDY))


def _position(error: Any) -> str:
    for detail in getattr(error, "errors", ()):
        if detail.get("line"):
            found = _TOKEN.sub(
                lambda token: "the end" if token["text"] == "SENTINEL" else repr(token["text"]), detail["description"]
            )
            return f" at line {detail['line']}, column {detail['col']} ({found.rstrip('.')})"
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()
    return f" ({text[0].rstrip('.')})" if text else ""


def _article(kind: str) -> str:
    return "an" if kind[:1] in "AEIOU" else "a"


def _translated(statement: exp.Query, *, field: str, known: Collection[str]) -> SparkQuery:
    from sqlglot import ErrorLevel, errors

    try:
        outside = reach_outside(statement)
        if outside is not None:
            raise ReachesOutside(Fault("S3", field, outside, READ_TABLES))
        _drop_layout(statement)  # first: a hint names tables that it does not read
        tables = {
            _qualify(node): None for node in _real_tables(statement) if node.db or node.name.casefold() not in known
        }
        _name_schemas_of_columns(statement)
        _keep_dates(statement)
        text = statement.sql("duckdb", unsupported_level=ErrorLevel.RAISE, comments=False)
    except errors.SqlglotError as error:
        raise UnreadableSql(
            Fault("sql", field, f"the SQL does not translate to DuckDB{_position(error)}", _REMEDY)
        ) from error
    except ChrononError:
        raise
    except Exception as error:
        raise _unread(error, field) from error
    return SparkQuery(text, tuple(tables))


def _real_tables(statement: exp.Query) -> Iterator[exp.Table]:
    """The tables that stand for stored ones: no common table expressions, no table functions."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    seen: set[int] = set()
    for scope in traverse_scope(statement):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and id(source) not in seen:
                seen.add(id(source))
                yield source
    expressions = {found.alias_or_name.casefold() for found in statement.find_all(exp.CTE)}
    for table in statement.find_all(exp.Table):  # where no scope looks, a name that nothing in the query has
        if (
            isinstance(table.this, exp.Identifier)
            and id(table) not in seen
            and table.name.casefold() not in expressions
        ):
            yield table


def _qualify(node: exp.Table) -> TableName:
    """Give the table exactly one schema in place, and say how the query named it."""
    from sqlglot import exp

    parts = [part.name for part in node.parts]
    schema, name = ".".join(parts[:-1]), parts[-1]
    node.set("catalog", None)
    node.set("db", exp.to_identifier(schema or "main", quoted=True))
    node.set("this", exp.to_identifier(name, quoted=True))
    return TableName(schema, name)


def _name_schemas_of_columns(statement: exp.Query) -> None:
    """``catalog.db.table.column``: the schema of :func:`_qualify` here too."""
    from sqlglot import exp

    for column in statement.find_all(exp.Column):
        if column.catalog:
            column.set("db", exp.to_identifier(f"{column.catalog}.{column.db}", quoted=True))
            column.set("catalog", None)


def _drop_layout(statement: exp.Query) -> None:
    from sqlglot import exp

    for query in statement.find_all(exp.Query):
        for clause in _LAYOUT:
            if query.args.get(clause) is not None:
                query.set(clause, None)


def _keep_dates(statement: exp.Query) -> None:
    """A day more or less is still a date in Spark, but a timestamp in DuckDB, which would change its text."""
    from sqlglot import exp

    for node in list(statement.find_all(exp.TsOrDsAdd)):
        if not isinstance(node.parent, exp.Cast):
            node.replace(exp.cast(node.copy(), exp.DataType.Type.DATE))
