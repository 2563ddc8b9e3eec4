"""Reading what lies in the folder of one team: every file under its own guard, all of them within the team's budget (S1, S2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from airflow_chronon.conf_root.budget import Budget, OverBudget
from airflow_chronon.conf_root.files import FoundFile, Refusal, TeamFiles
from airflow_chronon.core.confs.plan import RejectedConf, faults_of

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class TeamReader(Generic[_Read]):
    """Reads the files of one kind, team by team; whoever needs more than a team has loses their own."""

    kind: str  #: as keys begin with it, such as ``join`` or ``job``
    limit: int  #: bytes of one file
    read: Callable[[FoundFile], _Read]  #: raises whatever is wrong with a file
    key_of: Callable[[FoundFile], str]  #: when nothing could be read
    tables: Callable[[_Read], int] = lambda _: 0  #: how many it reads
    takes: Callable[[str], bool] = lambda _: True  #: whether a file counts, or a folder, whose name ends with a slash

    def read_team(self, team: TeamFiles) -> tuple[list[_Read], list[RejectedConf]]:
        """What could be read, and what could not: everything where it costs more than a team has."""
        found: list[_Read] = []
        bad, budget = [self._refused(each) for each in team.refused if self.takes(each.file)], Budget()
        try:
            for file in team.files:
                if not self.takes(file.file):
                    continue
                budget.spend_file(file.path, limit=self.limit)
                try:
                    each = self.read(file)
                except Exception as error:
                    bad.append(RejectedConf(self.key_of(file), file.file, faults_of(error)))
                    continue
                budget.spend_tables(self.tables(each))
                found.append(each)
        except OverBudget as error:
            return [], [self._refused(team.refused_as_a_whole(error.fault))]
        return found, bad

    def _refused(self, refusal: Refusal) -> RejectedConf:
        return RejectedConf(f"{self.kind}/{refusal.name}", refusal.file, (refusal.fault,))
