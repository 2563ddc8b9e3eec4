"""What reading the files of one team may cost: whoever needs more loses their own, and the others go on (S2)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from airflow_chronon.core.bounds import MAX_TEAM_BYTES, MAX_TEAM_SECONDS, MAX_TEAM_TABLES
from airflow_chronon.errors import ChrononError, Fault


class OverBudget(ChrononError):
    """The files of one team cost more than a team has."""


class Budget:
    """What is left for one team. Every method raises :class:`OverBudget` once it is used up."""

    def __init__(self, *, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock, self._begun = clock, clock()
        self._bytes = self._tables = 0

    def spend_file(self, path: Path, *, limit: int) -> None:
        """Before a file is read; one larger than ``limit`` is not, and costs nothing."""
        spent = self._clock() - self._begun
        if spent > MAX_TEAM_SECONDS:
            raise _over(f"take {spent:.0f} s to read", f"{MAX_TEAM_SECONDS} s")
        try:
            size = os.stat(path).st_size
        except OSError:
            return  # whoever reads it says why
        self._bytes += size if size <= limit else 0
        if self._bytes > MAX_TEAM_BYTES:
            raise _over(f"have more than {MAX_TEAM_BYTES // 1024**2} MB", f"{MAX_TEAM_BYTES // 1024**2} MB")

    def spend_tables(self, count: int) -> None:
        """Once it is known how many tables a conf reads."""
        self._tables += count
        if self._tables > MAX_TEAM_TABLES:
            raise _over(f"read {self._tables} tables", f"{MAX_TEAM_TABLES} tables")


def _over(what: str, budget: str) -> OverBudget:
    problem = f"the files of the folder {what}, and the budget of one team is {budget}: none is taken"
    return OverBudget(Fault("S2", "", problem, "remove some, or divide the folder"))
