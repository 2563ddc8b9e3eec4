"""Expressions of waits, each evaluated in a process of its own within limits of its own (C19, S3)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field

from airflow_chronon.core.calendar.instants import duration_text
from airflow_chronon.core.settings.values import amount_in_bytes
from airflow_chronon.core.waits.catalog import ExpressionValue, IllegalExpression
from airflow_chronon.errors import CatalogError, Fault
from airflow_chronon.sql.expressions import MODULE, ExpressionAnswer, ExpressionRequest, Outcome

#: How often in a row an expression may go over its limits before a wait for it fails.
TRIES = 3
#: What a process needs to find the interpreter's libraries; everything else may be a secret.
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TZDIR")


@dataclass
class Expressions:
    """Evaluates expressions over the tables below one root, one process each."""

    root: str  #: a folder of this machine
    memory: str
    timeout: int  #: seconds
    _over: Counter[tuple[str, str]] = field(default_factory=Counter, init=False, repr=False)

    def value(self, table: str, expression: str) -> ExpressionValue:
        """The value; None when the table is not there.

        Raises :class:`airflow_chronon.core.waits.catalog.IllegalExpression` for what is no expression over the warehouse or
        went over its limits :data:`TRIES` times in a row, and :class:`CatalogError` for what another poll may mend.
        """
        answer = self._answer(
            ExpressionRequest(self.root, table, expression, self.memory, amount_in_bytes(self.memory), self.timeout)
        )
        if answer.outcome is not Outcome.OVER:
            self._over.pop((table, expression), None)
        if answer.outcome in (Outcome.VALUE, Outcome.MISSING):
            return answer.value
        assert answer.fault is not None, "what has no value says why"
        if answer.outcome is Outcome.OVER:
            self._over[table, expression] += 1
        is_final = answer.outcome is Outcome.NEVER or self._over[table, expression] >= TRIES
        raise (IllegalExpression if is_final else CatalogError)(answer.fault, conf=table)

    def _answer(self, request: ExpressionRequest) -> ExpressionAnswer:
        command = [sys.executable, "-P", "-B", "-m", MODULE]
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        environment = {**kept, "PYTHONPATH": path, "PYTHONUTF8": "1"}
        try:
            done = subprocess.run(
                command,
                input=json.dumps(asdict(request)).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=request.seconds,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"had no value after {duration_text(request.seconds)}"
            return _over(request, problem, "catalog.expression_timeout")
        except OSError as error:
            fault = Fault(
                "C19", "triggerExpr", f"no process can be started to evaluate it: {error}", "give this machine room"
            )
            return ExpressionAnswer(Outcome.TROUBLE, fault=fault)
        try:
            answer = ExpressionAnswer.from_json(done.stdout)
        except (ValueError, KeyError, TypeError):
            how = (
                f"by {signal.Signals(-done.returncode).name}" if done.returncode < 0 else f"with code {done.returncode}"
            )
            problem = f"ended its process {how}, as it does for want of memory ({request.memory})"
            return _over(request, problem, "catalog.expression_memory")
        if answer.outcome is Outcome.OVER:
            return _over(request, f"needs more memory than {request.memory}", "catalog.expression_memory")
        return answer


def _over(request: ExpressionRequest, problem: str, setting: str) -> ExpressionAnswer:
    text = f"{request.expression!r} {problem}, which is all that {setting} allows"
    fault = Fault("S3", "triggerExpr", text, f"write a cheaper expression, or raise {setting}")
    return ExpressionAnswer(Outcome.OVER, fault=fault)
