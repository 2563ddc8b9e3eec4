"""One expression over a table, evaluated in a process of its own: this module, which the catalog starts (S3).

A request comes as JSON on standard input, the answer goes as JSON to standard output. The process has nobody's environment,
takes what memory it was allowed and no more, writes no file, and ends by itself when its time is up.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.sql.confinement import READ_TABLES
from airflow_chronon.sql.parquet import Budget, ParquetViews, UnknownTable, connect
from airflow_chronon.sql.spark import UnreadableSql, read_expression

MODULE = "airflow_chronon.sql.expressions"
#: What a process takes beside what DuckDB counts.
_OVERHEAD_BYTES = 512 << 20
_GRACE_SECONDS = 5  # whoever started the process ends it first, and says so
_NICE = 10
_LONGEST_VALUE = 300  # it stands in a task's log; a label or an instant is much shorter


class Outcome(Enum):
    """What became of an expression."""

    VALUE = "value"
    MISSING = "missing"  #: the table is not there
    TROUBLE = "trouble"  #: not now: the files may change
    NEVER = "never"  #: whatever the files hold, this is no expression that can be evaluated
    OVER = "over"  #: it takes more memory than it may


@dataclass(frozen=True)
class ExpressionRequest:
    """What is to be evaluated, and within what."""

    root: str
    table: str
    expression: str
    memory: str  #: DuckDB's own words, such as ``512MB``
    memory_bytes: int
    seconds: int


@dataclass(frozen=True)
class ExpressionAnswer:
    """What came out: a value, or what was wrong."""

    outcome: Outcome
    value: bool | str | int | float | None = None
    fault: Fault | None = None

    def to_json(self) -> str:
        fault = None if self.fault is None else asdict(self.fault)
        return json.dumps({"outcome": self.outcome.value, "value": self.value, "fault": fault})

    @classmethod
    def from_json(cls, text: str | bytes) -> ExpressionAnswer:
        """Raises ValueError, KeyError or TypeError for what is no answer."""
        data = json.loads(text)
        fault = data["fault"]
        return cls(Outcome(data["outcome"]), data["value"], None if fault is None else Fault(**fault))


def evaluated(request: ExpressionRequest) -> ExpressionAnswer:
    """Evaluate an expression in this process."""
    import duckdb

    def failed(outcome: Outcome, problem: str, remedy: str, *, rule: str = "C19") -> ExpressionAnswer:
        text = f"{request.expression!r} {problem}"
        return ExpressionAnswer(outcome, fault=Fault(rule, "triggerExpr", text, remedy))

    try:
        rows = _rows(request)
    except (MemoryError, duckdb.OutOfMemoryException):
        return ExpressionAnswer(Outcome.OVER)
    except duckdb.PermissionException as error:
        return failed(Outcome.NEVER, f"reaches outside the warehouse: {_first_line(error)}", READ_TABLES, rule="S3")
    except duckdb.Error as error:
        return failed(Outcome.TROUBLE, f"cannot be evaluated: {_first_line(error)}", "correct the expression")
    except UnreadableSql as error:
        return ExpressionAnswer(Outcome.NEVER, fault=error.fault)
    except UnknownTable as error:
        is_awaited = error.table == request.table
        return ExpressionAnswer(Outcome.MISSING if is_awaited else Outcome.TROUBLE, fault=error.fault)
    except ChrononError as error:
        return ExpressionAnswer(Outcome.TROUBLE, fault=error.fault)
    if len(rows) > 1:
        return failed(Outcome.TROUBLE, "has another value in every row", "aggregate it: max(…), count(*) > 0")
    value = _plain(rows[0][0]) if rows else None
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        problem = f"is a text of {len(value)} characters, and no label has more than {_LONGEST_VALUE}"
        return failed(Outcome.TROUBLE, problem, "write an expression that is true or false, or gives a label")
    return ExpressionAnswer(Outcome.VALUE, value)


def _rows(request: ExpressionRequest) -> list[Any]:
    query = read_expression(request.expression, table=request.table, field="triggerExpr")
    root = Path(request.root)
    with connect(root, Budget(request.memory, threads=1)) as connection:
        ParquetViews(root).bind(connection, query.tables)
        return connection.execute(f"SELECT * FROM ({query.duckdb}) LIMIT 2").fetchall()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")


def _plain(value: Any) -> bool | str | int | float | None:
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if value is None or isinstance(value, bool | str | int | float) else str(value)


def _confine(request: ExpressionRequest) -> None:
    """What even an engine that forgets its own limits cannot pass."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(request.seconds + _GRACE_SECONDS)  # also when whoever started this process was killed
    most = request.memory_bytes + _OVERHEAD_BYTES
    for limit, amount in ((resource.RLIMIT_DATA, most), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (amount, amount))
    os.nice(_NICE)


def _main() -> None:
    request = ExpressionRequest(**json.load(sys.stdin))
    _confine(request)
    print(evaluated(request).to_json(), flush=True)  # noqa: T201
    os._exit(0)  # what DuckDB still does to end itself in good order helps nobody


if __name__ == "__main__":
    _main()
