"""What processes get of the environment of this one, where somebody else's code starts them (S5).

The code itself goes on to see all of it: it may need a connection that stands there.
"""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow_chronon.core.settings.environment import passed_on


@contextmanager
def withheld(*, pass_env: Iterable[str]) -> Iterator[None]:
    """Processes that are started inside get none of Airflow's own secrets, unless ``pass_env`` names them.

    A variable to which the code gives another value is passed on.
    """
    kept = passed_on(os.environ, pass_env=pass_env)
    withheld = {name: value for name, value in os.environ.items() if name not in kept}
    start = subprocess.Popen.__init__
    parameters = inspect.signature(start)

    def without(given: Mapping[Any, Any] | None) -> dict[Any, Any]:
        environment = os.environ if given is None else given
        return {name: value for name, value in environment.items() if withheld.get(_text(name)) != _text(value)}

    @functools.wraps(start)
    def start_without(*given: Any, **named: Any) -> None:
        bound = parameters.bind(*given, **named)
        bound.arguments["env"] = without(bound.arguments.get("env"))
        start(*bound.args, **bound.kwargs)

    for name in withheld:
        os.unsetenv(name)  # what starts a process in another way hands on the environment of C, not that of Python
    subprocess.Popen.__init__ = start_without  # type: ignore[method-assign]
    try:
        yield
    finally:
        subprocess.Popen.__init__ = start  # type: ignore[method-assign]
        for name, value in withheld.items():
            os.putenv(name, value)


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, bytes | os.PathLike) else str(value)
