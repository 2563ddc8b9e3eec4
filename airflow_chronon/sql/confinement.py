"""What a query may do: read tables by their names, and nothing else (S3).

The engine's own settings keep a query inside the warehouse (:func:`airflow_chronon.sql.parquet.connect`). What is judged
here is judged so that a refusal comes before any work, in words about the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

READ_TABLES = "read tables of the warehouse by their names"
#: Functions that stand where a table may, and make rows of nothing but their arguments.
_ROWS_OF_ARGUMENTS = frozenset(
    (
        *("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "unnest", "stack"),
        *("json_tuple", "range", "sequence", "generate_series"),
    )
)
#: Functions that look at files, at the engine or at the process, or that run text as SQL: by name, whoever brings them.
_OUTSIDE = re.compile(
    r"(read|duckdb|pragma|parquet|pg|enable|disable)_\w+|\w+_(scan|scan_dumb|external_resource|grammar_extension)"
    r"|getenv|getvariable|current_setting|which_secret|write_log|sleep_ms|glob|sniff_csv|query|query_table"
    r"|json_serialize_sql|json_deserialize_sql|json_execute_serialized_sql|(force_)?checkpoint",
    re.IGNORECASE,
)
#: Schemas of the engine's own views.
_OWN_SCHEMAS = frozenset(("information_schema", "pg_catalog"))


def reach_outside(statement: exp.Query) -> str | None:
    """The first thing in a statement that is no reading of tables by name, as a sentence; None in a good one."""
    return next(_reaching(statement), None)


def _reaching(statement: exp.Query) -> Iterator[str]:
    from sqlglot import exp

    acting = (exp.DDL, exp.DML, exp.Command, exp.Into, exp.Set, exp.Pragma, exp.Describe, exp.Copy)
    for node in statement.walk():
        if isinstance(node, acting) and not isinstance(node, exp.Query):
            yield f"a query may only read, and this one holds {node.key.upper()}"
        elif isinstance(node, exp.Table):
            yield from _of_table(node)
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Func):
            yield from _of_rows(node.this)
        elif isinstance(node, exp.Func) and _OUTSIDE.fullmatch(name := _name(node)):
            yield f"the function {name} does not work on rows of tables: no query may call it"


def _of_table(node: exp.Table) -> Iterator[str]:
    from sqlglot import exp

    if isinstance(node.this, exp.Func):
        yield from _of_rows(node.this)
        return
    name = ".".join(part.name for part in node.parts)
    if name.startswith(".") or any(sign in name for sign in "/\\\0"):
        yield f"{name!r} stands where a table should, and names a file"
    elif node.db.casefold() in _OWN_SCHEMAS:
        yield f"{name!r} is no table of the warehouse but the engine's own"


def _of_rows(function: exp.Func) -> Iterator[str]:
    name = _name(function)
    if name not in _ROWS_OF_ARGUMENTS:
        yield f"the function {name} stands where a table should: no query may read anything but tables"


def _name(function: exp.Func) -> str:
    from sqlglot import exp

    return (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).casefold()
