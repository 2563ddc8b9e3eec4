"""The limit on the runs or partitions of one command: 30 years of minutes would fill the memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

from airflow_chronon.errors import ChrononError, Fault

MOST = 500_000  #: runs or partitions of one conf; a year of minutes has a few more
_T = TypeVar("_T")


def limited(found: Iterable[_T], *, what: str, conf: str = "") -> tuple[_T, ...]:
    """All of them. Raises ``ChrononError`` when they are more than anyone can look at."""
    kept = tuple(islice(found, MOST + 1))
    if len(kept) > MOST:
        raise ChrononError(Fault("input", "", f"these are more than {MOST} {what}", "give a shorter range"), conf=conf)
    return kept
