"""The range that ``partitions`` and ``backfill`` work on: partitions of a conf, or intervals of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_chronon.airflow_api.coverage import known_runs, runs_covering, with_stranded
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.runs.states import Known, KnownRun, PartitionRow, State, partition_rows


@dataclass(frozen=True)
class AskedIntervals:
    """The intervals of one plan with a schedule that lie in a window, as of an instant."""

    plan: Plan
    window: TimeWindow
    now: Instant

    @property
    def good(self) -> State:
        """What becomes of an interval in the end."""
        return State.LANDED if self.plan.has_partitions else State.DONE

    def runs(self, server: AirflowServer, *, states: Sequence[str] = ()) -> list[KnownRun]:
        """The runs that cover them."""
        found = runs_covering(server, self.plan.dag_id, self.window, grid=self.plan.grid, states=states)
        return with_stranded(known_runs(found, self.plan.need_schedule(), now=self.now), found, server)

    def rows(self, known: Known) -> list[PartitionRow]:
        """What became of each."""
        schedule = self.plan.need_schedule()
        return partition_rows(schedule, schedule.starts(self.window.start, self.window.end), known, now=self.now)
