"""What one file may hold (S1, S2): the one table of bounds, and the judges of plain values and texts.

Airflow keeps what it is given in PostgreSQL. A longer text, a larger number or a NUL ends the process that stores it, for
every team. Lengths are in characters, as PostgreSQL counts them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from airflow_chronon.errors import readable

KeyPath: TypeAlias = tuple[str | int, ...]  #: from the top of a text down to one key or item

# What Airflow's columns take.
MAX_ID = 250  #: a DAG id, a task id, a run id, a partition key
MAX_TAG = 100
MAX_OWNER = 500  #: of the audit log; a DAG's own column takes more
MAX_POOL = 256  #: a pool or a queue
MAX_INTEGER = 2**31 - 1
MAX_WEIGHT = 1_000_000  #: of one task: Airflow adds up those of all tasks behind it, and the sum is an integer too
MAX_RETRIES = 10_000  #: each time a task is cleared, Airflow adds them to the tries that it has had
MAX_NOTE = 1_000  #: of a run

# What keeps everything that is put together from a conf within those.
MAX_LABEL = 100  #: a run id is a label with up to 33 further characters, a folder's name one with its column
MAX_NAME = 500  #: of a conf, a table, a column, a team; with its namespace and its branch it is an asset's address
MAX_NAMESPACE = 250
MAX_BRANCH = 200  #: percent-escaped: it begins the addresses of assets and is the name of a folder
MAX_CRON = 400  #: two of them stand in the description of a timetable
MAX_ADDRESSES = 100  #: who hears of a failure
MAX_EXPRESSION = 10_000  #: a ``triggerExpr``
MAX_OWN_SETTINGS = 64 * 1024  #: what a conf says of itself in ``customJson``: each of its waits carries some of it

# What a reader can go through.
MAX_TABLES = 1_000  #: that one conf reads, each of them a task
MAX_DEPTH = 100
MAX_VALUES = 500_000  #: of one conf
MAX_YAML_VALUES = 100_000  #: of one YAML file, its aliases written out
MAX_CONF_BYTES = 16 * 1024**2  #: the largest real ones are below 1 MB
MAX_JOB_BYTES = 256 * 1024
MAX_SETTINGS_BYTES = 1024**2  #: of ``chronon.yaml``
# What the folder of one team may cost whoever reads the tree, so that the others get their turn.
MAX_TEAM_FILES = 5_000
MAX_TEAM_BYTES = 64 * 1024**2
MAX_TEAM_TABLES = 20_000
MAX_TEAM_SECONDS = 10  #: of work, not of waiting: a busy machine costs nobody a conf
_INT64 = 2**63
_QUOTED = 100  # characters of a value in a message: what is wrong with it stands behind it


@dataclass(frozen=True)
class Unstorable:
    """A value that cannot be kept as JSON, where it stands, and what to do about it."""

    path: KeyPath
    problem: str
    remedy: str


def path_text(path: KeyPath) -> str:
    """A path as people write it, such as ``overrides[0].sensor.timeout``."""
    return readable("".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix("."))


def unstorable(value: Any, *, most: int = MAX_VALUES) -> Unstorable | None:
    """The first thing in a value that JSON in PostgreSQL does not hold; None for a plain one.

    A walk without recursion, which ends at ``most`` values, however often one of them is shared.
    """
    return None if _is_plain(value, most) else _first_unstorable(value, most)


def _is_plain(value: Any, most: int) -> bool:
    """Whether there is nothing to find: level by level, since keeping the path of each value takes five times as long."""
    level, seen = [value], 0
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is dict:
                if not all(type(key) is str and key.isascii() and "\0" not in key for key in each):
                    return False
                below += each.values()
            elif kind is list:
                below += each
            elif (kind is not str or not each.isascii() or "\0" in each) and _unstorable(each) is not None:
                return False
        seen += len(level)
        if seen + len(below) > most:
            return False
        if not below:
            return True
        level = below
    return False


def _first_unstorable(value: Any, most: int) -> Unstorable | None:
    waiting: list[tuple[KeyPath, Any]] = [((), value)]
    seen = 0
    while waiting:
        path, each = waiting.pop()
        seen += 1
        inside = len(each) if isinstance(each, Mapping | list | tuple) else 0
        if seen + len(waiting) + inside > most:
            return Unstorable((), f"it holds more than {most} values", "write less")
        if len(path) > MAX_DEPTH:
            return Unstorable((), "it is nested too deeply", f"stay within {MAX_DEPTH} levels")
        if isinstance(each, Mapping):
            for key in each:
                found = _unstorable_key(key)
                if found is not None:
                    return Unstorable((*path, key if isinstance(key, int) else readable(str(key))), *found)
            waiting += [((*path, key), item) for key, item in reversed(list(each.items()))]
        elif isinstance(each, list | tuple):
            waiting += [((*path, index), each[index]) for index in reversed(range(inside))]
        elif (found := _unstorable(each)) is not None:
            return Unstorable(path, *found)
    return None


def _unstorable_key(key: object) -> tuple[str, str] | None:
    if isinstance(key, str):
        return _unstorable(key)
    return f"the key {readable(repr(key))} is not text", "write a key by its name"


def _unstorable(value: object) -> tuple[str, str] | None:
    """What keeps a single value from being stored, and the remedy."""
    if isinstance(value, str):
        problem = text_problem(value)
        return None if problem is None else (f"{quoted(value)} {problem}", "remove it")
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        is_small = -_INT64 <= value < _INT64
        return None if is_small else ("the number has more than 64 bits", "write it as text")
    if isinstance(value, float):
        return None if math.isfinite(value) else (f"{value!r} is not a number of JSON", "write a finite one")
    return f"a value of the type {type(value).__name__} is not JSON", "write text, in quotes"


def text_problem(text: str) -> str | None:
    """What keeps a text from being stored: PostgreSQL takes no NUL, and UTF-8 no half of a surrogate pair."""
    if text.isascii():
        return "holds a NUL" if "\0" in text else None
    if "\0" in text:
        return "holds a NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no character"
    return None


def name_problem(text: str, *, most: int = MAX_NAME) -> str | None:
    """What keeps a text from being a name that lists, addresses and terminals show: its length, or a control character.

    Such a name can be stored too: neither a NUL nor half of a surrogate pair can be printed.
    """
    if len(text) > most:
        return f"has {len(text)} characters, and Airflow is given at most {most}"
    if not text.isprintable():
        return "holds a character that cannot be printed"
    return None


def quoted(value: object) -> str:
    """A value as messages quote it: not much of it, and nothing that cannot be printed."""
    shown = repr(value[: _QUOTED + 1] if isinstance(value, str) else value)
    return readable(shown if len(shown) <= _QUOTED + 2 else f"{shown[:_QUOTED]}…")
