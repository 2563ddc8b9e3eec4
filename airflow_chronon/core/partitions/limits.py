"""Limits on what one request may cover: nothing that is typed by hand stalls a process (S7)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

from airflow_chronon.errors import ChrononError, Fault

MOST = 500_000  #: rows that one command prints of one conf; a year of minutes has a few more
MOST_OF_A_RUN = 50_000  #: partitions of one manual run, and runs of one replay; a month of minutes has 43,200
MOST_LABELS = 600_000  #: labels of one table that one run waits for: those of a yearly run that reads minutes
#: Partitions of one table, the newest, whose runs are asked about in a poll; older ones count as to come.
MOST_ASKED = 10_000
_T = TypeVar("_T")


def limited(found: Iterable[_T], *, what: str, conf: str = "") -> tuple[_T, ...]:
    """All of them. Raises ``ChrononError`` when they are more than anyone can look at."""
    kept = tuple(islice(found, MOST + 1))
    if len(kept) > MOST:
        raise ChrononError(Fault("S7", "", f"these are more than {MOST} {what}", "give a shorter range"), conf=conf)
    return kept
