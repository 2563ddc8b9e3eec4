"""What people have said of partitions that no listing shows: that one is there, or that it never will be.

It is kept in Airflow's store of the state of one asset, a key per partition, so that two who speak at the same time lose nothing.
A further key per table changes with every word about it: where it is not there, or what it was, nothing else is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

#: The asset in whose state it is kept.
SAID_ASSET = "chronon://airflow-chronon/said-of-partitions"


class Said(Enum):
    """What may be said of a partition."""

    LANDED = "landed"  #: it is there, whatever is listed
    NEVER = "never"  #: it is absent on purpose: nobody waits for it


@dataclass(frozen=True)
class Word:
    """What somebody said of one partition, and when."""

    said: Said
    at: str = ""  #: ISO-8601
    by: str = ""

    def to_json(self) -> dict[str, str]:
        """Inverse of :func:`read_word`."""
        return {"said": self.said.value, "at": self.at, "by": self.by}


def read_word(data: Any) -> Word | None:
    """The word that a kept value holds; None for what is none."""
    if not isinstance(data, Mapping):
        return None
    try:
        return Word(Said(data.get("said")), str(data.get("at") or ""), str(data.get("by") or ""))
    except ValueError:
        return None


def table_key(table: str) -> str:
    """The key that changes with every word about a table."""
    return f"of {table}"


def partition_key(table: str, label: str) -> str:
    """The key of what was said of one partition."""
    return f"{table} {label}"


def words_of(kept: Mapping[str, Any], table: str) -> dict[str, Word]:
    """What was said of a table's partitions by label, of everything that is kept."""
    begin = partition_key(table, "")
    found = {key.removeprefix(begin): read_word(value) for key, value in kept.items() if key.startswith(begin)}
    return {label: word for label, word in found.items() if word is not None}
