"""The setting ``max_lag``: after how long a run goes on without the newest partitions of a table, and of which tables."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, TypeAlias

from pydantic import Field, model_validator

from airflow_chronon.core.settings.values import Duration, Strict, Text, refusal
from airflow_chronon.core.waits.max_lag import MaxLag

MOST_BEHIND = 1_000  #: partitions; each poll may look for as many

_Partitions: TypeAlias = Annotated[int, Field(ge=0, le=MOST_BEHIND)]
_BOTH = "give partitions and after, such as {partitions: 1, after: 1h}"


class TableMaxLag(Strict):
    """What holds for the tables that match."""

    match: Text = Field(description="A glob over full table names, such as vendor.*; the first match wins.")
    partitions: _Partitions = Field(description="How many of the newest partitions may be missing; 0: none.")
    after: Duration | None = Field(default=None, description="By default that of all tables.")


class MaxLagSettings(Strict):
    """How far behind the tables may be that a run reads, and after how long a wait."""

    partitions: _Partitions | None = Field(
        default=None, description="How many of the newest partitions of a table may be missing."
    )
    after: Duration | None = Field(default=None, description="How long a run waits for them first, such as 1h.")
    tables: tuple[TableMaxLag, ...] = Field(default=(), description="What holds for some tables.")

    @model_validator(mode="after")
    def _whole(self) -> MaxLagSettings:
        if self.partitions and self.after is None:
            raise refusal("max_lag says how many partitions, and not after how long", _BOTH)
        if self.after is not None and self.partitions is None and not self.tables:
            raise refusal("max_lag says after how long, and not how many partitions", _BOTH)
        for entry in self.tables:
            if entry.partitions and entry.after is None and self.after is None:
                raise refusal("max_lag of some tables says how many partitions, and not after how long", _BOTH)
        return self

    def of_table(self, table: str) -> tuple[MaxLag | None, bool]:
        """What holds for one table, None when it may not be behind; and whether the table is named."""
        entry = next((entry for entry in self.tables if fnmatchcase(table, entry.match)), None)
        partitions = self.partitions if entry is None else entry.partitions
        after = self.after if entry is None or entry.after is None else entry.after
        found = MaxLag(partitions, after) if partitions and after is not None else None
        return found, entry is not None
